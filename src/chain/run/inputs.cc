#include "chain/run/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "chain/shim/call.h"

namespace assay::chain::run {
namespace {

namespace fs = std::filesystem;

// `V` of `--key=V`, and of `V`.
std::string_view value_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  return word.substr(equals == std::string_view::npos ? 0 : equals + 1);
}

// A path as seen from the working folder, the project's.
std::string from_project(const std::string& path) {
  std::error_code error;
  const fs::path normal = fs::path(path).lexically_normal();
  if (!normal.is_absolute()) return normal.string();
  return normal.lexically_relative(fs::current_path(error)).string();
}

}  // namespace

bool reads(const Job& job, const plan::Stage& other) {
  // An export beside the weights that it reads names their folder only as its own.
  const bool shares = other.kind == plan::StageKind::train && job.stage->kind != other.kind;
  return !other.output.empty() &&
         std::ranges::any_of(job.stage->argv, [&](const std::string& word) {
           return value_of(word).starts_with(other.output) &&
                  (shares || value_of(word) != job.stage->output);
         });
}

std::string unmade_input(const std::deque<Job>& jobs, const Job& job) {
  const Job* last = nullptr;
  for (const Job& earlier : jobs) {
    if (&earlier != &job && earlier.done && reads(job, *earlier.stage)) last = &earlier;
  }
  if (last == nullptr || last->kept || last->outcome.passed()) return {};
  return fmt::format("{} {}", last->stage->name, name(last->outcome.state));
}

std::string stale_input(const std::deque<Job>& jobs, const Job& job, const std::string& results,
                        std::int64_t started_ns) {
  if (results.empty()) return {};
  const std::vector<std::string> outputs = shim::outputs_of(job.stage->argv);
  for (const std::string& word : job.stage->argv) {
    const std::string value(value_of(word));
    const std::string path = from_project(value);
    const bool is_output = std::ranges::find(outputs, value) != outputs.end();
    if (is_output || !path.starts_with(results + "/")) continue;
    const stage::FileMarks files = stage::mark_files("", path);
    const bool fresh = std::ranges::any_of(files, [&](const auto& file) {
      return file.second.changed_ns >= started_ns ||
             std::ranges::any_of(jobs,
                                 [&](const Job& other) { return other.made.contains(file.first); });
    });
    if (!files.empty() && !fresh) {
      return fmt::format("{} is older than this run, and no stage made it", path);
    }
  }
  return {};
}

}  // namespace assay::chain::run
