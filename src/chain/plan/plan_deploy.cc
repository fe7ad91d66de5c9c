// Kinds that run a deployed model: compiled predictors, ONNX, serving and phones. Each stage names
// the tool that it cannot do without.

#include <fmt/format.h>

#include <array>

#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {
namespace {

std::string own(const PlanBuilder& builder, std::string_view role) {
  return argument(builder.params().key(role), builder.params().value(role));
}

// ---- compiled predictors ----

void plan_cpp(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const std::vector<std::string> models = params.list("infer_model");
  const std::vector<std::string> quantised = params.list("infer_quant");
  builder.set_folder(fmt::format("./test_tipc/output/{}/cpp_infer", params.value("model_name")),
                     "results_cpp.log");
  for (std::size_t i = 0; i < models.size(); ++i) {
    InferSource source;
    source.cell = models.size() > 1 ? fmt::format("model_{}", i) : "";
    source.model_dir = models[i];
    source.images = params.value("infer_images");
    source.visible = builder.options().gpu_id;
    source.quantised = quantised[i];
    plan_inference(builder, source);
  }
}

void plan_cpp_config(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  constexpr std::string_view kProgram = "./deploy/inference_cpp/build/clas_system";
  builder.set_folder(fmt::format("./test_tipc/output/{}/cpp_infer", params.value("model_name")),
                     "results_infer_cpp.log");
  Stage stage;
  stage.kind = StageKind::infer;
  stage.asks_for_gpu = params.value("use_gpu") != "0";
  stage.name = stage.asks_for_gpu ? "infer_gpu" : "infer_cpu";
  stage.command = fmt::format("{} {} ./images/demo.jpg", kProgram, builder.options().params_path);
  stage.argv = {std::string(kProgram), builder.options().params_path, "./images/demo.jpg"};
  stage.log = fmt::format("{}/cpp_{}", builder.folder(), stage.name);
  stage.environment = cuda_environment(builder.options().gpu_id);
  stage.device = stage.asks_for_gpu ? "gpu 0" : "cpu";
  stage.needs_program = kProgram;
  builder.add(std::move(stage));
}

// ---- ONNX ----

std::size_t add_onnx_conversion(PlanBuilder& builder, const std::string& what,
                                const std::string& model_dir, const std::string& file,
                                const std::string& output) {
  Stage stage;
  stage.kind = StageKind::convert;
  stage.name = "convert" + what;
  stage.command = command_line({std::string(builder.params().value("2onnx")), model_dir,
                                own(builder, "model_filename"), own(builder, "params_filename"),
                                file, own(builder, "opset"), own(builder, "checker")});
  stage.log = fmt::format("{}/trans_model{}.log", builder.folder(), what);
  stage.device = "cpu";
  stage.output = output;
  const auto words = params::split_words(builder.params().value("2onnx"));
  if (words && !words->empty()) stage.needs_program = words->front();
  return builder.add(std::move(stage));
}

void plan_onnx(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  builder.set_folder(
      fmt::format("./test_tipc/output/{}/paddle2onnx_infer", params.value("model_name")),
      "results_paddle2onnx.log");
  const std::string file(params.value("onnx_file"));
  const std::size_t converted = add_onnx_conversion(builder, "", own(builder, "onnx_model_dir"),
                                                    own(builder, "onnx_file"), file);
  if (params::is_absent(params.value("inference"))) return;
  Stage stage;
  stage.kind = StageKind::infer;
  stage.name = "infer_cpu";
  stage.command =
      command_line({builder.python(), std::string(params.value("inference")),
                    own(builder, "infer_images"), argument(params.key("infer_model_key"), file)});
  stage.log = builder.folder() + "/paddle2onnx_infer_cpu.log";
  stage.device = "cpu";
  stage.needs = {converted};
  stage.input = file;
  stage.needs_module = "onnxruntime";
  builder.add(std::move(stage));
}

// Which halves of a detector-and-recogniser pair a model has: the bash reads it off its name.
struct Halves {
  bool det = false;
  bool rec = false;
};

Halves halves_of(std::string_view model) {
  constexpr std::array<std::string_view, 4> kBoth{"ch_PP-OCRv2", "ch_PP-OCRv3",
                                                  "ch_ppocr_mobile_v2.0", "ch_ppocr_server_v2.0"};
  for (const std::string_view both : kBoth) {
    if (model == both) return {true, true};
  }
  if (model.find("det") != std::string_view::npos) return {true, false};
  return {false, model.find("rec") != std::string_view::npos};
}

void plan_onnx_pair(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  builder.set_folder(fmt::format("./test_tipc/output/{}/paddle2onnx", params.value("model_name")),
                     "results_paddle2onnx.log");
  const Halves halves = halves_of(params.value("model_name"));
  std::vector<std::size_t> converted;
  std::vector<std::string> models;
  for (const std::string half : {"det", "rec"}) {
    if (half == "det" ? !halves.det : !halves.rec) continue;
    const std::string file(params.value(half + "_file"));
    converted.push_back(add_onnx_conversion(
        builder, "_" + half, argument("--model_dir", params.value(half + "_model_dir")),
        argument("--save_file", file), file));
    models.push_back(argument(params.key(half + "_key"), file));
  }
  for (const std::string& use_gpu : params.list("infer_use_gpu")) {
    Stage stage;
    stage.kind = StageKind::infer;
    stage.asks_for_gpu = use_gpu == "True" || use_gpu == "gpu";
    stage.name = stage.asks_for_gpu ? "infer_gpu" : "infer_cpu";
    std::vector<std::string> pieces{builder.python(), std::string(params.value("inference")),
                                    argument(params.key("infer_use_gpu"), use_gpu),
                                    own(builder, "infer_images")};
    for (const std::string& model : models) pieces.push_back(model);
    pieces.emplace_back("--use_onnx=True");
    stage.command = command_line(pieces);
    stage.log = fmt::format("{}/paddle2onnx_{}", builder.folder(), stage.name);
    stage.device = stage.asks_for_gpu ? "gpu 0" : "cpu";
    stage.needs = converted;
    stage.needs_module = "onnxruntime";
    builder.add(std::move(stage));
  }
}

// ---- serving ----

std::size_t add_serving_conversion(PlanBuilder& builder, const std::string& what,
                                   const std::string& dirname, const std::string& server,
                                   const std::string& client, const std::string& output) {
  Stage stage;
  stage.kind = StageKind::convert;
  stage.name = "convert" + what;
  stage.command = command_line(
      {builder.python(), std::string(builder.params().value("trans_model")), dirname,
       own(builder, "model_filename"), own(builder, "params_filename"), server, client});
  stage.log = fmt::format("{}/python_trans_model{}.log", builder.folder(), what);
  stage.device = "cpu";
  stage.output = output;
  stage.needs_module = "paddle_serving_client";
  return builder.add(std::move(stage));
}

// A server and the client that asks it; the server is ended once the client has its answer.
void add_server_and_client(PlanBuilder& builder, const std::string& variant, bool gpu,
                           const std::string& server_command, const std::string& client_command,
                           const std::vector<std::size_t>& needs, const std::string& module) {
  Stage server;
  server.kind = StageKind::server;
  server.name = "server_" + variant;
  server.command = server_command;
  server.log = fmt::format("{}/{}", builder.folder(), server.name);
  server.directory = builder.params().value("serving_dir");
  server.device = gpu ? "gpu 0" : "cpu";
  server.needs = needs;
  server.needs_module = module;
  Stage client;
  client.kind = StageKind::infer;
  client.name = "client_" + variant;
  client.command = client_command;
  client.log = fmt::format("{}/{}", builder.folder(), client.name);
  client.directory = server.directory;
  client.device = server.device;
  client.asks_for_gpu = gpu;
  client.needs = {builder.add(std::move(server))};
  client.needs_module = "paddle_serving_client";
  builder.add(std::move(client));
}

void plan_serving_python(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const std::size_t converted = add_serving_conversion(
      builder, "", own(builder, "dirname"), own(builder, "serving_server"),
      own(builder, "serving_client"), std::string(params.value("serving_server")));
  for (const std::string& gpu : params.list("serving_gpu")) {
    const bool on_gpu = gpu != "null";
    const std::string server =
        fmt::format("{} {} {}={}", builder.python(), params.value("web_service"),
                    params.key("serving_gpu"), on_gpu ? gpu : "''");
    const std::string client = command_line(
        {builder.python(), std::string(params.value("pipline")), own(builder, "infer_images")});
    add_server_and_client(builder, on_gpu ? "gpu" : "cpu", on_gpu, server, client, {converted},
                          "paddle_serving_server");
  }
}

void plan_serving_cpp(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const std::size_t converted = add_serving_conversion(
      builder, "", own(builder, "dirname"), own(builder, "serving_server"),
      own(builder, "serving_client"), std::string(params.value("serving_server")));
  const auto pair = [&](std::string_view role) {
    return fmt::format("{} {}", params.key(role), params.value(role));
  };
  for (const std::string& gpu : params.list("serving_gpu")) {
    const bool on_gpu = gpu != "null";
    std::string server =
        fmt::format("{} -m paddle_serving_server.serve {} {} {}", builder.python(),
                    pair("serving_model"), pair("serving_op"), pair("serving_port"));
    if (on_gpu) server += fmt::format(" {} {}", params.key("serving_gpu"), gpu);
    add_server_and_client(builder, on_gpu ? "gpu" : "cpu", on_gpu, server,
                          fmt::format("{} {}", builder.python(), params.value("cpp_client")),
                          {converted}, "paddle_serving_server");
  }
}

std::string last_part(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

void plan_serving_pair(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  builder.set_folder(builder.folder() + "/python", "results_python_serving.log");
  const Halves halves = halves_of(params.value("model_name"));
  std::vector<std::size_t> converted;
  std::string configs;
  for (const std::string half : {"det", "rec"}) {
    if (half == "det" ? !halves.det : !halves.rec) continue;
    const std::string server(params.value(half + "_server"));
    converted.push_back(add_serving_conversion(
        builder, "_" + half, argument("--dirname", params.value(half + "_dirname")),
        argument("--serving_server", server),
        argument("--serving_client", params.value(half + "_client")), server));
    configs += " " + argument(params.key(half + "_config"), last_part(server));
  }
  const std::string start = fmt::format("{} {}", builder.python(), params.value("web_service"));
  const auto serve = [&](const std::string& variant, bool gpu, const std::string& server) {
    for (const std::string& pipeline : params.list("pipline")) {
      add_server_and_client(
          builder, variant, gpu, server,
          command_line({builder.python(), pipeline, own(builder, "infer_images")}), converted,
          "paddle_serving_server");
    }
  };
  for (const std::string& gpu : params.list("serving_gpu")) {
    if (gpu == "null") {
      for (const std::string& mkldnn : params.list("mkldnn")) {
        for (const std::string& threads : params.list("threads")) {
          serve(fmt::format("cpu_usemkldnn_{}_threads_{}", mkldnn, threads), false,
                fmt::format("{} {}='' {}={} {}{}", start, params.key("serving_gpu"),
                            params.key("mkldnn"), mkldnn, argument(params.key("threads"), threads),
                            configs));
        }
      }
      continue;
    }
    for (const std::string& tensorrt : params.list("tensorrt")) {
      for (const std::string& precision : params.list("precision")) {
        const bool low = precision == "fp16" || precision == "int8";
        if (low && tensorrt == "False") continue;
        serve(fmt::format("gpu_usetrt_{}_precision_{}", tensorrt, precision), true,
              fmt::format("{} {} {}{}", start, argument(params.key("tensorrt"), tensorrt),
                          argument(params.key("precision"), precision), configs));
      }
    }
  }
}

// One compiled server for the detector and the recogniser together.
void plan_serving_cpp_pair(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  builder.set_folder(builder.folder() + "/cpp", "results_cpp_serving.log");
  std::vector<std::size_t> converted;
  std::string models;
  std::string clients;
  for (const std::string half : {"det", "rec"}) {
    const std::string server(params.value(half + "_server"));
    converted.push_back(add_serving_conversion(
        builder, "_" + half, argument("--dirname", params.value(half + "_dirname")),
        argument("--serving_server", server),
        argument("--serving_client", params.value(half + "_client")), server));
    models += " " + last_part(server);
    clients += " " + last_part(params.value(half + "_client"));
  }
  const auto pair = [&](std::string_view role) {
    return fmt::format("{} {}", params.key(role), params.value(role));
  };
  for (const std::string& gpu : params.list("serving_gpu")) {
    const bool on_gpu = gpu != "null";
    std::string server =
        fmt::format("{} {} --model{} {} {}", builder.python(), params.value("web_service"), models,
                    pair("serving_op"), pair("serving_port"));
    if (on_gpu) server += fmt::format(" {} {}", params.key("serving_gpu"), gpu);
    add_server_and_client(
        builder, on_gpu ? "gpu" : "cpu", on_gpu, server,
        fmt::format("{} {}{}", builder.python(), params.value("cpp_client"), clients), converted,
        "paddle_serving_server");
  }
}

// ---- phones ----

void add_adb(PlanBuilder& builder, const std::string& name, std::vector<std::string> argv,
             std::vector<std::size_t> needs) {
  Stage stage;
  stage.kind = needs.empty() ? StageKind::convert : StageKind::infer;
  stage.name = name;
  stage.argv = std::move(argv);
  stage.command = params::join_words(stage.argv);
  stage.log = fmt::format("{}/{}", builder.folder(), name);
  stage.device = "phone";
  stage.needs = std::move(needs);
  stage.needs_program = "adb";
  builder.add(std::move(stage));
}

// The bash edits config.txt with sed before each push; that needs the phone's own tools, so here
// the push and the run are what is planned, one pair a point.
void plan_lite(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  const std::string work(params.value("lite_arm_work_path"));
  const std::string model(params.value("lite_model"));
  builder.set_folder("./test_tipc/output/arm_infer", "results.log");
  std::string command = "export LD_LIBRARY_PATH=" + work + ";";
  for (const std::string& word : params::split_list(params.value("inference_cmd"), ' ')) {
    command += " " + work + word;
  }
  for (const std::string& threads : params.list("threads")) {
    for (const std::string& batch : params.list("infer_batch")) {
      for (const std::string& precision : params.list("precision")) {
        const std::string point =
            fmt::format("lite_{}_runtime_device_{}_precision_{}_batchsize_{}_threads_{}", model,
                        params.value("runtime_device"), precision, batch, threads);
        add_adb(builder, point + "_push", {"adb", "push", "config.txt", work}, {});
        add_adb(builder, point, {"adb", "shell", command}, {builder.stage_count() - 1});
      }
    }
  }
}

// A program for detector, recogniser and classifier, started on the phone itself; `det`, `rec` or
// `system` among its words says which models it is given.
void plan_lite_pair(PlanBuilder& builder) {
  const params::Params& params = builder.params();
  builder.set_folder("./output", "results.log");
  const std::string program(params.value("inference"));
  const auto asks = [&](std::string_view word) { return program.find(word) != std::string::npos; };
  const bool both = !asks("det") && !asks("rec");
  std::vector<std::string> roles;
  if (asks("det") || both) roles.emplace_back("det_infer_model");
  if (asks("rec") || both) roles.insert(roles.end(), {"rec_infer_model", "cls_infer_model"});
  const bool by_det = roles.front() == "det_infer_model";
  const std::size_t sets = params.list(roles.front()).size();
  for (std::size_t i = 0; i < sets; ++i) {
    std::string models;
    for (const std::string& role : roles) {
      const std::vector<std::string> list = params.list(role);
      if (i < list.size()) models += " " + list[i] + "_opt.nb";
    }
    const bool slim = models.find("slim") != std::string::npos;
    for (const std::string& threads : params.list("threads")) {
      for (const std::string& batch : params.list(by_det ? "det_batch" : "rec_batch")) {
        Stage stage;
        stage.kind = StageKind::infer;
        stage.name = fmt::format("lite_model_{}_threads_{}_batchsize_{}", i, threads, batch);
        stage.command = fmt::format("{}{} {} {} {} {} {} {} {}", program, models,
                                    params.value("runtime_device"), slim ? "INT8" : "FP32", threads,
                                    batch, params.value("infer_images"),
                                    params.value("lite_config"), params.value("lite_dictionary"));
        stage.command += fmt::format(" {}", params.value("benchmark"));
        stage.log = fmt::format("{}/{}", builder.folder(), stage.name);
        stage.device = "phone";
        const auto words = params::split_words(program);
        if (words && !words->empty()) stage.needs_program = words->front();
        builder.add(std::move(stage));
      }
    }
  }
}

}  // namespace

void plan_deploy(PlanBuilder& builder) {
  switch (builder.params().kind()) {
    case params::Kind::cpp_infer:
      return plan_cpp(builder);
    case params::Kind::cpp_config:
      return plan_cpp_config(builder);
    case params::Kind::onnx:
      return plan_onnx(builder);
    case params::Kind::onnx_pair:
      return plan_onnx_pair(builder);
    case params::Kind::serving_python:
      return plan_serving_python(builder);
    case params::Kind::serving_cpp:
      return plan_serving_cpp(builder);
    case params::Kind::serving_pair:
      return plan_serving_pair(builder);
    case params::Kind::serving_cpp_pair:
      return plan_serving_cpp_pair(builder);
    case params::Kind::lite:
      return plan_lite(builder);
    case params::Kind::lite_pair:
      return plan_lite_pair(builder);
    default:
      return;
  }
}

}  // namespace assay::chain::plan
