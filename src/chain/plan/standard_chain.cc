#include "chain/plan/standard_chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "chain/params/gpu_entry.h"
#include "chain/plan/launcher.h"

namespace assay::chain::plan {
namespace {

using params::is_absent;

// Part number `index` of a `|` list; "" if it has fewer.
std::string part(std::string_view list, std::size_t index) {
  const std::vector<std::string> parts = split_at(list, '|');
  return index < parts.size() ? parts[index] : std::string();
}

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// A model that inferences read.
struct Model {
  std::string path;
  std::string file;     // prefix that the export made; "": it was there before
  std::string weights;  // that it was exported from; "": unknown
  std::string images;
  std::string visible;
  std::string gpu = "0";
  std::string cell;       // stands before the names of its stages, with a slash
  std::string quantised;  // "True", "False"; "": neither
  std::optional<std::size_t> trained;
  std::optional<std::size_t> made;
};

// One training.
struct Cell {
  std::string trainer;
  std::string autocast;
  std::string epochs;
  std::string batch;
  std::string use_gpu;
  std::string extra;
  std::string suffix;  // tells benchmarks of one cell apart
  std::vector<std::string> flags;
};

class StandardChain {
 public:
  explicit StandardChain(PlanBuilder& builder)
      : builder_(builder),
        options_(builder.options()),
        params_(builder.params()),
        long_(params_.has("mkldnn")),
        python_(options_.python.empty() ? part(value("python"), 0) : options_.python) {}

  Status add() {
    if (builder_.mode() == "whole_infer" || builder_.mode() == "infer") return add_given_models();
    if (builder_.mode() == "benchmark_train") return add_benchmarks();
    const std::vector<std::string> gpus = gpu_list();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      ASSAY_TRY(const Devices devices, devices_of(gpus[i], options_));
      for (const std::string& autocast : long_ ? list("autocast") : std::vector<std::string>{""}) {
        for (const std::string& trainer : list("trainer")) {
          Cell cell{trainer,
                    autocast,
                    by_mode("epochs"),
                    by_mode("train_batch"),
                    use_gpu_of(i),
                    long_ ? arg("train_extra") : "",
                    "",
                    {}};
          if (!long_) cell.autocast = trainer == "amp_train" ? "True" : "False";
          add_cell(devices, cell);
        }
      }
    }
    return {};
  }

 private:
  std::string value(std::string_view role) const { return std::string(params_.value(role)); }
  std::vector<std::string> list(std::string_view role) const { return params_.list(role); }
  std::string arg(std::string_view role) const { return arg(role, value(role)); }
  std::string arg(std::string_view role, std::string_view given) const {
    return argument(params_.key(role), given);
  }
  std::string log_of(const std::string& name) const {
    std::string flat = name;
    std::ranges::replace(flat, '/', '_');
    return builder_.folder() + "/" + flat;
  }
  bool on_cpu() const { return options_.device == "cpu"; }

  std::vector<std::string> gpu_list() const {
    return on_cpu() ? std::vector<std::string>{"-1"} : list("gpu_list");
  }

  std::string use_gpu_of(std::size_t entry) const {
    const std::string given = value("train_use_gpu");
    if (on_cpu() && !is_absent(given)) return has(given, "gpu") ? "cpu" : "False";
    return long_ ? part(given, entry) : given;
  }

  // The value of this mode. A list that does not name it is told once.
  std::string by_mode(std::string_view role) {
    const std::string given = value(role);
    const std::string_view found = params::value_for_mode(given, builder_.mode());
    if (found.empty() && !is_absent(given) && !told_.contains(role)) {
      told_.insert(std::string(role));
      builder_.warn(fmt::format("line {}: `{}` has no value for {}: the argument is left out",
                                params_.line(role), params_.key(role), builder_.mode()));
    }
    return std::string(found);
  }

  // The commands of a trainer: training and export. Nothing for one whose training is null.
  struct Commands {
    std::string train;
    std::string exporter;
    std::string quantised = "False";
  };
  Commands commands_of(const std::string& trainer) const {
    struct Own {
      std::string_view train;
      std::string_view exporter;
    };
    constexpr std::array<Own, 5> kOwn{{{"pact_train", "quant_export"},
                                       {"fpgm_train", "fpgm_export"},
                                       {"distill_train", "distill_export"},
                                       {"train_1", "export1"},
                                       {"train_2", "export2"}}};
    for (const Own& own : kOwn) {
      if (!long_ || !params_.has(own.train) || params_.key(own.train) != trainer) continue;
      if (trainer == "to_static_train") {
        return {value("norm_train") + " " + value(own.train), value("norm_export")};
      }
      return {value(own.train), value(own.exporter), own.train == "pact_train" ? "True" : "False"};
    }
    return {value("norm_train"), value("norm_export")};
  }

