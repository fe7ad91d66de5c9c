// Training and what follows from it: gpu_list entry × autocast × trainer, each train, eval, export
// and inference; and whole_infer, which starts from a given model.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {
namespace {

constexpr std::string_view kAmpArguments =
    "Global.use_amp=True Global.scale_loss=1024.0 Global.use_dynamic_loss_scaling=True";

struct Commands {
  std::string train;
  std::string export_model;
  bool quantised = false;
};

// What a trainer of the list runs; one without commands of its own runs the normal ones.
Commands commands_of(const params::Params& params, const std::string& trainer) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kOthers{
      {{"pact_train", "quant_export"},
       {"fpgm_train", "fpgm_export"},
       {"distill_train", "distill_export"},
       {"train_1", "export1"},
       {"train_2", "export2"}}};
  if (params.kind() == params::Kind::train_infer_long) {
    for (const auto& [train, export_model] : kOthers) {
      if (params.key(train) != trainer) continue;
      // What stands there is added to the normal training.
      if (trainer == "to_static_train") {
        return {fmt::format("{} {}", params.value("norm_train"), params.value(train)),
                std::string(params.value("norm_export")), false};
      }
      return {std::string(params.value(train)), std::string(params.value(export_model)),
              train == "pact_train"};
    }
  }
  return {std::string(params.value("norm_train")), std::string(params.value("norm_export")), false};
}

// One cell of the training matrix.
struct TrainCell {
  params::GpuEntry gpus;
  std::string use_gpu;  // what training is told, of the long layout
  std::string autocast;
  std::string trainer;
  std::string epochs;
  std::string batch;
  Commands commands;
  std::vector<std::string> extra_environment;
  std::string extra;  // one more argument of training, of the long layout
  std::string name;
  std::string save_path;
};

void name_cell(const PlanBuilder& builder, TrainCell& cell, std::string suffix) {
  const PlanOptions& options = builder.options();
  if (options.ps_servers > 0) {
    suffix += fmt::format("_ps_{}x{}", options.ps_servers, options.ps_trainers);
  }
  const std::size_t nodes = std::max<std::size_t>(1, cell.gpus.hosts.size());
  const bool is_long = builder.params().kind() == params::Kind::train_infer_long;
  cell.name =
      fmt::format("{}_gpus_{}_autocast_{}{}", cell.trainer, cell.gpus.gpus, cell.autocast, suffix);
  cell.save_path = builder.folder() + "/" + cell.name;
  if (!is_long || nodes > 1) cell.save_path += fmt::format("_nodes_{}", nodes);
  if (!is_long) cell.save_path += ".log";
  cell.name += fmt::format("_nodes_{}", nodes);
}

// Parameter Server mode: every server and trainer by address, so that the launchers of all machines
// agree without a master. Ports 6170 and up are the servers', 6270 and up the trainers'.
std::string parameter_servers(const TrainCell& cell, const PlanOptions& options) {
  constexpr int kServerPort = 6170;
  constexpr int kTrainerPort = 6270;
  const std::vector<std::string> hosts =
      cell.gpus.hosts.empty() ? std::vector<std::string>{"127.0.0.1"} : cell.gpus.hosts;
  const auto endpoints = [&](int port, int number) {
    std::vector<std::string> list;
    for (const std::string& host : hosts) {
      for (int i = 0; i < number; ++i) list.push_back(fmt::format("{}:{}", host, port + i));
    }
    return list;
  };
  return fmt::format("-m paddle.distributed.launch --servers={} --trainers={} ",
                     fmt::join(endpoints(kServerPort, options.ps_servers), ","),
                     fmt::join(endpoints(kTrainerPort, options.ps_trainers), ","));
}

std::string launcher(const TrainCell& cell, bool on_cpu, const PlanOptions& options) {
  if (options.ps_servers > 0) return parameter_servers(cell, options);
  const bool several = cell.gpus.ids.size() > 1;
  if (!several && !cell.gpus.many_machines()) return {};
  std::string line = "-m paddle.distributed.launch";
  if (cell.gpus.many_machines()) line += " --ips=" + cell.gpus.ips();
  line += on_cpu ? " --nproc_per_node=1" : " --gpus=" + cell.gpus.gpus;
  return line + " ";
}

