#include <fmt/format.h>

#include <algorithm>

#include "base/fd.h"
#include "cli/api_parts.h"
#include "yaml/yaml.h"

namespace assay {
namespace {

constexpr std::string_view kTable = "manual_threshold_config";

Result<std::string> threshold_of(const ConfigNode& entry, const std::string& path) {
  const bool two_numbers =
      entry.kind == ConfigNode::Kind::list && entry.entries.size() == 2 &&
      std::ranges::all_of(entry.entries, [](const ConfigNode& number) {
        return number.kind == ConfigNode::Kind::number && !number.text.starts_with('-');
      });
  if (!two_numbers || entry.name.find_first_of(" ;") != std::string::npos) {
    return usage_error(fmt::format("{}:{}: {} takes two numbers of at least 0: [ATOL, RTOL]", path,
                                   entry.line, entry.name));
  }
  return fmt::format("{} {} {};", entry.name, entry.entries[0].text, entry.entries[1].text);
}

}  // namespace

Result<std::string> read_thresholds(const std::string& path) {
  std::string thresholds;
  if (path.empty()) return thresholds;
  const auto text = read_file(path);
  if (!text) return usage_error(text.error().message);
  ASSAY_TRY(const ConfigNode root, yaml_tree(*text, path));
  const auto table = std::ranges::find(root.entries, kTable, &ConfigNode::name);
  if (table == root.entries.end() || table->kind != ConfigNode::Kind::table) {
    return usage_error(fmt::format("{}: there is no table {}", path, kTable));
  }
  for (const ConfigNode& entry : table->entries) {
    ASSAY_TRY(const std::string threshold, threshold_of(entry, path));
    thresholds += threshold;
  }
  return thresholds;
}

}  // namespace assay
