// The inference matrix: use-gpu × mkldnn × threads × batch × TensorRT × precision.

#include <fmt/format.h>

#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {
namespace {

bool is_cpu(std::string_view use_gpu) { return use_gpu == "False" || use_gpu == "cpu"; }

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Which points of the long matrix make no sense, by the rules of LAYOUTS.md.
bool skipped(const InferPoint& point, const std::string& quantised, params::Kind kind) {
  const bool quant = quantised == "True";
  if (!point.gpu) {
    if (kind == params::Kind::cpp_infer) return point.mkldnn == "False" && quant;
    return (point.mkldnn == "False" && point.precision == "fp16") ||
           (quant && point.precision != "int8");
  }
  const bool int8 = contains(point.precision, "int8");
  const bool low = int8 || contains(point.precision, "fp16");
  if (kind == params::Kind::kl_quant) return point.precision != "int8";
  if (kind == params::Kind::cpp_infer && quant && (point.tensorrt == "False" || int8)) return true;
  return (quantised == "False" && int8) || (low && point.tensorrt == "False");
}

void add_cpu_points(const params::Params& params, const std::string& use_gpu,
                    std::vector<InferPoint>& out) {
  // A compiled predictor computes in fp32 on the CPU, whatever the precision list says.
  const std::vector<std::string> precisions = params.kind() == params::Kind::cpp_infer
                                                  ? std::vector<std::string>{"fp32"}
                                                  : params.list("precision");
  for (const std::string& mkldnn : params.list("mkldnn")) {
    for (const std::string& threads : params.list("threads")) {
      for (const std::string& batch : params.list("infer_batch")) {
        for (const std::string& precision : precisions) {
          out.push_back({use_gpu, false, mkldnn, threads, "", precision, batch});
        }
      }
    }
  }
}

void add_gpu_points(const params::Params& params, const std::string& use_gpu,
                    std::vector<InferPoint>& out) {
  for (const std::string& tensorrt : params.list("tensorrt")) {
    for (const std::string& precision : params.list("precision")) {
      for (const std::string& batch : params.list("infer_batch")) {
        out.push_back({use_gpu, true, "", "", tensorrt, precision, batch});
      }
    }
  }
}

std::string variant(const InferPoint& point, bool long_matrix) {
  if (!long_matrix) {
    return fmt::format("infer_{}_batchsize_{}", point.gpu ? "gpu" : "cpu", point.batch);
  }
  if (point.gpu) {
    return fmt::format("infer_gpu_usetrt_{}_precision_{}_batchsize_{}", point.tensorrt,
                       point.precision, point.batch);
  }
  return fmt::format("infer_cpu_usemkldnn_{}_threads_{}_precision_{}_batchsize_{}", point.mkldnn,
                     point.threads, point.precision, point.batch);
}

// The arguments after the script, in the bash's order, which differs between kinds and devices.
std::vector<std::string> arguments(const params::Params& params, const InferPoint& point,
                                   const InferSource& source) {
  const auto own = [&](std::string_view role) {
    return argument(params.key(role), params.value(role));
  };
  const auto set = [&](std::string_view role, std::string_view value) {
    return argument(params.key(role), value);
  };
  // The bash reads save_log's value in the quantisation script only.
  const std::string save_log =
      params.kind() == params::Kind::kl_quant ? own("save_log") : std::string(" ");
  const std::string model = set("infer_model_key", source.model_dir);
  const std::string batch = set("infer_batch", point.batch);
  const std::string images = set("infer_images", source.images);
  switch (params.kind()) {
    case params::Kind::train_infer:
    case params::Kind::ptq:
      return {model, batch, images, own("benchmark")};
    case params::Kind::cpp_infer: {
      std::vector<std::string> list =
          point.gpu ? std::vector<std::string>{set("tensorrt", point.tensorrt),
                                               set("precision", point.precision)}
                    : std::vector<std::string>{set("mkldnn", point.mkldnn),
                                               set("threads", point.threads)};
      for (const std::string& piece :
           {model, batch, images, own("benchmark"), own("cpp_det"), own("cpp_rec"), own("cpp_cls"),
            own("cpp_angle"), own("infer_extra")}) {
        list.push_back(piece);
      }
      return list;
    }
    default:
      break;
  }
  if (point.gpu) {
    return {set("tensorrt", point.tensorrt),
            set("precision", point.precision),
            model,
            batch,
            images,
            own("benchmark"),
            own("infer_extra"),
            save_log};
  }
  return {set("mkldnn", point.mkldnn),
          set("threads", point.threads),
          model,
          batch,
          save_log,
          images,
          own("benchmark"),
          set("precision", point.precision),
          own("infer_extra")};
}

}  // namespace

