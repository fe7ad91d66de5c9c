#include "chain/stage/autolog.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include "base/text.h"

namespace assay::chain::stage {
namespace {

// Returns the text after the logger's prefix, or "".
std::string_view message_of(std::string_view line) {
  if (!line.starts_with('[')) return {};
  constexpr std::string_view kRoot = " INFO: ";
  constexpr std::string_view kFile = "autolog.py:";
  const std::size_t file = line.find(kFile);
  if (file != std::string_view::npos) {
    const std::size_t dash = line.find(" - ", file);
    return dash == std::string_view::npos ? std::string_view() : line.substr(dash + 3);
  }
  const std::size_t root = line.find(kRoot);
  return root == std::string_view::npos ? std::string_view() : line.substr(root + kRoot.size());
}

std::string_view field(const AutoLog& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view("None") : std::string_view(found->second);
}

std::string measured(double value) { return value > 0 ? fmt::format("{:.4f}", value) : "None"; }

std::string system_name() {
  utsname names{};
  if (::uname(&names) != 0) return "None";
  return fmt::format("{} {}", names.sysname, names.release);
}

}  // namespace

void read_autolog_line(std::string_view line, AutoLog& fields) {
  const std::string_view message = trimmed(message_of(line));
  if (message.empty() || message.starts_with("---")) return;
  // In "a: 1, b: 2" a comma separates fields only if another `name:` follows.
  for (const std::string& part : split_at(message, ',')) {
    const std::size_t colon = part.find(": ");
    if (colon == std::string::npos) continue;
    std::string_view name = trimmed(std::string_view(part).substr(0, colon));
    if (name.starts_with('[')) name = trimmed(name.substr(name.find(']') + 1));
    fields[std::string(name)] = trimmed(std::string_view(part).substr(colon + 2));
  }
}

std::string write_autolog(const InferenceFacts& facts) {
  const auto said = [&](std::string_view name) { return field(facts.printed, name); };
  const std::string_view device = said("runtime_device");
  std::string report = "---------------------- Env info ----------------------\n";
  report += fmt::format(" OS_version: {}\n", system_name());
  for (const char* name : {"CUDA_version", "CUDNN_version", "drivier_version"}) {
    report += fmt::format(" {}: {}\n", name, said(name));
  }
  report += "---------------------- Paddle info ----------------------\n";
  for (const char* name : {"paddle_version", "paddle_commit"}) {
    report += fmt::format(" {}: {}\n", name, said(name));
  }
  report += " log_api_version: 1.0\n----------------------- Conf info -----------------------\n";
  report += fmt::format(" runtime_device: {}\n",
                        device == "None" ? (facts.peak.gpu_seen ? "gpu" : "None") : device);
  for (const char* name : {"ir_optim", "enable_memory_optim", "enable_tensorrt", "enable_mkldnn",
                           "cpu_math_library_num_threads"}) {
    report += fmt::format(" {}: {}\n", name, said(name));
  }
  report += fmt::format(
      "----------------------- Model info ----------------------\n model_name: {}\n precision: "
      "{}\n",
      facts.model, facts.precision.empty() ? said("precision") : facts.precision);
  report += fmt::format(
      "----------------------- Data info -----------------------\n batch_size: {}\n"
      " input_shape: {}\n data_num: {}\n",
      facts.batch_size, said("input_shape"), said("data_num"));
  report += fmt::format(
      "----------------------- Perf info -----------------------\n"
      " cpu_rss(MB): {}, gpu_rss(MB): {}, gpu_util: {}%\n total time spent(s): {:.4f}\n"
      " preprocess_time(ms): {}, inference_time(ms): {}, postprocess_time(ms): {}\n",
      measured(facts.peak.rss_mb), measured(facts.peak.gpu_memory_mb),
      facts.peak.gpu_seen ? fmt::format("{:.1f}", facts.peak.gpu_percent) : "None",
      facts.total_seconds, said("preprocess_time(ms)"), said("inference_time(ms)"),
      said("postprocess_time(ms)"));
  return report;
}

std::string device_complaint(const InferenceFacts& facts, std::size_t gpus) {
  const std::string_view said = field(facts.printed, "runtime_device");
  const bool asked_gpu = facts.asked_device == "gpu";
  if (said == "gpu" || said == "cpu") {
    if (said == facts.asked_device) return {};
    return fmt::format("asked for the {} and ran on the {} (its runtime_device)",
                       facts.asked_device, said);
  }
  if (!asked_gpu || facts.peak.gpu_seen) return {};
  if (gpus == 0) return "asked for a GPU, and this machine has none";
  return unseen_complaint(facts.peak, facts.looks);
}

std::string unseen_complaint(const Usage& peak, std::size_t looks) {
  constexpr std::size_t kSurelySeen = 8;  // samples, about three seconds
  if (peak.gpu_seen || looks < kSurelySeen) return {};
  return "asked for a GPU, and no process of it was seen on one";
}

}  // namespace assay::chain::stage
