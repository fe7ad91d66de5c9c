#include "chain/plan/stage_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>

#include "base/fd.h"
#include "base/text.h"
#include "base/toml.h"
#include "chain/params/shell_words.h"

namespace assay::chain::plan {
namespace {

// In the order in which they run.
constexpr std::array kKinds{StageKind::prepare,      StageKind::train,   StageKind::eval,
                            StageKind::export_model, StageKind::convert, StageKind::infer};

std::optional<StageKind> kind_named(std::string_view word) {
  for (const StageKind kind : kKinds) {
    if (name(kind) == word) return kind;
  }
  return std::nullopt;
}

// A stage with what it needs by name.
struct Entry {
  Stage stage;
  std::vector<std::string> needs;
  bool told_needs = false;
};

Status check_pattern(const std::string& stage_name, const std::string& pattern) {
  try {
    const std::regex regex(pattern);
    if (pattern.empty() || regex.mark_count() > 0) return {};
  } catch (const std::regex_error& error) {
    return usage_error(fmt::format("stage {}: log.loss: {}", stage_name, error.what()));
  }
  return usage_error(
      fmt::format("stage {}: log.loss needs a group around the number: (\\S+)", stage_name));
}

Result<Entry> read_entry(const std::string& stage_name, TomlTable& table,
                         const std::string& python) {
  Entry entry;
  Stage& stage = entry.stage;
  stage.name = stage_name;
  stage.device = "cpu";
  std::string kind = stage_name;
  ASSAY_CHECK(table.read("kind", kind, "command", stage.command, "makes", stage.output, "reads",
                         stage.input, "device", stage.device, "environment", stage.environment,
                         "directory", stage.directory, "may_stop_early", stage.may_stop_early));
  ASSAY_CHECK(table.read_table("log", [&](const std::string&, TomlTable& log) {
    return log.read("loss", stage.loss_pattern);
  }));
  ASSAY_CHECK(check_pattern(stage_name, stage.loss_pattern));
  constexpr const char* kUnset = "\n";
  entry.needs = {kUnset};
  ASSAY_CHECK(table.read("needs", entry.needs));
  entry.told_needs = entry.needs != std::vector<std::string>{kUnset};
  const std::optional<StageKind> known = kind_named(kind);
  if (!known) {
    return usage_error(fmt::format(
        "stage {}: unknown kind `{}`; known are prepare, train, eval, export, convert, infer",
        stage_name, kind));
  }
  stage.kind = *known;
  ASSAY_TRY(stage.argv, params::split_words(stage.command));
  if (stage.argv.empty()) {
    ASSAY_CHECK(table.refuse_others());  // such as `comand`
    return usage_error(fmt::format("stage {} has no command", stage_name));
  }
  for (const std::string_view word : {"&&", "||", "|", ";", ">", ">>", "cd", "source"}) {
    if (std::ranges::find(stage.argv, word) == stage.argv.end()) continue;
    return usage_error(fmt::format(
        "stage {}: `{}` is for a shell: name a folder in `directory`, or write bash -c '…'",
        stage_name, word));
  }
  static const std::regex device("(cpu|gpu|xpu|npu)( [0-9]+(,[0-9]+)*)?");
  if (!std::regex_match(stage.device, device)) {
    return usage_error(fmt::format("stage {}: unknown device `{}`; known are cpu, gpu and gpu 0,1",
                                   stage_name, stage.device));
  }
  if (stage.argv.front().find('=') != std::string::npos) {
    return usage_error(
        fmt::format("stage {}: {} stands before its command: put it into `environment`", stage_name,
                    stage.argv.front()));
  }
  if (!python.empty() && stage.argv.front().starts_with("python")) stage.argv.front() = python;
  return entry;
}

// The stages that one needs by its kind: the last before it of the kinds that make what it reads.
std::vector<std::size_t> usual_needs(StageKind kind, const std::vector<Entry>& earlier) {
  using enum StageKind;
  const auto makes = [&](StageKind made) {
    if (kind == prepare) return false;
    if (made == prepare || kind == train) return made == prepare;
    return made == train || (kind != eval && (made == export_model || made == convert));
  };
  for (std::size_t i = earlier.size(); i-- > 0;) {
    if (makes(earlier[i].stage.kind)) return {i};
  }
  return {};
}

Status link(std::vector<Entry>& entries) {
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < entries.size(); ++i) numbers[entries[i].stage.name] = i;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Stage& stage = entries[i].stage;
    stage.index = i;
    if (!entries[i].told_needs) {
      stage.needs = usual_needs(
          stage.kind, {entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(i)});
      continue;
    }
    for (const std::string& need : entries[i].needs) {
      const auto found = numbers.find(need);
      if (found == numbers.end() || found->second >= i) {
        return usage_error(
            fmt::format("stage {} needs `{}`, which is no stage before it", stage.name, need));
      }
      stage.needs.push_back(found->second);
    }
  }
  return {};
}

}  // namespace

Result<Plan> read_stage_file(const std::string& path, const std::string& python,
                             const std::string& output_root) {
  auto text = read_file(path);
  if (!text) return usage_error(text.error().message);
  ASSAY_TRY(TomlTable file, TomlTable::parse(*text, path, 1));
  Plan plan;
  plan.mode = "stages";
  plan.model = std::filesystem::path(path).stem().string();
  ASSAY_CHECK(file.read("model", plan.model));
  std::vector<Entry> entries;
  ASSAY_CHECK(file.read_tables("stages", [&](const std::string& stage_name, TomlTable& table) {
    return read_entry(stage_name, table, python)
        .map([&](Entry entry) { entries.push_back(std::move(entry)); })
        .map_error([&](Error error) {
          if (!error.message.starts_with(path)) error.message = path + ": " + error.message;
          return error;
        });
  }));
  ASSAY_CHECK(file.refuse_others());
  if (entries.empty()) return usage_error(path + " has no [stages.NAME]");
  std::ranges::stable_sort(
      entries, {}, [](const Entry& entry) { return std::ranges::find(kKinds, entry.stage.kind); });
  ASSAY_CHECK(link(entries));
  plan.folder =
      fmt::format("{}/{}", output_root.empty() ? "./assay-chain" : output_root, plan.model);
  for (Entry& entry : entries) {
    entry.stage.log = fmt::format("{}/{}.log", plan.folder, entry.stage.name);
    entry.stage.on_cpu = entry.stage.device == "cpu";
    plan.stages.push_back(std::move(entry.stage));
  }
  return plan;
}

}  // namespace assay::chain::plan
