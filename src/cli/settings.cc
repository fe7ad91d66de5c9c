#include "cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/toml.h"
#include "cli/trust.h"

namespace assay {
namespace {

constexpr const char* kDefaultFile = "assay.toml";
constexpr std::int64_t kVersion = 1;

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

// Modules that a framework's interpreter, or each lane, imports after the framework, such as
// torch_npu (python/assay/extensions.py).
Status read_modules(TomlTable& table, FrameworkConfig& config) {
  for (const auto& [key, variable] :
       {std::pair{"modules", kModules}, std::pair{"modules_in_lane", kModulesInLane}}) {
    std::vector<std::string> modules;
    ASSAY_CHECK(table.read(key, modules));
    if (!modules.empty()) {
      config.environment.push_back(fmt::format("{}{}", variable, fmt::join(modules, ":")));
    }
  }
  return {};
}

// "cuda" and "cuda:1" are PyTorch's names of "gpu" and "gpu:1".
std::string as_device(const std::string& text) {
  return text == "cuda" || text.starts_with("cuda:") ? "gpu" + text.substr(4) : text;
}

// The folder of the settings file.
struct Home {
  std::filesystem::path folder;
  bool unasked = false;  // nobody has named the file

  // A folder of code that the file names, relative to its own.
  Result<std::string> code_folder(const std::string& named, const std::string& by) const {
    const std::filesystem::path path = folder / named;
    if (unasked) ASSAY_CHECK(check_code_folder(path, by));
    return path.lexically_normal().string();
  }
};

Status read_environment(TomlTable& table, const std::string& of, const Home& home,
                        FrameworkConfig& config) {
  constexpr std::string_view kPath = "PYTHONPATH=";
  ASSAY_CHECK(table.read("environment", config.environment));
  for (std::string& entry : config.environment) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool is_name =
        !name.empty() && name.size() < entry.size() && name.find_first_of(" \t") == name.npos;
    if (!is_name) {
      return usage_error(fmt::format("{}: environment takes NAME=VALUE, not {}", of, entry));
    }
    if (!entry.starts_with(kPath)) continue;
    std::vector<std::string> folders;
    for (const std::string& folder : split_at(entry.substr(kPath.size()), ':')) {
      if (folder.empty()) continue;
      ASSAY_TRY(folders.emplace_back(), home.code_folder(folder, of + ": PYTHONPATH"));
    }
    entry = fmt::format("{}{}", kPath, fmt::join(folders, ":"));
  }
  return {};
}

Result<FrameworkConfig> read_framework(const std::string& name, TomlTable& table,
                                       const Home& home) {
  FrameworkConfig config;
  config.name = name;
  ASSAY_CHECK(table.read("python", config.python));
  ASSAY_CHECK(read_environment(table, name, home, config));
  ASSAY_CHECK(read_modules(table, config));
  return config;
}

// Reads one table of [lanes]. It refers to the frameworks that were read before.
Result<LaneConfig> read_lane(const std::string& name, TomlTable& table, const Settings& settings,
                             const Home& home) {
  LaneConfig lane;
  lane.label = name;
  std::string framework = name;
  std::string python;
  ASSAY_CHECK(table.read("framework", framework, "python", python, "device", lane.device,
                         "execution", lane.execution, "reference_functions",
                         lane.reference_functions));
  lane.framework = settings.framework(framework, python);
  ASSAY_CHECK(read_environment(table, name, home, lane.framework));
  ASSAY_CHECK(read_modules(table, lane.framework));
  lane.device = as_device(lane.device);
  return lane;
}

}  // namespace

FrameworkConfig Settings::framework(const std::string& name, const std::string& python) const {
  FrameworkConfig config;
  if (const auto found = frameworks.find(name); found != frameworks.end()) config = found->second;
  config.name = name;
  config.keep = keep_frameworks;
  if (!python.empty()) config.python = python;
  if (config.python.empty()) config.python = python_of(name);
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

std::vector<std::string> known_executions() { return modules_of("execution", ".py"); }

PlainLane split_lane(const std::string& text) {
  const std::size_t colon = text.find(':');
  PlainLane lane{text.substr(0, colon), "", ""};
  if (colon == std::string::npos) return lane;
  const std::vector<std::string> ways = known_executions();
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
  std::string text;
  if (path.empty()) {
    auto found = read_trusted(kDefaultFile);
    if (!found) return usage_error(found.error().message);
    if (found->path.empty()) return settings;
    settings.file = found->path.string();
    text = std::move(found->text);
  } else {
    auto read = read_file(file);
    if (!read) return usage_error(read.error().message);
    std::error_code ignored;
    settings.file = std::filesystem::absolute(file, ignored).string();
    text = std::move(*read);
  }
  ASSAY_TRY(TomlTable root, TomlTable::parse(text, file, kVersion));
  double keep = 0;
  ASSAY_CHECK(root.read("keep_frameworks", keep));
  ASSAY_TRY(settings.keep_frameworks, seconds_to_keep(keep, file + ": keep_frameworks"));
  ASSAY_CHECK(root.read("apis", settings.apis));
  const Home home{std::filesystem::path(settings.file).parent_path(), path.empty()};
  for (std::string& folder : settings.apis) {
    ASSAY_TRY(folder, home.code_folder(folder, file + ": apis"));
  }
  const auto read = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(FrameworkConfig config, read_framework(name, table, home));
    ASSAY_CHECK(check_framework(file, "frameworks." + name, config));
    settings.frameworks.emplace(name, std::move(config));
    return {};
  };
  ASSAY_CHECK(root.read_tables("frameworks", read));
  const auto take_lane = [&](const std::string& name, TomlTable& table) -> Status {
    ASSAY_TRY(LaneConfig lane, read_lane(name, table, settings, home));
    ASSAY_CHECK(table.refuse_others());
    ASSAY_CHECK(check_framework(file, "lanes." + name, lane.framework));
    settings.lanes.emplace(name, std::move(lane));
    return {};
  };
  ASSAY_CHECK(root.read_tables("lanes", take_lane));
  ASSAY_CHECK(root.refuse_others());
  return settings;
}

}  // namespace assay
