#include "chain/script/rehearse.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "chain/script/link_copy.h"
#include "chain/shim/call.h"
#include "chain/shim/sandbox.h"

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

// Programs of which a rehearsal only notes that the script starts them.
constexpr std::array<std::string_view, 24> kHelpers{
    "wget", "curl", "git",   "kill",  "pkill",   "killall", "sleep",      "pip",
    "pip2", "pip3", "conda", "apt",   "apt-get", "yum",     "sudo",       "docker",
    "ssh",  "scp",  "rsync", "cmake", "make",    "ninja",   "nvidia-smi", "xpu_smi"};
constexpr std::array<std::string_view, 6> kPrograms{"python",      "python2", "python3",
                                                    "paddle2onnx", "adb",     "fleetrun"};
constexpr int kNewestPython = 16;  // python3.16
// bash has its own `kill`, which no PATH replaces.
constexpr const char* kNoKill = "BASH_FUNC_kill%%=() {  env kill \"$@\"\n}";
constexpr std::array<std::string_view, 5> kOfBash{"PWD", "OLDPWD", "SHLVL", "_",
                                                  "BASH_FUNC_kill%%"};

bool is_helper(const std::vector<std::string>& argv) {
  const std::string name = fs::path(argv.front()).filename().string();
  if (std::ranges::find(kHelpers, name) != kHelpers.end()) return true;
  if (!name.starts_with("python") || argv.size() < 2) return false;
  if (argv[1] == "-V" || argv[1] == "--version") return true;
  return argv.size() > 2 && argv[1] == "-m" && (argv[2] == "pip" || argv[2] == "wget");
}

// The scratch folder of one rehearsal; the destructor removes it.
class Scratch {
 public:
  static Result<Scratch> create() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "assay-rehearsal-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr) return errno_error("cannot create " + name);
    Scratch scratch;
    scratch.path_ = fs::canonical(name, error);
    return scratch;
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }

  fs::path programs() const { return path_ / "bin"; }
  fs::path calls() const { return path_ / "calls"; }
  fs::path printed() const { return path_ / "printed"; }
  fs::path temporary() const { return path_ / "tmp"; }
  const fs::path& path() const { return path_; }

 private:
  Scratch() = default;
  fs::path path_;
};

class Rehearser {
 public:
  Rehearser(const RehearsalOptions& options, const Scratch& scratch)
      : options_(options), scratch_(scratch) {
    std::error_code error;
    project_ = fs::canonical(options.project.empty() ? "." : options.project, error);
    copy_ = scratch.path() / "project" / project_.filename();
  }

  Result<Rehearsal> run() {
    ASSAY_CHECK(prepare());
    ASSAY_TRY(Fd printed, open_for_append(scratch_.printed()));
    SpawnOptions spawn;
    spawn.argv = {options_.shim, scratch_.path().string()};
    if (options_.trusted) spawn.argv.emplace_back("--trust");
    spawn.argv.insert(spawn.argv.end(), options_.command.begin(), options_.command.end());
    spawn.directory = copy_.string();
    spawn.environment = environment();
    spawn.fds = {{printed.get(), 1}, {printed.get(), 2}};
    ASSAY_TRY(Process process, Process::spawn(spawn));
    for (const std::string& entry : environment_of(spawn)) before_.insert(entry);
    ASSAY_TRY(const ExitStatus status, process.wait_at_most(options_.limit));
    Rehearsal rehearsal;
    rehearsal.code = status.code;
    rehearsal.printed = back(read_file(scratch_.printed()).value_or(""));
    if (status.signal != 0) {
      return usage_error(
          fmt::format("the script {} did not end within {} s of its rehearsal, or was killed ({})",
                      options_.command.at(1), options_.limit.count(), status.describe()));
    }
    if (status.code == shim::kNoSandbox && rehearsal.printed.starts_with("assay-shim: ")) {
      return usage_error(fmt::format("cannot rehearse {}: {}. --trust-script runs it all the same",
                                     options_.command.at(1), trimmed(rehearsal.printed)));
    }
    ASSAY_TRY(const std::string records, read_file(scratch_.calls()));
    std::string_view rest = records;
    while (auto call = shim::take_call(rest)) take(*call, rehearsal);
    if (!rest.empty()) return fail("the rehearsal's record is damaged");
    return rehearsal;
  }

 private:
  Status prepare() {
    ASSAY_CHECK(copy_with_links(project_, copy_));
    std::error_code error;
    for (const fs::path& folder : {scratch_.programs(), scratch_.temporary()}) {
      fs::create_directories(folder, error);
    }
    for (const fs::path& file : {scratch_.calls(), scratch_.printed()}) {
      ASSAY_TRY(const Fd made, open_for_append(file));
    }
    std::vector<std::string> names(kHelpers.begin(), kHelpers.end());
    names.insert(names.end(), kPrograms.begin(), kPrograms.end());
    for (int minor = 5; minor <= kNewestPython; ++minor) {
      names.push_back(fmt::format("python3.{}", minor));
    }
    names.insert(names.end(), options_.programs.begin(), options_.programs.end());
    for (const std::string& name : names) {
      if (name.find('/') == std::string::npos) {
        fs::create_symlink(options_.shim, scratch_.programs() / name, error);
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
    return {fmt::format("PATH={}:{}", scratch_.programs().string(), path == nullptr ? "" : path),
            "HOME=" + scratch_.temporary().string(),
            "TMPDIR=" + scratch_.temporary().string(),
            fmt::format("{}={}", shim::kRecordVariable, scratch_.calls().string()),
            fmt::format("{}={}", shim::kMakeVariable, makes),
            fmt::format("{}={}", shim::kBuiltVariable, built_),
            kNoKill};
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
    for (const std::string& entry : call.environment) {
      const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
      const bool of_bash = std::ranges::find(kOfBash, name) != kOfBash.end();
      if (!of_bash && !before_.contains(entry)) command.environment.push_back(back(entry));
    }
    std::ranges::sort(command.environment);
    command.folder = relative(call.folder);
    if (call.output.starts_with('/') && call.output != scratch_.printed() &&
        !call.output.starts_with("/dev/")) {
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
  const Scratch& scratch_;
  fs::path project_;
  fs::path copy_;
  std::string built_;  // value of kBuiltVariable
  std::set<std::string> before_;
};

}  // namespace

Result<Rehearsal> rehearse(const RehearsalOptions& options) {
  ASSAY_TRY(const Scratch scratch, Scratch::create());
  return Rehearser(options, scratch).run();
}

}  // namespace assay::chain::script
