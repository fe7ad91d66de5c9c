#include <fmt/format.h>

#include <memory>

#include "base/fd.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/api_options.h"
#include "cli/verbs.h"

namespace assay {
namespace {

constexpr const char* kKernelExamples = R"(Examples:
  assay kernel mine.py:rms_norm --reference=refs.py:rms_norm \
      --api_config='(Tensor([64, 4096], "bfloat16"), Tensor([4096], "bfloat16"), 1e-6)'
  assay kernel mine.py:Net shapes.txt         each line: (64)(Tensor([8, 64], "float32"))
Exit code: 0 right, 1 wrong, 2 usage: a file, a function or a case does not fit, 3 the engine or the
machine failed, 4 nothing to compare with (--allow=self_only accepts that).)";

struct KernelVerb {
  ApiOptions api;
  std::vector<std::string> cases;  // (…) each
  std::vector<std::string> files;
  bool speed = false;
};

// The cases as calls of torch.kernel.NAME.
Result<std::vector<std::string>> cases_of(const KernelVerb& options) {
  std::vector<std::string> given = options.cases;
  for (const std::string& file : options.files) {
    auto text = read_file(file);
    if (!text) return usage_error(text.error().message);
    for (const std::string& line : split_at(*text, '\n')) {
      if (!trimmed(line).empty() && trimmed(line).front() != '#') given.emplace_back(trimmed(line));
    }
  }
  if (given.empty())
    return usage_error("no inputs: give --api_config='(…)' or a file of such lines");
  const std::string& function = options.api.kernel.function;
  const std::string name = "torch.kernel." + function.substr(function.rfind(':') + 1);
  for (std::string& text : given) {
    const std::string_view call = trimmed(text);
    if (!call.starts_with('(') && !call.starts_with(name + "(")) {
      return usage_error(fmt::format("inputs are written as (…), not as {}", text));
    }
    text = call.starts_with('(') ? name + std::string(call) : std::string(call);
  }
  return given;
}

Result<int> run_kernel(const KernelVerb& options) {
  ApiOptions api = options.api;
  if (options.speed && api.kernel.reference.empty()) {
    return usage_error("--speed times the kernel beside --reference: name one");
  }
  ASSAY_TRY(api.configs, cases_of(options));
  if (api.test_lane.empty()) api.test_lane = "torch";
  api.gate.strict = true;  // what is right in another process alone is wrong
  ASSAY_TRY(const int code, run_api(api));
  if (!options.speed || code == kUsage || code == kTrouble || code == kInterrupted) return code;
  show_text(stdout, "\nspeed, beside the reference:\n");
  api.kernel.checks = api.kernel.larger = false;
  api.modes["paddle_torch_gpu_performance"] = true;
  api.gate.fail_on = "none";
  if (!api.log_dir.empty()) api.log_dir += "/speed";
  ASSAY_CHECK(run_api(std::move(api)));
  return code;
}

}  // namespace

Verb add_kernel_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("kernel", "Judge a function of your own: a kernel, a module");
  auto options = std::make_shared<KernelVerb>();
  KernelOptions& kernel = options->api.kernel;
  kernel.larger = true;
  app->add_option("FILE.py:NAME", kernel.function, "The function or class of PyTorch")->required();
  app->add_option("FILE", options->files, "Files of inputs: (…) on each line");
  app->add_option("--api_config", options->cases,
                  "Inputs: (Tensor([64, 4096], \"bfloat16\"), 1e-6); may be repeated");
  add_kernel_options(*app, kernel);
  app->add_flag(
      "--larger-shapes,!--no-larger-shapes", kernel.larger,
      "Also run with other extents: larger, odd, square, a batch of one or none (default: yes)");
  app->add_flag("--speed", options->speed, "Also time it beside the reference");
  add_run_options(*app, options->api);
  add_gate_options(*app, options->api.gate, "any");
  app->footer(kKernelExamples);
  return {app, [options] { return run_kernel(*options); }};
}

}  // namespace assay