std::string train_command(const PlanBuilder& builder, const TrainCell& cell, bool on_cpu) {
  const params::Params& params = builder.params();
  const std::string script = launcher(cell, on_cpu, builder.options()) + cell.commands.train;
  const std::string save = argument(params.key("save_dir"), cell.save_path);
  const std::string epochs = argument(params.key("epochs"), cell.epochs);
  const std::string pretrained = argument(params.key("pretrained"), params.value("pretrained"));
  const std::string batch = argument(params.key("train_batch"), cell.batch);
  if (params.kind() == params::Kind::train_infer) {
    return command_line({builder.python(), script, save, epochs, pretrained, batch});
  }
  const bool amp = cell.autocast == "amp";
  std::vector<std::string> pieces{builder.python(), script,
                                  argument(params.key("train_use_gpu"), cell.use_gpu), save};
  if (cell.gpus.many_machines()) {
    pieces.insert(pieces.end(), {pretrained, epochs});
  } else {
    pieces.insert(pieces.end(), {epochs, pretrained});
  }
  pieces.insert(pieces.end(), {argument(params.key("autocast"), cell.autocast), batch, cell.extra,
                               amp ? std::string(kAmpArguments) : std::string(" ")});
  return command_line(pieces);
}

std::size_t add_training(PlanBuilder& builder, const TrainCell& cell) {
  const bool on_cpu =
      cell.gpus.on_cpu() || (builder.options().fleet_on_cpu && cell.gpus.many_machines());
  Stage stage;
  stage.kind = StageKind::train;
  stage.name = cell.name + "/train";
  stage.command = train_command(builder, cell, on_cpu);
  stage.log = fmt::format("{}/{}_train.log", builder.folder(), cell.name);
  stage.shows_log = false;
  // paddle.distributed.launch takes an empty CUDA_VISIBLE_DEVICES for a GPU without a name.
  const bool launched = cell.gpus.many_machines() || builder.options().ps_servers > 0;
  stage.environment = cuda_environment(!on_cpu    ? fmt::format("{}", fmt::join(cell.gpus.ids, ","))
                                       : launched ? ""
                                                  : "-");
  for (const std::string& entry : cell.extra_environment) stage.environment.push_back(entry);
  stage.device = on_cpu ? "cpu" : fmt::format("gpu {}", fmt::join(cell.gpus.ids, ","));
  stage.on_cpu = on_cpu;
  if (cell.gpus.many_machines()) stage.hosts = cell.gpus.hosts;
  stage.output = cell.save_path;
  const std::string_view model = builder.params().value("train_model_name");
  if (!params::is_absent(model)) stage.output += "/" + std::string(model);
  return builder.add(std::move(stage));
}

// A stage that reads the trained weights on one device.
Stage after_training(const TrainCell& cell, std::size_t train, const std::string& weights,
                     bool on_cpu) {
  Stage stage;
  const std::string visible = on_cpu ? "-" : cell.gpus.ids.front();
  stage.environment = cuda_environment(visible);
  stage.device = on_cpu ? "cpu" : "gpu " + visible;
  stage.needs = {train};
  stage.input = weights;
  return stage;
}

