#include "chain/params/layouts.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "chain/params/dialect.h"

namespace assay::chain::params {
namespace {

constexpr Place kGroup{"", "##", "##", "", Rule::any, false};

constexpr Place fixed(std::string_view role, Rule rule, std::string_view key = {}) {
  const std::string_view name = key.empty() ? role : key;
  return {role, name, name.substr(0, name.find('|')), "", rule, false};
}
// A fixed key whose place `null:null` may fill.
constexpr Place fixed_or_null(std::string_view role, Rule rule, std::string_view key = {}) {
  Place place = fixed(role, rule, key);
  place.nullable = true;
  return place;
}
constexpr Place open(std::string_view role, std::string_view example, std::string_view hints,
                     Rule rule = Rule::any) {
  return {role, "", example, hints, rule, true};
}

// The place of a trainer of the file's own.
constexpr Place own_trainer(std::string_view role) {
  Place place = open(role, "null", "train", Rule::maybe);
  place.also = "amp_train|fleet_train|to_static_train";
  return place;
}
// Where older files have a `##` line.
constexpr Place fixed_or_group(std::string_view role, Rule rule) {
  Place place = fixed_or_null(role, rule);
  place.group_too = true;
  return place;
}

// ---- train_infer: the 32-line layout (also amp, fleet, pact and Windows files) ----
constexpr std::array kTrain{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("gpu_list", Rule::gpu_list),
    open("train_use_gpu", "--use-gpu", "gpu|device", Rule::device),
    open("epochs", "--epochs", "epoch|iter|step", Rule::by_mode),
    open("save_dir", "--output-dir", "output|save|dir"),
    open("train_batch", "--batch-size", "batch|bs", Rule::by_mode),
    open("pretrained", "--pretrained", "pretrain|weight|checkpoint|init"),
    fixed("train_model_name", Rule::any),
    open("train_images", "--data-path", "data|img|image"),
    kGroup,
    fixed("trainer", Rule::trainers),
    fixed("norm_train", Rule::command,
          "norm_train|amp_train|fleet_train|pact_train|fpgm_train|distill_train|to_static_train"),
    kGroup,
};
constexpr std::array kEval{fixed("eval", Rule::maybe), kGroup};
constexpr std::array kInfer{
    open("export_dir", "--save-inference-dir", "save|output|infer"),
    open("export_weights", "--pretrained", "pretrain|weight|checkpoint|model"),
    fixed("norm_export", Rule::maybe),
    kGroup,
    fixed("infer_model", Rule::any, "train_model|infer_model"),
    fixed("infer_export", Rule::maybe),
    kGroup,
    fixed("inference", Rule::command),
    open("infer_use_gpu", "--use-gpu", "gpu|device", Rule::devices),
    open("infer_batch", "--batch-size", "batch|bs", Rule::counts),
    open("infer_model_key", "--model-dir", "model"),
    open("infer_images", "--img-path", "img|image|data|input"),
    open("benchmark", "--benchmark", "benchmark"),
};
constexpr std::array kTrainInfer{SectionLayout{"train_params", kTrain},
                                 SectionLayout{"eval_params", kEval},
                                 SectionLayout{"infer_params", kInfer}};

// ---- train_infer_long: the 51-line layout ----
constexpr std::array kLongTrain{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("gpu_list", Rule::gpu_list),
    open("train_use_gpu", "Global.use_gpu", "gpu|device", Rule::device),
    open("autocast", "Global.auto_cast", "cast|amp", Rule::autocast),
    open("epochs", "Global.epoch_num", "epoch|iter|step", Rule::by_mode),
    open("save_dir", "Global.save_model_dir", "output|save|dir"),
    open("train_batch", "Train.loader.batch_size_per_card", "batch|bs", Rule::by_mode),
    open("pretrained", "Global.pretrained_model", "pretrain|weight|checkpoint|init"),
    fixed("train_model_name", Rule::any),
    open("train_images", "train_infer_img_dir", "img|image|data|input"),
    open("train_extra", "null", ""),
    kGroup,
    fixed("trainer", Rule::trainers),
    fixed("norm_train", Rule::command, "norm_train|amp_train|fleet_train"),
    // Two models of PaddleOCR name these after the exports; the bash reads them by place.
    fixed_or_null("pact_train", Rule::maybe, "pact_train|quant_train|quant_export"),
    fixed_or_null("fpgm_train", Rule::maybe, "fpgm_train|prune_train|fpgm_export"),
    fixed_or_null("distill_train", Rule::maybe),
    own_trainer("train_1"),
    own_trainer("train_2"),
    kGroup,
};
constexpr std::array kLongEval{fixed("eval", Rule::maybe), open("eval_extra", "null", ""), kGroup};
constexpr std::array kLongInfer{
    open("export_dir", "Global.save_inference_dir", "save|output|infer"),
    open("export_weights", "Global.checkpoints", "pretrain|weight|checkpoint|model"),
    fixed("norm_export", Rule::maybe),
    fixed_or_null("quant_export", Rule::maybe, "quant_export|pact_export"),
    fixed_or_null("fpgm_export", Rule::maybe, "fpgm_export|prune_export"),
    fixed_or_null("distill_export", Rule::maybe),
    fixed_or_null("export1", Rule::maybe),
    fixed_or_null("export2", Rule::maybe),
    fixed_or_group("inference_dir", Rule::any),
    fixed("infer_model", Rule::list, "infer_model|train_model"),
    fixed("infer_export", Rule::commands),
    fixed("infer_quant", Rule::flags),
    fixed("inference", Rule::command),
    open("infer_use_gpu", "--use_gpu", "gpu|device", Rule::devices),
    open("mkldnn", "--enable_mkldnn", "mkldnn|onednn", Rule::flags),
    open("threads", "--cpu_threads", "thread", Rule::counts),
    open("infer_batch", "--rec_batch_num", "batch|bs", Rule::counts),
    open("tensorrt", "--use_tensorrt", "trt|tensorrt", Rule::flags),
    open("precision", "--precision", "precision", Rule::precisions),
    open("infer_model_key", "--det_model_dir", "model"),
    open("infer_images", "--image_dir", "img|image|data|input"),
    open("save_log", "null", "log"),
    open("benchmark", "--benchmark", "benchmark"),
    open("infer_extra", "null", ""),
};
constexpr std::array kInferBenchmark{fixed("random_infer_input", Rule::any)};
constexpr std::array kTrainBenchmark{
    fixed("bench_batch", Rule::counts, "batch_size"),
    fixed("fp_items", Rule::precisions),
    fixed("bench_epoch", Rule::count, "epoch"),
    open("profiler", "--profiler_options", "profiler"),
    fixed("flags", Rule::settings),
};
constexpr std::array kToStatic{fixed("to_static_train", Rule::any)};
constexpr std::array kTrainInferLong{
    SectionLayout{"train_params", kLongTrain},
    SectionLayout{"eval_params", kLongEval},
    SectionLayout{"infer_params", kLongInfer},
    SectionLayout{"infer_benchmark_params", kInferBenchmark, true},
    SectionLayout{"train_benchmark_params", kTrainBenchmark, true},
    SectionLayout{"to_static_train_benchmark_params", kToStatic, true}};

// ---- ptq: quantisation after training ----
constexpr std::array kPtq{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    open("train_use_gpu", "--use_gpu", "gpu|device", Rule::device),
    open("ptq_model", "--model_path", "model"),
    open("ptq_output", "--output_dir", "output|save"),
    open("ptq_data", "--data_dir", "data"),
    open("ptq_batches", "--batch_num", "num", Rule::count),
    open("train_batch", "--batch_size", "size", Rule::count),
    kGroup,
    fixed("trainer", Rule::trainers),
    fixed("norm_train", Rule::command, "PTQ"),
    kGroup,
};
constexpr std::array kPtqInfer{
    fixed("inference", Rule::command),
    open("infer_use_gpu", "--use-gpu", "gpu|device", Rule::devices),
    open("infer_batch", "--batch-size", "batch|bs", Rule::counts),
    open("infer_model_key", "--model-dir", "model"),
    open("infer_images", "--img-path", "img|image|data|input"),
    open("benchmark", "--benchmark", "benchmark"),
};
constexpr std::array kPtqSections{SectionLayout{"ptq_params", kPtq},
                                  SectionLayout{"infer_params", kPtqInfer}};

constexpr std::array kKlQuant{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    open("export_weights", "Global.pretrained_model", "pretrain|weight|checkpoint|model"),
    open("export_dir", "Global.save_inference_dir", "save|output|infer"),
    fixed("infer_model", Rule::list, "infer_model|train_model"),
    fixed("infer_export", Rule::commands),
    fixed("infer_quant", Rule::flags),
    fixed("inference", Rule::command),
    open("infer_use_gpu", "--use_gpu", "gpu|device", Rule::devices),
    open("mkldnn", "--enable_mkldnn", "mkldnn|onednn", Rule::flags),
    open("threads", "--cpu_threads", "thread", Rule::counts),
    open("infer_batch", "--rec_batch_num", "batch|bs", Rule::counts),
    open("tensorrt", "--use_tensorrt", "trt|tensorrt", Rule::flags),
    open("precision", "--precision", "precision", Rule::precisions),
    open("infer_model_key", "--rec_model_dir", "model"),
    open("infer_images", "--image_dir", "img|image|data|input"),
    open("save_log", "null", "log"),
    open("benchmark", "--benchmark", "benchmark"),
    open("infer_extra", "null", ""),
    open("infer_extra_2", "null", ""),
};
constexpr std::array kKlQuantSections{SectionLayout{"kl_quant_params", kKlQuant}};

// ---- cpp_infer: a compiled predictor with flags ----
constexpr std::array kCppInfer{
    fixed("model_name", Rule::text),
    fixed("use_opencv", Rule::flag),
    fixed("infer_model", Rule::list, "infer_model"),
    fixed("infer_quant", Rule::flags),
    fixed("inference", Rule::program),
    open("infer_use_gpu", "--use_gpu", "gpu|device", Rule::devices),
    open("mkldnn", "--enable_mkldnn", "mkldnn|onednn", Rule::flags),
    open("threads", "--cpu_threads", "thread", Rule::counts),
    open("infer_batch", "--rec_batch_num", "batch|bs", Rule::counts),
    open("tensorrt", "--use_tensorrt", "trt|tensorrt", Rule::flags),
    open("precision", "--precision", "precision", Rule::precisions),
    open("infer_model_key", "--rec_model_dir", "model"),
    open("infer_images", "--image_dir", "img|image|data|input"),
    open("infer_extra", "null", ""),
    open("benchmark", "--benchmark", "benchmark"),
    open("cpp_det", "--det", "det"),
    open("cpp_rec", "--rec", "rec"),
    open("cpp_cls", "--cls", "cls"),
    open("cpp_angle", "--use_angle_cls", "angle"),
};
constexpr std::array kCppInferSections{SectionLayout{"cpp_infer_params", kCppInfer}};

// ---- inference_cpp: the predictor reads the params file itself ----
constexpr std::array kCppConfig{
    fixed("model_name", Rule::text),
    fixed("use_gpu", Rule::count),
    fixed("gpu_id", Rule::count),
    fixed("gpu_mem", Rule::count),
    fixed("cpu_math_library_num_threads", Rule::count),
    fixed("cls_model_path", Rule::text),
    fixed("cls_params_path", Rule::text),
    fixed("resize_short_size", Rule::count),
    fixed("crop_size", Rule::count),
};
constexpr std::array kCppConfigSections{SectionLayout{"", kCppConfig}};

// ---- paddle2onnx ----
constexpr std::array kOnnx{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("2onnx", Rule::program),
    open("onnx_model_dir", "--model_dir", "model_dir"),
    open("model_filename", "--model_filename", "model_file"),
    open("params_filename", "--params_filename", "params_file"),
    open("onnx_file", "--save_file", "save"),
    open("opset", "--opset_version", "opset", Rule::count),
    open("checker", "--enable_onnx_checker", "check", Rule::flag),
    fixed("inference", Rule::command),
    open("infer_model_key", "--onnx_file", "onnx|model"),
    open("infer_images", "--img_path", "img|image|data|input"),
};
constexpr std::array kOnnxSections{SectionLayout{"paddle2onnx_params", kOnnx}};

constexpr std::array kOnnxPair{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("2onnx", Rule::program),
    open("det_model_dir", "--det_model_dir", "det_model"),
    open("model_filename", "--model_filename", "model_file"),
    open("params_filename", "--params_filename", "params_file"),
    open("det_file", "--det_save_file", "det_save"),
    open("rec_model_dir", "--rec_model_dir", "rec_model"),
    open("rec_file", "--rec_save_file", "rec_save"),
    open("opset", "--opset_version", "opset", Rule::count),
    open("checker", "--enable_onnx_checker", "check", Rule::flag),
    fixed("inference", Rule::command),
    open("infer_use_gpu", "--use_gpu", "gpu|device", Rule::devices),
    open("det_key", "--det_model_dir", "det_model"),
    open("rec_key", "--rec_model_dir", "rec_model"),
    open("infer_images", "--image_dir", "img|image|data|input"),
};
constexpr std::array kOnnxPairSections{SectionLayout{"paddle2onnx_params", kOnnxPair}};

// ---- serving ----
constexpr std::array kServingPython{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("trans_model", Rule::program),
    open("dirname", "--dirname", "dirname"),
    open("model_filename", "--model_filename", "model_file"),
    open("params_filename", "--params_filename", "params_file"),
    open("serving_server", "--serving_server", "serving_server"),
    open("serving_client", "--serving_client", "serving_client"),
    fixed("serving_dir", Rule::text),
    fixed("web_service", Rule::program),
    open("serving_gpu", "--opt op.imagenet.local_service_conf.devices", "device|gpu", Rule::list),
    fixed("pipline", Rule::program, "pipline|pipeline"),
    open("infer_images", "--image_dir", "img|image|data|input"),
};
constexpr std::array kServingPythonSections{SectionLayout{"serving_params", kServingPython}};

constexpr std::array kServingCpp{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("trans_model", Rule::program),
    open("dirname", "--dirname", "dirname"),
    open("model_filename", "--model_filename", "model_file"),
    open("params_filename", "--params_filename", "params_file"),
    open("serving_server", "--serving_server", "serving_server"),
    open("serving_client", "--serving_client", "serving_client"),
    fixed("serving_dir", Rule::text),
    open("serving_model", "--model", "model"),
    open("serving_op", "--op", "op"),
    open("serving_port", "--port", "port", Rule::port),
    open("serving_gpu", "--gpu_id", "gpu|device", Rule::list),
    fixed("cpp_client", Rule::program),
    fixed("proto_path", Rule::any),
};
constexpr std::array kServingCppSections{SectionLayout{"serving_params", kServingCpp}};

constexpr std::array kServingPair{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("trans_model", Rule::program),
    open("det_dirname", "--det_dirname", "det_dirname"),
    open("model_filename", "--model_filename", "model_file"),
    open("params_filename", "--params_filename", "params_file"),
    open("det_server", "--det_serving_server", "det_serving_server"),
    open("det_client", "--det_serving_client", "det_serving_client"),
    open("rec_dirname", "--rec_dirname", "rec_dirname"),
    open("rec_server", "--rec_serving_server", "rec_serving_server"),
    open("rec_client", "--rec_serving_client", "rec_serving_client"),
    fixed("serving_dir", Rule::text),
    fixed("web_service", Rule::program),
    open("serving_gpu", "op.det.local_service_conf.devices", "device|gpu", Rule::list),
    open("mkldnn", "op.det.local_service_conf.use_mkldnn", "mkldnn", Rule::flags),
    open("threads", "op.det.local_service_conf.thread_num", "thread", Rule::counts),
    open("tensorrt", "op.det.local_service_conf.use_trt", "trt|tensorrt", Rule::flags),
    open("precision", "op.det.local_service_conf.precision", "precision", Rule::precisions),
    open("det_config", "op.det.local_service_conf.model_config", "det.local_service_conf.model"),
    open("rec_config", "op.rec.local_service_conf.model_config", "rec.local_service_conf.model"),
    fixed("pipline", Rule::list, "pipline|pipeline"),
    open("infer_images", "--image_dir", "img|image|data|input"),
};
constexpr std::array kServingPairSections{SectionLayout{"serving_params", kServingPair}};

constexpr std::array kServingCppPair{
    fixed("model_name", Rule::text),
    fixed("python", Rule::program),
    fixed("trans_model", Rule::program),
    open("det_dirname", "--det_dirname", "det_dirname"),
    open("model_filename", "--model_filename", "model_file"),
    open("params_filename", "--params_filename", "params_file"),
    open("det_server", "--det_serving_server", "det_serving_server"),
    open("det_client", "--det_serving_client", "det_serving_client"),
    open("rec_dirname", "--rec_dirname", "rec_dirname"),
    open("rec_server", "--rec_serving_server", "rec_serving_server"),
    open("rec_client", "--rec_serving_client", "rec_serving_client"),
    fixed("serving_dir", Rule::text),
    fixed("web_service", Rule::program),
    open("serving_op", "--op", "op"),
    open("serving_port", "--port", "port", Rule::port),
    open("serving_gpu", "--gpu_id", "gpu|device", Rule::list),
    fixed("cpp_client", Rule::program),
    open("infer_images", "--image_dir", "img|image|data|input"),
};
constexpr std::array kServingCppPairSections{SectionLayout{"serving_params", kServingCppPair}};

// ---- lite: an ARM phone behind adb ----
constexpr std::array kLite{
    fixed("runtime_device", Rule::text),
    fixed("lite_arm_work_path", Rule::text),
    fixed("lite_arm_so_path", Rule::text),
    open("lite_model", "clas_model_file", "model"),
    fixed("inference_cmd", Rule::program),
    fixed("threads", Rule::counts, "--num_threads_list"),
    fixed("infer_batch", Rule::counts, "--batch_size_list"),
    fixed("precision", Rule::precisions, "--precision_list"),
};
constexpr std::array kLiteSections{SectionLayout{"", kLite}};
constexpr std::array kLiteHeadedSections{SectionLayout{"lite_params", kLite}};

constexpr std::array kLitePair{
    fixed("inference", Rule::program),
    fixed("runtime_device", Rule::text),
    fixed_or_null("det_infer_model", Rule::any),
    fixed_or_null("rec_infer_model", Rule::any),
    fixed_or_null("cls_infer_model", Rule::any),
    fixed("threads", Rule::counts, "--cpu_threads"),
    fixed_or_null("det_batch", Rule::counts, "--det_batch_size"),
    fixed_or_null("rec_batch", Rule::counts, "--rec_batch_size"),
    open("infer_images", "--image_dir", "img|image|data|input"),
    open("lite_config", "--config_dir", "config"),
    open("lite_dictionary", "--rec_dict_dir", "dict"),
    open("benchmark", "--benchmark", "benchmark"),
};
constexpr std::array kLitePairSections{SectionLayout{"lite_params", kLitePair}};

constexpr std::string_view kTrainModes =
    "lite_train_lite_infer|lite_train_whole_infer|whole_train_whole_infer|whole_infer|"
    "lite_train_infer|whole_train_infer|infer";
constexpr std::string_view kLongModes =
    "lite_train_lite_infer|lite_train_whole_infer|whole_train_whole_infer|whole_infer|"
    "benchmark_train|lite_train_infer|whole_train_infer|infer";

constexpr std::array kLayouts{
    Layout{Kind::train_infer, "train_infer", kTrainInfer, kTrainModes},
    Layout{Kind::train_infer_long, "train_infer_long", kTrainInferLong, kLongModes},
    Layout{Kind::ptq, "ptq", kPtqSections, "whole_infer"},
    Layout{Kind::kl_quant, "kl_quant", kKlQuantSections, "whole_infer|klquant_whole_infer"},
    Layout{Kind::cpp_infer, "cpp_infer", kCppInferSections, "cpp_infer"},
    Layout{Kind::cpp_config, "inference_cpp", kCppConfigSections, "cpp_infer", Separator::blank},
    Layout{Kind::onnx, "paddle2onnx", kOnnxSections, "paddle2onnx_infer"},
    Layout{Kind::onnx_pair, "paddle2onnx_pair", kOnnxPairSections, "paddle2onnx_infer"},
    Layout{Kind::serving_python, "serving_python", kServingPythonSections, "serving_infer"},
    Layout{Kind::serving_cpp, "serving_cpp", kServingCppSections, "serving_infer"},
    Layout{Kind::serving_pair, "serving_pair", kServingPairSections, "serving_infer"},
    Layout{Kind::serving_cpp_pair, "serving_cpp_pair", kServingCppPairSections, "serving_infer"},
    Layout{Kind::lite, "lite_arm", kLiteSections, "lite_infer"},
    Layout{Kind::lite, "lite_arm", kLiteHeadedSections, "lite_infer"},
    Layout{Kind::lite_pair, "lite_arm_pair", kLitePairSections, "lite_infer"},
};

constexpr std::array<std::string_view, 13> kModes{"lite_train_lite_infer",
                                                  "lite_train_whole_infer",
                                                  "whole_train_whole_infer",
                                                  "whole_infer",
                                                  "benchmark_train",
                                                  "lite_train_infer",
                                                  "whole_train_infer",
                                                  "infer",
                                                  "klquant_whole_infer",
                                                  "cpp_infer",
                                                  "serving_infer",
                                                  "paddle2onnx_infer",
                                                  "lite_infer"};

}  // namespace

namespace {

constexpr Suite kModels{"models", "https://github.com/PaddlePaddle/models", "8042c21",
                        "models|mobilenetv3_prod|mobilenet_v3_small|repo_template", ""};
constexpr std::array kOfModels{
    Kind::train_infer,    Kind::ptq,         Kind::cpp_config, Kind::onnx,
    Kind::serving_python, Kind::serving_cpp, Kind::lite};
constexpr Suite kOcr{"PaddleOCR", "https://github.com/PaddlePaddle/PaddleOCR", "main",
                     "PaddleOCR|ppocr", ""};

struct AllLayouts {
  std::deque<Dialect> dialects;  // layouts show their places: they must not move
  std::vector<Layout> layouts;
};

// A dialect that cannot be read is left out; tests read every one of them.
AllLayouts load_layouts() {
  AllLayouts all;
  for (const std::string_view text : dialect_texts()) {
    if (Result<Dialect> dialect = read_dialect(text)) all.dialects.push_back(std::move(*dialect));
  }
  for (const Layout& layout : kLayouts) {
    all.layouts.push_back(layout);
    const bool of_models =
        std::find(kOfModels.begin(), kOfModels.end(), layout.kind) != kOfModels.end();
    all.layouts.back().suite = of_models ? &kModels : &kOcr;
  }
  for (const Dialect& dialect : all.dialects) {
    for (const Layout& layout : dialect.layouts) {
      all.layouts.push_back(layout);
      all.layouts.back().suite = &dialect.suite;
    }
  }
  return all;
}

}  // namespace

std::span<const Layout> layouts() {
  static const AllLayouts all = load_layouts();
  return all.layouts;
}
std::span<const std::string_view> known_modes() { return kModes; }
bool is_known_mode(std::string_view mode) {
  return std::find(kModes.begin(), kModes.end(), mode) != kModes.end();
}

}  // namespace assay::chain::params