  void add_cell(const Devices& devices, const Cell& cell) {
    const Commands commands = commands_of(cell.trainer);
    if (is_absent(commands.train)) return;
    const bool machines = devices.entry.many_machines();
    const std::string place =
        fmt::format("{}_gpus_{}_autocast_{}{}{}", cell.trainer, devices.entry.gpus, cell.autocast,
                    cell.suffix, devices.servers);
    const std::string name = fmt::format("{}_nodes_{}", place, devices.nodes());
    const std::string save = builder_.folder() + "/" +
                             (!long_     ? name + ".log"
                              : machines ? name
                                         : place);
    const std::string checkpoint = value("train_model_name");
    const std::string weights = save + "/" + checkpoint;

    Stage train;
    train.kind = StageKind::train;
    train.name = name + "/train";
    train.command = train_command(devices, cell, commands.train, save);
    train.shows_log = false;
    train.environment = cell.flags;
    add_environment(train, devices.visible);
    train.device = devices.device;
    train.on_cpu = train.device == "cpu";
    train.hosts = devices.entry.many_machines() ? devices.entry.hosts : std::vector<std::string>();
    train.output = is_absent(checkpoint)          ? save
                   : options_.fallback_checkpoint ? save + "/"
                                                  : weights;
    const std::size_t trained = add_stage(std::move(train));
    if (builder_.mode() != "benchmark_train") {
      add_after_training(devices, cell, commands, {name, save, weights, trained});
    }
  }

  std::string train_command(const Devices& devices, const Cell& cell, const std::string& train,
                            const std::string& save) const {
    const std::string start = fmt::format("{} {}{}", python_, devices.launch, train);
    if (!long_) {
      return fmt::format("{} {} {} {} {}", start, arg("save_dir", save), arg("epochs", cell.epochs),
                         arg("pretrained"), arg("train_batch", cell.batch));
    }
    std::string epochs = arg("epochs", cell.epochs);
    std::string pretrained = arg("pretrained");
    if (devices.entry.many_machines()) std::swap(epochs, pretrained);
    const char* amp = cell.autocast == "amp" ? "Global.use_amp=True Global.scale_loss=1024.0 "
                                               "Global.use_dynamic_loss_scaling=True"
                                             : "";
    return fmt::format("{} {} {} {} {} {} {} {} {}", start, arg("train_use_gpu", cell.use_gpu),
                       arg("save_dir", save), epochs, pretrained, arg("autocast", cell.autocast),
                       arg("train_batch", cell.batch), cell.extra, amp);
  }

  struct Trained {
    std::string name;
    std::string save;
    std::string weights;
    std::size_t stage = 0;
  };

  void add_after_training(const Devices& devices, const Cell& cell, const Commands& commands,
                          const Trained& trained) {
    if (!is_absent(value("eval"))) {
      Stage eval;
      eval.kind = StageKind::eval;
      eval.name = trained.name + "/eval";
      eval.command =
          fmt::format("{} {} {}", python_, value("eval"), arg("pretrained", trained.weights));
      if (long_) {
        eval.command +=
            fmt::format(" {} {}", arg("train_use_gpu", cell.use_gpu), arg("eval_extra"));
      }
      add_environment(eval, devices.first);
      eval.device = devices.first_device;
      eval.input = trained.weights;
      eval.needs = {trained.stage};
      add_stage(std::move(eval));
    }
    if (is_absent(commands.exporter)) return;
    Model model;
    model.path = trained.save;
    if (const std::string below = value("inference_dir"); long_ && below != "null") {
      model.path += "/" + below;
    }
    Stage exporter;
    exporter.kind = StageKind::export_model;
    exporter.name = trained.name + "/export";
    exporter.command =
        fmt::format("{} {} {} {}", python_, commands.exporter,
                    arg("export_weights", trained.weights), arg("export_dir", trained.save));
    add_environment(exporter, devices.first);
    exporter.device = devices.first_device;
    exporter.input = trained.weights;
    exporter.output = model.path;
    exporter.needs = {trained.stage};
    model.made = add_stage(std::move(exporter));
    model.trained = trained.stage;
    model.file = model.path;
    model.weights = trained.weights;
    // The bash of the short layout asks for a variable that it never sets: no images are named.
    model.images = long_ ? value("train_images") : "";
    model.visible = devices.first;
    if (devices.first != "-") model.gpu = devices.first;
    model.cell = trained.name + "/";
    model.quantised = commands.quantised;
    add_inferences(model);
  }

