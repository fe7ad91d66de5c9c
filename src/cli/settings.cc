#include "cli/settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/toml.h"

namespace assay {
namespace {

constexpr const char* kDefaultFile = "assay.toml";
constexpr std::int64_t kVersion = 1;

// .venv/NAME/bin/python in the folder that the lane package lies in: made by `make setup`.
std::string own_environment(const std::string& name) {
  const auto package = LanePackage::find();
  if (!package) return {};
  const auto python = package->python_path.parent_path() / ".venv" / name / "bin" / "python";
  std::error_code error;
  return std::filesystem::exists(python, error) ? python.string() : std::string();
}

// The Python of the environment that assay is installed in. Its command says which
// (python/assay/__main__.py); a program that is called by its path lies in
// PREFIX/lib/pythonX.Y/site-packages. Empty: not installed.
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

Result<FrameworkConfig> read_framework(const std::string& name, TomlTable& table) {
  FrameworkConfig config;
  config.name = name;
  ASSAY_CHECK(table.read("python", config.python));
  ASSAY_CHECK(table.read("environment", config.environment));
  return config;
}

// The lane that `table` makes of the frameworks read so far.
Result<LaneConfig> read_lane(const std::string& name, TomlTable& table, const Settings& settings) {
  LaneConfig lane;
  lane.label = name;
  std::string framework = name;
  ASSAY_CHECK(table.read("framework", framework));
  std::string python;
  ASSAY_CHECK(table.read("python", python));
  lane.framework = settings.framework(framework, python);
  ASSAY_CHECK(table.read("environment", lane.framework.environment));
  ASSAY_CHECK(table.read("device", lane.device));
  ASSAY_CHECK(table.read("execution", lane.execution));
  lane.reference_functions = framework == kTablesFramework;
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
    lane.framework = framework(name, python);
    lane.reference_functions = name == kTablesFramework;
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
  std::error_code error;
  if (path.empty() &&
      std::filesystem::status(file, error).type() == std::filesystem::file_type::not_found) {
    return settings;
  }
  auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  ASSAY_TRY(TomlTable root, TomlTable::parse(*text, file, kVersion));
  double keep = 0;
  ASSAY_CHECK(root.read("keep_frameworks", keep));
  ASSAY_TRY(settings.keep_frameworks, seconds_to_keep(keep, file + ": keep_frameworks"));
  const auto read = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(FrameworkConfig config, read_framework(name, table));
    settings.frameworks.emplace(name, std::move(config));
    return {};
  };
  ASSAY_CHECK(root.read_tables("frameworks", read));
  const auto take_lane = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(LaneConfig lane, read_lane(name, table, settings));
    settings.lanes.emplace(name, std::move(lane));
    return {};
  };
  ASSAY_CHECK(root.read_tables("lanes", take_lane));
  ASSAY_CHECK(root.refuse_others());
  return settings;
}

}  // namespace assay
