#include "cli/settings.h"

#include <fmt/format.h>

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

Result<FrameworkConfig> read_framework(const std::string& name, TomlTable& table) {
  FrameworkConfig config;
  config.name = name;
  ASSAY_CHECK(table.read("python", config.python));
  ASSAY_CHECK(table.read("environment", config.environment));
  return config;
}

}  // namespace

FrameworkConfig Settings::framework(const std::string& name, const std::string& python) const {
  FrameworkConfig config;
  if (const auto found = frameworks.find(name); found != frameworks.end()) config = found->second;
  config.name = name;
  if (!python.empty()) config.python = python;
  if (config.python.empty()) config.python = own_environment(name);
  if (config.python.empty()) config.python = "python3";
  return config;
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
  const auto read = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(FrameworkConfig config, read_framework(name, table));
    settings.frameworks.emplace(name, std::move(config));
    return {};
  };
  ASSAY_CHECK(root.read_tables("frameworks", read));
  ASSAY_CHECK(root.refuse_others());
  return settings;
}

}  // namespace assay