  // Models that are there already. Each is exported first if the file says how.
  Status add_given_models() {
    const std::vector<std::string> models =
        long_ ? list("infer_model")
              : std::vector<std::string>{is_absent(value("infer_export")) ? value("export_dir")
                                                                          : value("infer_model")};
    for (std::size_t i = 0; i < models.size(); ++i) {
      Model model;
      model.images = value("infer_images");
      model.visible = on_cpu() ? "-" : options_.third;
      if (!options_.third.empty()) model.gpu = options_.third;
      model.path = long_ ? models[i] : value("export_dir");
      if (long_) model.quantised = part(value("infer_quant"), i);
      if (models.size() > 1) model.cell = fmt::format("model_{}/", i);
      const std::string exporter = long_ ? part(value("infer_export"), i) : value("infer_export");
      if (!is_absent(exporter)) {
        Stage stage;
        stage.kind = StageKind::export_model;
        stage.name = fmt::format("model_{}/export", i);
        stage.command =
            fmt::format("{} {} {} {}", python_, exporter, arg("export_weights", models[i]),
                        arg("export_dir", model.path));
        stage.log = log_of(fmt::format("export_{}", i));
        add_environment(stage, model.visible);
        stage.device = options_.third.empty() ? "cpu" : "gpu " + options_.third;
        stage.output = model.path;
        model.made = add_stage(std::move(stage));
        model.file = model.path;
        model.weights = models[i];
      }
      add_inferences(model);
    }
    return {};
  }

  // benchmark_train: batch sizes × precisions, on one device first with the profiler.
  Status add_benchmarks() {
    if (!options_.third.empty() || !params_.has("bench_batch")) {
      return usage_error(
          options_.third.empty()
              ? "benchmark_train needs the section train_benchmark_params"
              : "benchmark_train without a script of the suite trains what train_benchmark_params "
                "says: expected nothing after the mode");
    }
    const std::vector<std::string> gpus = gpu_list();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      ASSAY_TRY(const Devices devices, devices_of(gpus[i], options_));
      const bool one_device = devices.entry.ids.size() <= 1 && !devices.entry.many_machines();
      for (const std::string& trainer : list("trainer")) {
        for (const std::string& batch : list("bench_batch")) {
          for (const std::string& precision : list("fp_items")) {
            Cell cell{trainer,
                      precision == "fp16" ? "amp" : precision,
                      value("bench_epoch"),
                      batch,
                      use_gpu_of(i),
                      arg("profiler"),
                      fmt::format("_bs_{}_profiling", batch),
                      flags()};
            if (one_device && !is_absent(value("profiler"))) add_cell(devices, cell);
            cell.extra.clear();
            cell.suffix = fmt::format("_bs_{}", batch);
            add_cell(devices, cell);
          }
        }
      }
    }
    return {};
  }

  // `FLAGS_a=1;FLAGS_b=2`.
  std::vector<std::string> flags() const {
    std::vector<std::string> flags = split_at(value("flags"), ';');
    std::erase_if(flags, [](const std::string& flag) { return is_absent(flag); });
    return flags;
  }

  void add_inferences(const Model& model) {
    if (is_absent(value("inference"))) return;
    std::optional<std::size_t> dynamic;
    if (!model.weights.empty() && !options_.dynamic.empty()) dynamic = add_dynamic(model);
    for (const std::string& use : on_cpu() ? cpu_uses() : list("infer_use_gpu")) {
      const bool cpu = use == "False" || use == "cpu";
      if (!long_) {
        add_short_inferences(model, use, cpu, dynamic);
      } else if (cpu) {
        add_cpu_inferences(model, use, dynamic);
      } else {
        add_gpu_inferences(model, use, dynamic);
      }
    }
  }

  std::vector<std::string> cpu_uses() const {
    return {has(value("infer_use_gpu"), "gpu") ? "cpu" : "False"};
  }

  std::size_t add_dynamic(const Model& model) {
    std::string command = options_.dynamic;
    const auto fill = [&](std::string_view hole, const std::string& text) {
      for (std::size_t at = 0; (at = command.find(hole, at)) != std::string::npos;
           at += text.size()) {
        command.replace(at, hole.size(), text);
      }
    };
    fill("{weights}", model.weights);
    fill("{images}", value("infer_images"));
    Stage stage;
    stage.kind = StageKind::infer;
    stage.name = model.cell + "dynamic";
    stage.command = python_ + " " + command;
    add_environment(stage, model.visible);
    stage.device = "cpu";
    if (model.trained) stage.needs = {*model.trained};
    return add_stage(std::move(stage));
  }

  void add_short_inferences(const Model& model, const std::string& use, bool cpu,
                            const std::optional<std::size_t>& dynamic) {
    for (const std::string& batch : list("infer_batch")) {
      add_inference(model, cpu, fmt::format("infer_{}_batchsize_{}", cpu ? "cpu" : "gpu", batch),
                    fmt::format("{}={} {} {} {} {}", params_.key("infer_use_gpu"), use,
                                arg("infer_model_key", model.path), arg("infer_batch", batch),
                                arg("infer_images", model.images), arg("benchmark")),
                    dynamic);
    }
  }