void plan_cell(PlanBuilder& builder, const TrainCell& cell) {
  const params::Params& params = builder.params();
  const bool on_cpu =
      cell.gpus.on_cpu() || (builder.options().fleet_on_cpu && cell.gpus.many_machines());
  const std::size_t train = add_training(builder, cell);
  if (builder.mode() == "benchmark_train") return;
  const std::string weights =
      fmt::format("{}/{}", cell.save_path, params.value("train_model_name"));

  if (!params::is_absent(params.value("eval"))) {
    Stage stage = after_training(cell, train, weights, on_cpu);
    stage.kind = StageKind::eval;
    stage.name = cell.name + "/eval";
    std::vector<std::string> pieces{builder.python(), std::string(params.value("eval")),
                                    argument(params.key("pretrained"), weights)};
    if (params.kind() == params::Kind::train_infer_long) {
      pieces.push_back(argument(params.key("train_use_gpu"), cell.use_gpu));
      pieces.push_back(argument(params.key("eval_extra"), params.value("eval_extra")));
    }
    stage.command = command_line(pieces);
    stage.log = fmt::format("{}/{}_eval.log", builder.folder(), cell.name);
    builder.add(std::move(stage));
  }

  if (params::is_absent(cell.commands.export_model)) return;
  Stage stage = after_training(cell, train, weights, on_cpu);
  stage.kind = StageKind::export_model;
  stage.name = cell.name + "/export";
  stage.command = command_line({builder.python(), cell.commands.export_model,
                                argument(params.key("export_weights"), weights),
                                argument(params.key("export_dir"), cell.save_path)});
  stage.log = fmt::format("{}/{}_export.log", builder.folder(), cell.name);
  InferSource source;
  source.model_dir = cell.save_path;
  // Nothing is not null here: the bash then hands on the folder with a slash.
  const std::string_view inside = params.value("inference_dir");
  if (params.has("inference_dir") && inside != "null") {
    source.model_dir += "/" + std::string(inside);
  }
  stage.output = source.model_dir;
  source.made_by = builder.add(std::move(stage));
  source.cell = cell.name;
  // The short layout's bash asks for a variable that it never sets: no images are named.
  if (params.kind() == params::Kind::train_infer_long) source.images = params.value("train_images");
  source.visible = on_cpu ? "-" : cell.gpus.ids.front();
  source.quantised = cell.commands.quantised ? "True" : "False";
  source.weights = weights;
  source.weights_from = {train};
  plan_inference(builder, source);
}

std::vector<std::string> flags_environment(const params::Params& params) {
  if (params::is_absent(params.value("flags"))) return {};
  return params::split_list(params.value("flags"), ';');
}

// fp_items × batch_size instead of the file's autocast, batch size and extra argument; training
// only. On one device each is trained twice, as TIPC's benchmark_train.sh does: once with the
// profiler's options, once for the speed.
void plan_benchmark(PlanBuilder& builder, const TrainCell& base) {
  const params::Params& params = builder.params();
  if (!params.has("bench_batch")) {
    return builder.warn("benchmark_train needs the section train_benchmark_params");
  }
  const std::string profiler = argument(params.key("profiler"), params.value("profiler"));
  const bool profiled = base.gpus.ids.size() <= 1 && !base.gpus.many_machines() && profiler != " ";
  for (const std::string& batch : params.list("bench_batch")) {
    for (const std::string& precision : params.list("fp_items")) {
      TrainCell cell = base;
      cell.autocast = precision == "fp16" ? "amp" : precision;
      cell.batch = batch;
      cell.epochs = params.value("bench_epoch");
      cell.extra_environment = flags_environment(params);
      if (profiled) {
        cell.extra = profiler;
        name_cell(builder, cell, fmt::format("_bs_{}_profiling", batch));
        plan_cell(builder, cell);
      }
      cell.extra = " ";
      name_cell(builder, cell, fmt::format("_bs_{}", batch));
      plan_cell(builder, cell);
    }
  }
}

std::string mode_value(PlanBuilder& builder, std::string_view role) {
  const params::Params& params = builder.params();
  const std::string_view value = params::value_for_mode(params.value(role), builder.mode());
  if (value.empty() && !params::is_absent(params.value(role)) &&
      builder.mode() != "benchmark_train") {
    builder.warn(fmt::format("line {}: `{}` has no value for {}: the argument is left out",
                             params.line(role), params.key(role), builder.mode()));
  }
  return std::string(value);
}

}  // namespace

