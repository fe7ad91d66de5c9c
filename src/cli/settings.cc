#include "cli/settings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/toml.h"

namespace assay {
namespace {

constexpr const char* kDefaultFile = "assay.toml";
constexpr const char* kTrustVariable = "ASSAY_SAFE_FOLDER";
constexpr std::int64_t kVersion = 1;

std::string user_name(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

// Whether only our user is in the group: many systems give each user a group of their own.
bool is_private_group(gid_t group) {
  if (group == 0) return true;
  const passwd* const user = ::getpwuid(::geteuid());
  if (user == nullptr || user->pw_gid != group) return false;
  const std::string name = user->pw_name;  // getgrgid may overwrite it
  const ::group* const entry = ::getgrgid(group);
  return entry != nullptr && name == entry->gr_name;
}

// Why other users could change this file or folder; empty if only our user and root can.
std::string strangers_of(const struct stat& facts) {
  const bool sticky = S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX) != 0;
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0) {
    return fmt::format("belongs to user {}", user_name(facts.st_uid));
  }
  if ((facts.st_mode & S_IWOTH) != 0 && !sticky) return "can be written by every user";
  if ((facts.st_mode & S_IWGRP) != 0 && !sticky && !is_private_group(facts.st_gid)) {
    return fmt::format("can be written by group {}", facts.st_gid);
  }
  return {};
}

// Whether ASSAY_SAFE_FOLDER names the folder: absolute paths separated by colons, or * for all, as
// git's safe.directory.
bool is_trusted(const std::filesystem::path& folder) {
  const char* trusted = std::getenv(kTrustVariable);
  if (trusted == nullptr) return false;
  for (const std::string& each : split_at(trusted, ':')) {
    std::error_code ignored;
    if (each == "*" || (!each.empty() && std::filesystem::equivalent(each, folder, ignored))) {
      return true;
    }
  }
  return false;
}

// The text of assay.toml in the working folder; empty if there is none. The file names programs
// that run with our rights, so no other user may be able to write it. (A file that the user names
// on the command line is trusted.)
Result<std::string> read_default_file() {
  const Fd file(::open(kDefaultFile, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return errno_error(fmt::format("cannot read {}", kDefaultFile));
  struct stat facts {};
  struct stat folder {};
  if (::fstat(file.get(), &facts) != 0 || ::stat(".", &folder) != 0) {
    return errno_error(fmt::format("cannot read {}", kDefaultFile));
  }
  const std::string of_file = strangers_of(facts);
  const std::string why = of_file.empty() ? strangers_of(folder) : of_file;
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);
  if (!why.empty() && !is_trusted(here)) {
    return fail(fmt::format(
        "{} is not read: {} {}, and it names programs that run with your rights. If you trust it, "
        "name it (--settings={}) or its folder ({}={})",
        (here / kDefaultFile).string(), of_file.empty() ? "its folder" : "it", why, kDefaultFile,
        kTrustVariable, here.string()));
  }
  // Reads by descriptor, because another file may have replaced the checked one.
  auto text = read_file(fmt::format("/proc/self/fd/{}", file.get()));
  if (!text) return fail(fmt::format("cannot read {}", (here / kDefaultFile).string()));
  // An empty file must differ from a missing one: it lacks the version.
  return text->empty() ? std::string("\n") : *text;
}

// .venv/NAME/bin/python of the source tree, which `make setup` makes; empty if there is none.
std::string own_environment(const std::string& name) {
  const auto package = LanePackage::find();
  if (!package) return {};
  const auto python = package->python_path.parent_path() / ".venv" / name / "bin" / "python";
  std::error_code error;
  return std::filesystem::exists(python, error) ? python.string() : std::string();
}

// The Python of the environment that assay is installed in. The wheel's command names it
// (python/assay/__main__.py); a program that is called by its path lies in
// PREFIX/lib/pythonX.Y/site-packages. Empty if assay is not installed.
std::string installing_python() {
  if (const char* named = std::getenv("ASSAY_PYTHON"); named != nullptr) return named;
  const auto package = LanePackage::find();
  if (!package) return {};
  const std::filesystem::path packages = package->python_path.parent_path().parent_path();
  if (packages.filename() != "site-packages") return {};
  const auto python = packages.parent_path().parent_path().parent_path() / "bin" / "python3";
  std::error_code error;
  return std::filesystem::exists(python, error) ? python.string() : std::string();
}

// A usage error for a framework that assay has no file for. An environment that names the module of
// another one (ASSAY_FRAMEWORK_MODULE) allows any name.
Status check_framework(const std::string& file, const std::string& table,
                       const FrameworkConfig& framework) {
  const std::vector<std::string> known = known_frameworks();
  const bool own_module = std::ranges::any_of(framework.environment, [](const std::string& entry) {
    return entry.starts_with("ASSAY_FRAMEWORK_MODULE=");
  });
  if (own_module || known.empty() || std::ranges::find(known, framework.name) != known.end()) {
    return {};
  }
  return usage_error(fmt::format("{}: [{}]: no framework is called {}; known: {}{}", file, table,
                                 framework.name, fmt::join(known, " "),
                                 suggest(framework.name, known)));
}

// What comes before `end` in the names of the files of a folder of the lane package, in
// alphabetical order.
std::vector<std::string> modules_of(const char* folder, std::string_view end) {
  std::vector<std::string> names;
  const auto package = LanePackage::find();
  if (!package) return names;
  std::error_code error;
  std::filesystem::directory_iterator files(package->python_path / "assay" / folder, error);
  for (const auto& file : files) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(end)) names.push_back(name.substr(0, name.size() - end.size()));
  }
  std::ranges::sort(names);
  return names;
}