std::vector<InferPoint> infer_points(const params::Params& params, const std::string& quantised) {
  std::vector<InferPoint> all;
  const bool long_matrix = params.has("precision");
  for (const std::string& use_gpu : params.list("infer_use_gpu")) {
    const bool gpu = !is_cpu(use_gpu);
    if (!long_matrix) {
      for (const std::string& batch : params.list("infer_batch")) {
        InferPoint point;
        point.use_gpu = use_gpu;
        point.gpu = gpu;
        point.batch = batch;
        all.push_back(point);
      }
    } else if (gpu) {
      add_gpu_points(params, use_gpu, all);
    } else {
      add_cpu_points(params, use_gpu, all);
    }
  }
  if (long_matrix) {
    std::erase_if(
        all, [&](const InferPoint& point) { return skipped(point, quantised, params.kind()); });
  }
  return all;
}

namespace {

std::string in_cell(const InferSource& source, const std::string& what) {
  return source.cell.empty() ? what : source.cell + "/" + what;
}

std::string filled(std::string text, std::string_view hole, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(hole, at)) != std::string::npos; at += value.size()) {
    text.replace(at, hole.size(), value);
  }
  return text;
}

// The stage that infers dynamically, from the weights themselves; none where nobody asked for it.
std::optional<std::size_t> add_dynamic(PlanBuilder& builder, const InferSource& source) {
  const std::string& command = builder.options().dynamic;
  if (command.empty() || source.weights.empty()) return std::nullopt;
  Stage stage;
  stage.kind = StageKind::infer;
  stage.name = in_cell(source, "dynamic");
  stage.command = builder.python() + " " +
                  filled(filled(command, "{weights}", source.weights), "{images}",
                         std::string(builder.params().value("infer_images")));
  stage.log = fmt::format("{}/{}{}dynamic.log", builder.folder(), source.cell,
                          source.cell.empty() ? "" : "_");
  stage.environment = cuda_environment(source.visible);
  stage.device = "cpu";
  stage.needs = source.weights_from;
  return builder.add(std::move(stage));
}

void add_comparison(PlanBuilder& builder, std::size_t dynamic, std::size_t infer) {
  Stage stage;
  stage.kind = StageKind::compare;
  stage.name = builder.stage(infer).name + "_against_dynamic";
  stage.argv = {builder.options().self,
                "chain",
                "compare",
                "--dynamic",
                builder.stage(dynamic).log,
                "--static",
                builder.stage(infer).log};
  stage.command = params::join_words(stage.argv);
  const std::string& log = builder.stage(infer).log;
  stage.log = log.substr(0, log.rfind('.')) + "_against_dynamic.log";
  stage.device = "cpu";
  stage.needs = {dynamic, infer};
  builder.add(std::move(stage));
}

bool is_full_precision(const InferPoint& point) {
  return point.precision.empty() || point.precision == "null" || point.precision == "fp32";
}

}  // namespace

void plan_inference(PlanBuilder& builder, const InferSource& source) {
  const params::Params& params = builder.params();
  if (params::is_absent(params.value("inference"))) return;
  const std::optional<std::size_t> dynamic = add_dynamic(builder, source);
  const bool compiled = params.kind() == params::Kind::cpp_infer;
  for (const InferPoint& point : infer_points(params, source.quantised)) {
    Stage stage;
    const std::string what = variant(point, params.has("precision"));
    stage.kind = StageKind::infer;
    stage.name = in_cell(source, what);
    std::vector<std::string> pieces;
    if (!compiled) pieces.push_back(builder.python());
    pieces.emplace_back(params.value("inference"));
    pieces.push_back(fmt::format("{}={}", params.key("infer_use_gpu"), point.use_gpu));
    for (std::string& piece : arguments(params, point, source)) pieces.push_back(std::move(piece));
    stage.command = command_line(pieces);
    stage.log = fmt::format("{}/{}{}_{}.log", builder.folder(),
                            source.cell.empty() ? "" : source.cell + "_",
                            compiled ? "cpp" : "python", what);
    stage.environment = cuda_environment(source.visible);
    if (source.made_by) stage.needs = {*source.made_by};
    if (source.made_by) stage.input = source.model_dir;
    stage.asks_for_gpu = point.gpu;
    const std::string gpu = source.visible.empty() || source.visible == "-" ? "0" : source.visible;
    stage.device = point.gpu ? "gpu " + gpu : "cpu";
    if (point.gpu && source.visible == "-") stage.environment.clear();
    if (compiled) {
      const auto words = params::split_words(params.value("inference"));
      if (words && !words->empty()) stage.needs_program = words->front();
    }
    const std::size_t added = builder.add(std::move(stage));
    if (dynamic && is_full_precision(point)) add_comparison(builder, *dynamic, added);
  }
}

}  // namespace assay::chain::plan
