#include "cli/settings.h"

#include <fmt/format.h>

#include <filesystem>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace assay {
namespace {

constexpr const char* kDefaultFile = "assay.toml";
constexpr std::int64_t kVersion = 1;

// .venv/NAME/bin/python in the folder that the lane package lies in: made by `make setup`.
std::string own_environment(const std::string& name) {
  const auto package = LanePackage::find();
  if (!package) return {};
  const auto python = package->python_path.parent_path() / ".venv" / name / "bin" / "python";
  return std::filesystem::exists(python) ? python.string() : std::string();
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
  if (path.empty() && !std::filesystem::exists(file)) return settings;
  auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  const toml::parse_result parsed = toml::parse(*text, file);
  if (!parsed) {
    return usage_error(fmt::format("{}:{}: {}", file, parsed.error().source().begin.line,
                                   parsed.error().description()));
  }
  const toml::table& root = parsed.table();
  if (root["version"].value_or<std::int64_t>(0) != kVersion) {
    return usage_error(fmt::format("{}: version = {} is wanted", file, kVersion));
  }
  for (const auto& [key, node] : root) {
    if (key.str() != "version" && key.str() != "frameworks") {
      return usage_error(
          fmt::format("{}:{}: unknown setting {}", file, node.source().begin.line, key.str()));
    }
  }
  if (const toml::table* frameworks = root["frameworks"].as_table()) {
    for (const auto& [name, node] : *frameworks) {
      FrameworkConfig config;
      config.name = name.str();
      config.python = node.at_path("python").value_or(std::string());
      if (const toml::array* entries = node.at_path("environment").as_array()) {
        for (const toml::node& entry : *entries) {
          config.environment.push_back(entry.value_or(std::string()));
        }
      }
      settings.frameworks.emplace(config.name, std::move(config));
    }
  }
  return settings;
}

}  // namespace assay
