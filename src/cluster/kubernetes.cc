#include "cluster/kubernetes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestName = 52;  // names of pods append to it and must not exceed 63
constexpr std::uint32_t kStartsOfEach = 10;
constexpr int kGraceSeconds = 60;  // more than the engine gives running cases

Status check_name(const std::string& what, const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kLongestName && name.front() != '-' && name.back() != '-' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (good) return {};
  return usage_error(
      fmt::format("{} must be a Kubernetes name, not {}: at most {} lower-case letters, digits "
                  "and inner dashes",
                  what, name, kLongestName));
}

// Kubernetes expands $(NAME), so any other occurrence must be escaped.
constexpr std::string_view kIndex = "$(JOB_COMPLETION_INDEX)";
std::string literal(std::string_view word) {
  std::string text;
  while (true) {
    const std::size_t at = word.find("$(");
    text += word.substr(0, at);
    if (at == std::string_view::npos) return text;
    word.remove_prefix(at);
    if (!word.starts_with(kIndex)) text += '$';
    text += word.substr(0, 2);
    word.remove_prefix(2);
  }
}

json container_of(const KubernetesJob& job) {
  json command = json::array();
  for (const std::string& word : words_of(job.workers, std::string(kIndex)))
    command.push_back(literal(word));
  const json mount = {{"name", "logs"}, {"mountPath", job.workers.log_dir}};
  json container = {{"name", "worker"},
                    {"image", job.image},
                    {"command", command},
                    {"volumeMounts", json::array({mount})}};
  if (job.gpus > 0) container["resources"]["limits"]["nvidia.com/gpu"] = job.gpus;
  if (!job.secret.empty()) {
    const json from = {{"secretKeyRef", {{"name", job.secret}, {"key", "password"}}}};
    const json password = {{"name", "PGPASSWORD"}, {"valueFrom", from}};
    container["env"] = json::array({password});
  }
  return container;
}

}  // namespace

Result<std::string> kubernetes_manifest(const KubernetesJob& job) {
  const Workers& workers = job.workers;
  ASSAY_CHECK(check_name("--name", workers.name));
  if (!job.secret.empty()) ASSAY_CHECK(check_name("--secret", job.secret));
  const json volume = {{"name", "logs"}, {"emptyDir", json::object()}};
  const json pod = {{"restartPolicy", "OnFailure"},
                    {"terminationGracePeriodSeconds", kGraceSeconds},
                    {"containers", json::array({container_of(job)})},
                    {"volumes", json::array({volume})}};
  const json manifest = {{"apiVersion", "batch/v1"},
                         {"kind", "Job"},
                         {"metadata", {{"name", workers.name}}},
                         {"spec",
                          {{"completionMode", "Indexed"},
                           {"completions", workers.count},
                           {"parallelism", workers.count},
                           {"backoffLimit", workers.count * kStartsOfEach},
                           {"template", {{"spec", pod}}}}}};
  return manifest.dump(2) + "\n";
}

}  // namespace assay