// Modules that a framework's interpreter imports after the framework, such as torch_npu
// (python/assay/frameworks/__init__.py).
Status read_modules(TomlTable& table, FrameworkConfig& config) {
  std::vector<std::string> modules;
  ASSAY_CHECK(table.read("modules", modules));
  if (!modules.empty()) {
    config.environment.push_back(fmt::format("ASSAY_MODULES={}", fmt::join(modules, ":")));
  }
  return {};
}

// "cuda" and "cuda:1" are PyTorch's names of "gpu" and "gpu:1".
std::string as_device(const std::string& text) {
  return text == "cuda" || text.starts_with("cuda:") ? "gpu" + text.substr(4) : text;
}

Status read_environment(TomlTable& table, const std::string& of, FrameworkConfig& config) {
  ASSAY_CHECK(table.read("environment", config.environment));
  for (const std::string& entry : config.environment) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool is_name =
        !name.empty() && name.size() < entry.size() && name.find_first_of(" \t") == name.npos;
    if (!is_name) {
      return usage_error(fmt::format("{}: environment takes NAME=VALUE, not {}", of, entry));
    }
  }
  return {};
}

Result<FrameworkConfig> read_framework(const std::string& name, TomlTable& table) {
  FrameworkConfig config;
  config.name = name;
  ASSAY_CHECK(table.read("python", config.python));
  ASSAY_CHECK(read_environment(table, name, config));
  ASSAY_CHECK(read_modules(table, config));
  return config;
}

// Reads one table of [lanes]. It refers to the frameworks that were read before.
Result<LaneConfig> read_lane(const std::string& name, TomlTable& table, const Settings& settings) {
  LaneConfig lane;
  lane.label = name;
  std::string framework = name;
  ASSAY_CHECK(table.read("framework", framework));
  std::string python;
  ASSAY_CHECK(table.read("python", python));
  lane.framework = settings.framework(framework, python);
  ASSAY_CHECK(read_environment(table, name, lane.framework));
  ASSAY_CHECK(read_modules(table, lane.framework));
  ASSAY_CHECK(table.read("device", lane.device));
  lane.device = as_device(lane.device);
  ASSAY_CHECK(table.read("execution", lane.execution));
  ASSAY_CHECK(table.read("reference_functions", lane.reference_functions));
  return lane;
}

}  // namespace

