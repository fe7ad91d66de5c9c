#include "chain/run/speed_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "chain/results/node_record.h"

namespace assay::chain::run {
namespace {

// Returns git's output as one line, or "".
std::string git_says(const std::string& checkout, std::vector<std::string> words) {
  SpawnOptions options;
  options.argv = {"git", "-C", checkout.empty() ? "." : checkout};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  auto pipe = make_pipe();
  const auto nowhere = open_for_append("/dev/null");
  if (!pipe || !nowhere) return {};
  options.fds = {{pipe->second.get(), 1}, {nowhere->get(), 2}};
  auto process = Process::spawn(options);
  if (!process) return {};
  pipe->second.reset();
  constexpr std::chrono::seconds kLongest{10};
  const auto status = process->wait_at_most(kLongest);
  if (!status || !status->ok()) return {};
  std::string said(256, '\0');  // a commit or a branch is shorter and fits into a pipe
  const ssize_t got = ::read(pipe->first.get(), said.data(), said.size());
  return got <= 0 ? std::string()
                  : std::string(
                        trimmed(std::string_view(said).substr(0, static_cast<std::size_t>(got))));
}

}  // namespace

std::vector<std::string> speed_environment(const std::string& checkout,
                                           const std::string& interpreter,
                                           const std::string& frame_commit, double train_seconds) {
  std::vector<std::string> entries;
  const auto add = [&](const char* name, const std::string& value) {
    if (std::getenv(name) == nullptr && !value.empty()) {
      entries.push_back(fmt::format("{}={}", name, value));
    }
  };
  add("model_branch", git_says(checkout, {"symbolic-ref", "--short", "HEAD"}));
  add("model_commit", git_says(checkout, {"rev-parse", "HEAD"}));
  const std::string framework = results::framework_of(interpreter);
  add("frame_version", framework.substr(framework.find(' ') + 1));
  add("frame_commit", frame_commit);
  add("model_run_time", fmt::format("{:.0f}", train_seconds));
  return entries;
}

}  // namespace assay::chain::run
