#include "chain/run/identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "chain/results/node_record.h"

namespace assay::chain::run {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 100'000;

bool is_source(const fs::path& path) {
  constexpr std::array<std::string_view, 9> kExtensions{".py",   ".sh",  ".yml", ".yaml", ".json",
                                                        ".toml", ".cfg", ".cc",  ".h"};
  const std::string extension = path.extension().string();
  return std::ranges::find(kExtensions, extension) != kExtensions.end();
}

// Size and time of change (ctime: a copy that preserves mtime is still a change); "" if it is
// missing.
std::string mark_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return fmt::format("{} {}.{}", S_ISREG(info.st_mode) ? info.st_size : 0, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec);
}

bool is_setting(std::string_view entry) {
  constexpr std::array<std::string_view, 8> kPrefixes{"FLAGS_", "CUDA_",   "NCCL_",  "GLOO_",
                                                      "OMP_",   "PADDLE_", "PYTHON", "LD_LIBRARY_"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return entry.starts_with(prefix); });
}

// A model of a campaign may run on other GPUs the next time: their number counts.
std::string setting_of(const std::string& entry) {
  constexpr std::string_view kDevices = "CUDA_VISIBLE_DEVICES=";
  if (!entry.starts_with(kDevices) || entry.size() == kDevices.size()) return entry;
  return fmt::format("{}{} devices", kDevices, std::ranges::count(entry, ',') + 1);
}

// FNV-1a, 64 bits.
std::string hash_of(std::string_view text) {
  constexpr std::uint64_t kPrime = 1'099'511'628'211U;
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return fmt::format("{:016x}", hash);
}

std::string made_files(const plan::Plan& plan) { return plan.folder + "/made-files.txt"; }

}  // namespace

Sources sources_of(const std::string& project, const plan::Plan& plan) {
  std::vector<std::string> written{"test_tipc/output/", "test_tipc/assay/"};
  const std::vector<std::string> made = split_at(read_file(made_files(plan)).value_or(""), '\n');
  for (const plan::Stage& stage : plan.stages) {
    const std::string output = fs::path(stage.output).lexically_normal().string();
    if (!output.empty() && !output.starts_with('.')) written.push_back(output);
  }
  const auto is_written = [&](const fs::path& path) {
    return std::ranges::any_of(written, [text = path.string()](const std::string& output) {
      return text.starts_with(output) || text + "/" == output;
    });
  };
  Sources sources;
  std::set<std::string>& files = sources.files;
  std::error_code error;
  fs::recursive_directory_iterator it(project.empty() ? "." : project,
                                      fs::directory_options::skip_permission_denied, error);
  while (!error && it != fs::recursive_directory_iterator() && files.size() < kMostFiles) {
    const fs::path path = it->path().lexically_normal();
    // models.jsonl: a campaign's results.
    const bool hidden = path.filename().string().starts_with('.');
    if (it->is_directory(error) &&
        (hidden || is_written(path) || fs::exists(path / "models.jsonl", error))) {
      it.disable_recursion_pending();
    }
    if (it->is_regular_file(error) && is_source(path) && !is_written(path) &&
        std::ranges::find(made, path.string()) == made.end()) {
      files.insert(path.string());
    }
    it.increment(error);
  }
  std::string marks;
  for (const std::string& file : files) marks += file + " " + mark_of(file) + "\n";
  sources.state = fmt::format("{} files {}", files.size(), hash_of(marks));
  return sources;
}

Status keep_made_files(const std::string& project, const plan::Plan& plan, const Sources& before) {
  constexpr std::array<std::string_view, 4> kCode{".py", ".sh", ".cc", ".h"};
  std::string made;
  for (const std::string& file : sources_of(project, plan).files) {
    const bool code = std::ranges::find(kCode, fs::path(file).extension().string()) != kCode.end();
    if (!code && !before.files.contains(file)) made += file + "\n";
  }
  if (made.empty()) return {};
  return write_file(made_files(plan), read_file(made_files(plan)).value_or("") + made);
}

std::string identity_of(const plan::Stage& stage, const stage::StageCommand& command,
                        const std::string& sources) {
  SpawnOptions spawn;
  spawn.environment = command.environment;
  spawn.whole_environment = command.whole_environment;
  std::set<std::string> settings(stage.environment.begin(), stage.environment.end());
  for (const std::string& entry : environment_of(spawn)) {
    if (is_setting(entry)) settings.insert(setting_of(entry));
  }
  const std::string program = find_program(command.argv.front()).value_or(command.argv.front());
  // A shell script or a launcher runs the interpreter on the PATH.
  std::string packages = fmt::format("{}", fmt::join(results::packages_of(program), " "));
  if (packages.empty())
    packages = fmt::format("{}", fmt::join(results::packages_of("python3"), " "));
  packages = hash_of(packages);
  std::vector<std::string> inputs;
  for (const std::string& word : command.argv) {
    const std::size_t equals = word.find('=');
    const std::string value = equals == std::string::npos ? word : word.substr(equals + 1);
    const bool is_output = !stage.output.empty() &&
                           (value.starts_with(stage.output) || stage.output.starts_with(value));
    if (value.empty() || is_output) continue;
    const std::string path = command.directory.empty() || value.starts_with('/')
                                 ? value
                                 : command.directory + "/" + value;
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      inputs.push_back(value + " " + mark_of(path));
    }
  }
  return nlohmann::json{{"argv", command.argv},
                        {"settings", settings},
                        {"interpreter", program + " " + mark_of(program)},
                        {"packages", packages},
                        {"sources", sources},
                        {"inputs", inputs}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace assay::chain::run