void plan_training(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const std::string epochs = mode_value(builder, "epochs");
  const std::string batch = mode_value(builder, "train_batch");
  const std::vector<std::string> use_gpu = params.list("train_use_gpu");
  const bool is_long = params.kind() == params::Kind::train_infer_long;
  const std::vector<std::string> autocasts = is_long && builder.mode() != "benchmark_train"
                                                 ? params.list("autocast")
                                                 : std::vector<std::string>{"False"};
  std::size_t entry_number = 0;
  for (const std::string& text : params.list("gpu_list")) {
    TrainCell cell;
    cell.gpus = *params::parse_gpu_entry(text);  // the rules have checked it
    cell.use_gpu = entry_number < use_gpu.size() ? use_gpu[entry_number] : "";
    cell.epochs = epochs;
    cell.batch = batch;
    cell.extra = argument(params.key("train_extra"), params.value("train_extra"));
    ++entry_number;
    for (const std::string& autocast : autocasts) {
      for (const std::string& trainer : params.list("trainer")) {
        cell.autocast = !is_long && trainer == "amp_train" ? "True" : autocast;
        cell.trainer = trainer;
        cell.commands = commands_of(params, trainer);
        if (params::is_absent(cell.commands.train)) continue;
        if (builder.mode() == "benchmark_train") {
          plan_benchmark(builder, cell);
        } else {
          name_cell(builder, cell, "");
          plan_cell(builder, cell);
        }
      }
    }
  }
}

void plan_whole_infer(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const bool is_short = params.kind() == params::Kind::train_infer;
  const std::vector<std::string> models =
      is_short ? std::vector<std::string>{std::string(params.value("infer_model"))}
               : params.list("infer_model");
  const std::vector<std::string> exports = params.list("infer_export");
  const std::vector<std::string> quantised = params.list("infer_quant");
  for (std::size_t i = 0; i < models.size(); ++i) {
    InferSource source;
    source.images = params.value("infer_images");
    source.visible = builder.options().gpu_id;
    source.cell = models.size() > 1 ? fmt::format("model_{}", i) : "";
    source.quantised = params.kind() == params::Kind::kl_quant ? "True"
                       : i < quantised.size()                  ? quantised[i]
                                                               : "";
    source.model_dir = is_short ? std::string(params.value("export_dir")) : models[i];
    if (i < exports.size() && !params::is_absent(exports[i])) {
      if (params.kind() == params::Kind::kl_quant) source.model_dir += "_klquant";
      Stage stage;
      stage.kind =
          params.kind() == params::Kind::kl_quant ? StageKind::convert : StageKind::export_model;
      stage.name = fmt::format("model_{}/{}", i, name(stage.kind));
      stage.command = command_line({builder.python(), exports[i],
                                    argument(params.key("export_weights"), models[i]),
                                    argument(params.key("export_dir"), source.model_dir)});
      stage.log = fmt::format("{}/export_{}.log", builder.folder(), i);
      stage.environment = cuda_environment(source.visible);
      stage.device = source.visible.empty() ? "cpu" : "gpu " + source.visible;
      stage.output = source.model_dir;
      source.made_by = builder.add(std::move(stage));
      if (params.kind() != params::Kind::kl_quant) source.weights = models[i];
    }
    plan_inference(builder, source);
  }
}

void plan_ptq(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const auto own = [&](std::string_view role) {
    return argument(params.key(role), params.value(role));
  };
  InferSource source;
  source.model_dir = params.value("ptq_output");
  source.images = params.value("infer_images");
  source.visible = builder.options().gpu_id;
  if (!params::is_absent(params.value("norm_train"))) {
    Stage stage;
    stage.kind = StageKind::convert;
    stage.name = "quantise";
    stage.command = command_line({builder.python(), std::string(params.value("norm_train")),
                                  own("train_use_gpu"), own("ptq_model"), own("ptq_batches"),
                                  own("train_batch"), own("ptq_data"), own("ptq_output")});
    stage.log = builder.folder() + "/export.log";
    stage.environment = cuda_environment(source.visible);
    stage.device = "cpu";
    stage.output = source.model_dir;
    source.made_by = builder.add(std::move(stage));
  }
  plan_inference(builder, source);
}

}  // namespace assay::chain::plan
