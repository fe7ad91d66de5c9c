#include "chain/script/rehearse.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "base/text.h"
#include "chain/script/shim_folder.h"
#include "chain/shim/call.h"
#include "chain/shim/sandbox.h"

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kSmallFile = 64 << 10;
constexpr std::array<std::string_view, 7> kWritten{".sh",   ".txt", ".yml", ".yaml",
                                                   ".json", ".cfg", ".md5"};
constexpr std::size_t kLargeFolder = 2'000;  // a folder with more entries holds data
constexpr std::size_t kMostEntries = 50'000;

// A log or a result of an earlier run. A link to it would lead the script out of the copy when it
// writes there.
bool is_result(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string folder = path.parent_path().filename().string();
  return name.ends_with(".log") || name.ends_with("_log") || name.ends_with("_speed") ||
         name.ends_with("_profiling") ||
         (folder == "test_tipc" && (name == "output" || name == "assay"));
}

struct Folder {
  fs::path from;
  fs::path to;
};

// A copy of a project that a script may change. Scripts and small files of settings are copied,
// because scripts write to them; all other files, and folders of data, are links.
class LinkCopy {
 public:
  Status copy(const fs::path& from, const fs::path& to) {
    folders_.push_back({from, to});
    while (!folders_.empty()) {
      const Folder folder = std::move(folders_.front());
      folders_.pop_front();
      ASSAY_CHECK(copy_folder(folder));
    }
    return {};
  }

 private:
  // Near folders first, so that data deep below cannot use up the number of entries.
  Status copy_folder(const Folder& folder) {
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(folder.from, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      entries.push_back(*it);
      if (entries.size() > kLargeFolder) break;
    }
    entries_ += entries.size();
    if (entries.size() > kLargeFolder || entries_ > kMostEntries) {
      fs::create_symlink(folder.from, folder.to, error);
    } else {
      fs::create_directories(folder.to, error);
      for (const fs::directory_entry& entry : entries) copy_entry(entry, folder.to);
    }
    if (!error) return {};
    return fail(fmt::format("cannot write {}: {}", folder.to.string(), error.message()));
  }

  void copy_entry(const fs::directory_entry& entry, const fs::path& folder) {
    std::error_code error;
    const fs::path to = folder / entry.path().filename();
    if (is_result(entry.path())) return;
    if (entry.is_symlink(error)) {
      const fs::path target = fs::read_symlink(entry.path(), error);
      const bool stays = target.is_relative() && *target.begin() != "..";
      fs::create_symlink(stays ? target : fs::weakly_canonical(entry.path(), error), to, error);
    } else if (entry.is_directory(error)) {
      // TMPDIR may lie in the project, and the copy in it.
      const std::string name = to.filename();
      if (name != ".git" && !name.starts_with("assay-shim-")) {
        folders_.push_back({entry.path(), to});
      }
    } else if (is_written(entry)) {
      fs::copy_file(entry.path(), to, error);
      fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
    } else {
      fs::create_symlink(entry.path(), to, error);
    }
  }

  static bool is_written(const fs::directory_entry& entry) {
    std::error_code error;
    const std::string extension = entry.path().extension().string();
    return std::ranges::find(kWritten, extension) != kWritten.end() &&
           entry.is_regular_file(error) && entry.file_size(error) <= kSmallFile;
  }

  std::deque<Folder> folders_;
  std::size_t entries_ = 0;
};

// Copies `from` to `to`, which does not exist. Leaves out .git, logs and results of
// earlier runs, and what cannot be read.
Status copy_with_links(const fs::path& from, const fs::path& to) {
  return LinkCopy().copy(from, to);
}

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