  void add_cpu_inferences(const Model& model, const std::string& use,
                          const std::optional<std::size_t>& dynamic) {
    for (const std::string& mkldnn : list("mkldnn")) {
      for (const std::string& threads : list("threads")) {
        for (const std::string& batch : list("infer_batch")) {
          for (const std::string& precision : list("precision")) {
            if (mkldnn == "False" && precision == "fp16") continue;
            if (model.quantised == "True" && precision != "int8") continue;
            add_inference(
                model, true,
                fmt::format("infer_cpu_usemkldnn_{}_threads_{}_precision_{}_batchsize_{}", mkldnn,
                            threads, precision, batch),
                fmt::format("{}={} {} {} {} {}  {} {} {} {}", params_.key("infer_use_gpu"), use,
                            arg("mkldnn", mkldnn), arg("threads", threads),
                            arg("infer_model_key", model.path), arg("infer_batch", batch),
                            arg("infer_images", model.images), arg("benchmark"),
                            arg("precision", precision), arg("infer_extra")),
                is_absent(precision) || precision == "fp32" ? dynamic : std::nullopt);
          }
        }
      }
    }
  }

  void add_gpu_inferences(const Model& model, const std::string& use,
                          const std::optional<std::size_t>& dynamic) {
    for (const std::string& tensorrt : list("tensorrt")) {
      for (const std::string& precision : list("precision")) {
        const bool int8 = has(precision, "int8");
        if (int8 && (model.quantised == "False" || tensorrt == "False")) continue;
        if (tensorrt == "False" && has(precision, "fp16")) continue;
        for (const std::string& batch : list("infer_batch")) {
          add_inference(
              model, false,
              fmt::format("infer_gpu_usetrt_{}_precision_{}_batchsize_{}", tensorrt, precision,
                          batch),
              fmt::format("{}={} {} {} {} {} {} {} {} ", params_.key("infer_use_gpu"), use,
                          arg("tensorrt", tensorrt), arg("precision", precision),
                          arg("infer_model_key", model.path), arg("infer_batch", batch),
                          arg("infer_images", model.images), arg("benchmark"), arg("infer_extra")),
              is_absent(precision) || precision == "fp32" ? dynamic : std::nullopt);
        }
      }
    }
  }

  // An inference, and its comparison with the dynamic one.
  void add_inference(const Model& model, bool cpu, const std::string& what,
                     const std::string& arguments, const std::optional<std::size_t>& dynamic) {
    Stage stage;
    stage.kind = StageKind::infer;
    stage.name = model.cell + what;
    stage.command = fmt::format("{} {} {}", python_, value("inference"), arguments);
    std::string before = model.cell;
    std::ranges::replace(before, '/', '_');
    stage.log = log_of(before + "python_" + what);
    add_environment(stage, !cpu && model.visible == "-" ? "" : model.visible);
    stage.device = cpu ? "cpu" : "gpu " + model.gpu;
    stage.asks_for_gpu = !cpu;
    stage.input = model.file;
    if (model.made) stage.needs = {*model.made};
    const std::size_t infer = add_stage(std::move(stage));
    if (!dynamic) return;
    const std::string& log = builder_.stage(infer).log;
    Stage compare;
    compare.kind = StageKind::compare;
    compare.name = builder_.stage(infer).name + "_against_dynamic";
    compare.argv = {options_.self, "chain", "compare", "--dynamic", builder_.stage(*dynamic).log,
                    "--static",    log};
    compare.command = shell_line(compare.argv);
    compare.log = log.substr(0, log.rfind('.')) + "_against_dynamic.log";
    compare.needs = {*dynamic, infer};
    add_stage(std::move(compare));
  }

  static void add_environment(Stage& stage, std::string_view visible) {
    for (std::string& entry : cuda_environment(visible)) {
      stage.environment.push_back(std::move(entry));
    }
  }

  std::size_t add_stage(Stage stage) {
    if (stage.log.empty()) stage.log = log_of(stage.name);
    if (stage.device.empty()) stage.device = "cpu";
    return builder_.add(std::move(stage));
  }

  PlanBuilder& builder_;
  const PlanOptions& options_;
  const params::Params& params_;
  bool long_;  // the layout of 51 lines
  std::string python_;
  std::set<std::string, std::less<>> told_;
};

}  // namespace

Status add_standard_chain(PlanBuilder& builder) { return StandardChain(builder).add(); }

}  // namespace assay::chain::plan