FrameworkConfig Settings::framework(const std::string& name, const std::string& python) const {
  FrameworkConfig config;
  if (const auto found = frameworks.find(name); found != frameworks.end()) config = found->second;
  config.name = name;
  config.keep = keep_frameworks;
  if (!python.empty()) config.python = python;
  if (config.python.empty()) config.python = own_environment(name);
  if (config.python.empty()) config.python = installing_python();
  if (config.python.empty()) config.python = "python3";
  return config;
}

LaneConfig Settings::lane(const std::string& name, const std::string& python) const {
  LaneConfig lane;
  if (const auto found = lanes.find(name); found != lanes.end()) {
    lane = found->second;
  } else {
    const PlainLane plain = split_lane(name);
    lane.framework = framework(plain.framework, python);
    lane.device = plain.device;
    if (!plain.execution.empty()) lane.execution = plain.execution;
  }
  return lane;
}

std::vector<std::string> known_frameworks() { return modules_of("frameworks", "_framework.py"); }

PlainLane split_lane(const std::string& text) {
  const std::size_t colon = text.find(':');
  PlainLane lane{text.substr(0, colon), "", ""};
  if (colon == std::string::npos) return lane;
  const std::vector<std::string> ways = modules_of("execution", ".py");
  for (const std::string& part : split_at(text.substr(colon + 1), '+')) {
    const bool first = lane.device.empty() && lane.execution.empty();
    if (first && std::ranges::find(ways, part.substr(0, part.find('='))) == ways.end()) {
      lane.device = as_device(part);
    } else {
      lane.execution += (lane.execution.empty() ? "" : "+") + part;
    }
  }
  return lane;
}

Result<std::chrono::seconds> seconds_to_keep(double seconds, const std::string& named) {
  constexpr double kLongest = 86'400;
  if (!(seconds >= 0 && seconds <= kLongest)) {
    return usage_error(fmt::format("{} takes seconds, 0 to {}", named, kLongest));
  }
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

Result<Settings> load_settings(const std::string& path) {
  Settings settings;
  const std::string file = path.empty() ? kDefaultFile : path;
  auto text = path.empty() ? read_default_file() : read_file(file);
  if (!text) return usage_error(text.error().message);
  if (text->empty() && path.empty()) return settings;
  std::error_code ignored;
  settings.file = std::filesystem::absolute(file, ignored).string();
  ASSAY_TRY(TomlTable root, TomlTable::parse(*text, file, kVersion));
  double keep = 0;
  ASSAY_CHECK(root.read("keep_frameworks", keep));
  ASSAY_TRY(settings.keep_frameworks, seconds_to_keep(keep, file + ": keep_frameworks"));
  ASSAY_CHECK(root.read("apis", settings.apis));
  const std::filesystem::path home = std::filesystem::path(settings.file).parent_path();
  for (std::string& folder : settings.apis) folder = (home / folder).string();
  const auto read = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(FrameworkConfig config, read_framework(name, table));
    ASSAY_CHECK(check_framework(file, "frameworks." + name, config));
    settings.frameworks.emplace(name, std::move(config));
    return {};
  };
  ASSAY_CHECK(root.read_tables("frameworks", read));
  const auto take_lane = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(LaneConfig lane, read_lane(name, table, settings));
    ASSAY_CHECK(check_framework(file, "lanes." + name, lane.framework));
    settings.lanes.emplace(name, std::move(lane));
    return {};
  };
  ASSAY_CHECK(root.read_tables("lanes", take_lane));
  ASSAY_CHECK(root.refuse_others());
  return settings;
}

}  // namespace assay
