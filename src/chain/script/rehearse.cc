#include "chain/script/rehearse.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "chain/script/link_copy.h"
#include "chain/script/shim_folder.h"
#include "chain/shim/call.h"
#include "chain/shim/sandbox.h"

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

// Programs of which a rehearsal only notes that the script starts them.
constexpr std::array<std::string_view, 25> kHelpers{
    "wget",  "curl",  "git",  "kill",    "pkill",      "killall", "sleep",  "pip", "pip2",
    "pip3",  "conda", "apt",  "apt-get", "yum",        "sudo",    "docker", "ssh", "scp",
    "rsync", "cmake", "make", "ninja",   "nvidia-smi", "xpu_smi", "chmod"};
// bash has its own `kill`, which no PATH replaces.
constexpr const char* kNoKill = "BASH_FUNC_kill%%=() {  env kill \"$@\"\n}";

bool is_helper(const std::vector<std::string>& argv) {
  const std::string name = fs::path(argv.front()).filename().string();
  if (std::ranges::find(kHelpers, name) != kHelpers.end()) return true;
  return shim::is_errand(argv) && argv[1] != "-c";
}

class Rehearser {
 public:
  Rehearser(const RehearsalOptions& options, const ShimFolder& scratch)
      : options_(options), scratch_(scratch) {
    std::error_code error;
    project_ = fs::canonical(options.project.empty() ? "." : options.project, error);
    copy_ = scratch.path() / "project" / project_.filename();
  }

  Result<Rehearsal> run() {
    ASSAY_CHECK(prepare());
    ASSAY_TRY(const Fd output, open_for_append(printed()));
    SpawnOptions spawn;
    spawn.argv = {options_.shim, scratch_.path().string()};
    if (options_.trusted || options_.standard) spawn.argv.emplace_back("--trust");
    spawn.argv.insert(spawn.argv.end(), options_.command.begin(), options_.command.end());
    if (options_.standard) {
      ASSAY_TRY(*std::ranges::find(spawn.argv, options_.command.at(1)), scratch_.add_standard());
    }
    spawn.directory = copy_.string();
    spawn.environment = environment();
    spawn.fds = {{output.get(), 1}, {output.get(), 2}};
    ASSAY_TRY(Process process, Process::spawn(spawn));
    for (const std::string& entry : environment_of(spawn)) before_.insert(entry);
    ASSAY_TRY(const ExitStatus status, process.wait_at_most(options_.limit));
    Rehearsal rehearsal;
    rehearsal.code = status.code;
    rehearsal.printed = back(read_file(printed()).value_or(""));
    if (status.signal == SIGXFSZ) {
      return usage_error(
          fmt::format("the script {} makes more than 100,000 files or 1 GiB in its rehearsal",
                      options_.command.at(1)));
    }
    if (status.signal != 0) {
      return usage_error(
          fmt::format("the script {} did not end within {} s of its rehearsal, or was killed ({})",
                      options_.command.at(1), options_.limit.count(), status.describe()));
    }
    if (status.code == shim::kNoSandbox && rehearsal.printed.starts_with("assay-shim: ")) {
      return usage_error(fmt::format("cannot rehearse {}: {}. --trust-script runs it all the same",
                                     options_.command.at(1), trimmed(rehearsal.printed)));
    }
    ASSAY_TRY(const std::string records, read_file(calls()));
    std::string_view rest = records;
    while (auto call = shim::take_call(rest)) take(*call, rehearsal);
    if (!rest.empty()) return fail("the rehearsal's record is damaged");
    return rehearsal;
  }

 private:
  fs::path calls() const { return scratch_.path() / "calls"; }
  fs::path printed() const { return scratch_.path() / "printed"; }
  fs::path temporary() const { return scratch_.path() / "tmp"; }

  Status prepare() {
    ASSAY_CHECK(copy_with_links(project_, copy_));
    std::error_code error;
    fs::create_directories(temporary(), error);
    if (!options_.replaced.first.empty()) {
      ASSAY_CHECK(write_file(copy_ / options_.replaced.first, options_.replaced.second));
    }
    if (options_.launches) {
      ASSAY_TRY(benchmark_, scratch_.add_benchmark());
    }
    for (const fs::path& file : {calls(), printed()}) {
      ASSAY_TRY(const Fd made, open_for_append(file));
    }
    for (const std::string_view name : kHelpers) scratch_.add(name);
    for (const std::string& name : options_.programs) {
      if (name.find('/') == std::string::npos) {
        scratch_.add(name);
      } else if (!name.starts_with('/')) {  // an absolute path is outside of the copy
        const fs::path link = (copy_ / name).lexically_normal();
        fs::create_directories(link.parent_path(), error);
        fs::remove(link, error);
        fs::create_symlink(options_.shim, link, error);
        built_ += link.string() + "\n";
      }
    }
    return {};
  }

  std::vector<std::string> environment() const {
    const char* path = std::getenv("PATH");
    std::string makes;
    for (const std::string& name : options_.makes) makes += (makes.empty() ? "" : "\n") + name;
    std::vector<std::string> entries{
        fmt::format("PATH={}:{}", scratch_.programs().string(), path == nullptr ? "" : path),
        "HOME=" + temporary().string(),
        "TMPDIR=" + temporary().string(),
        fmt::format("{}={}", shim::kRecordVariable, calls().string()),
        fmt::format("{}={}", shim::kMakeVariable, makes),
        fmt::format("{}={}", shim::kBuiltVariable, built_),
        kNoKill};
    if (!benchmark_.empty()) entries.push_back(benchmark_);
    return entries;
  }

  // A text with the project's own path in place of that of its copy.
  std::string back(std::string text) const {
    const std::string ours = copy_.string();
    const std::string theirs = project_.string();
    for (const auto& [from, to] :
         {std::pair(ours, theirs),
          std::pair(copy_.parent_path().string(), project_.parent_path().string())}) {
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }

  void take(const shim::Call& call, Rehearsal& rehearsal) const {
    Command command;
    for (const std::string& word : call.argv) command.argv.push_back(back(word));
    for (const std::string& entry : set_by_script(call.environment, before_)) {
      command.environment.push_back(back(entry));
    }
    command.folder = relative(call.folder);
    if (call.output.starts_with(copy_.string() + "/")) {
      command.log = relative(call.output);
    }
    for (const std::string& output : shim::outputs_of(call.argv)) {
      command.outputs.push_back(back(output));
    }
    (is_helper(command.argv) ? rehearsal.helpers : rehearsal.commands)
        .push_back(std::move(command));
  }

  std::string relative(const std::string& path) const {
    const fs::path below = fs::path(path).lexically_relative(copy_);
    return below == "." ? "" : below.string();
  }

  const RehearsalOptions& options_;
  const ShimFolder& scratch_;
  fs::path project_;
  fs::path copy_;
  std::string built_;      // value of kBuiltVariable
  std::string benchmark_;  // BENCHMARK_ROOT=…; "": none
  std::set<std::string> before_;
};

}  // namespace

Result<Rehearsal> rehearse(const RehearsalOptions& options) {
  ASSAY_TRY(const ShimFolder scratch, ShimFolder::create(options.shim));
  return Rehearser(options, scratch).run();
}

}  // namespace assay::chain::script
