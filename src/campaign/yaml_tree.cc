#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <set>

#include "campaign/tree.h"

namespace assay {
namespace {

using Kind = ConfigNode::Kind;
constexpr int kDeepest = 16;

template <std::size_t Count>
bool is_one_of(std::string_view text, const std::array<std::string_view, Count>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A scalar without quotes, as YAML 1.1 and PyYAML read it.
ConfigNode plain(std::string text) {
  constexpr std::array<std::string_view, 5> kNothing{"", "~", "null", "Null", "NULL"};
  constexpr std::array<std::string_view, 9> kTrue{"true", "True", "TRUE", "yes", "Yes",
                                                  "YES",  "on",   "On",   "ON"};
  constexpr std::array<std::string_view, 9> kFalse{"false", "False", "FALSE", "no", "No",
                                                   "NO",    "off",   "Off",   "OFF"};
  if (is_one_of(text, kNothing)) return {Kind::nothing, 0, "", {}};
  if (is_one_of(text, kTrue)) return {Kind::flag, 0, "True", {}};
  if (is_one_of(text, kFalse)) return {Kind::flag, 0, "False", {}};
  if (is_number(text)) return {Kind::number, 0, std::move(text), {}};
  return {Kind::text, 0, std::move(text), {}};
}

Result<ConfigNode> setting_of(const YAML::Node& node, std::string_view where, int depth);

Result<ConfigNode> table_of(const YAML::Node& node, std::string_view where, int depth) {
  ConfigNode table;
  table.kind = Kind::table;
  std::set<std::string> names;
  for (const auto& entry : node) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) {
      return usage_error(fmt::format("{}:{}: a name is wanted here", where, line));
    }
    const std::string name = entry.first.Scalar();
    if (!names.insert(name).second) {
      return usage_error(fmt::format("{}:{}: {} stands there twice", where, line, name));
    }
    ASSAY_TRY(ConfigNode inner, setting_of(entry.second, where, depth + 1));
    inner.line = line;
    table.entries.push_back({name, std::move(inner)});
  }
  return table;
}

Result<ConfigNode> setting_of(const YAML::Node& node, std::string_view where, int depth) {
  const int line = node.Mark().line + 1;
  if (depth > kDeepest) return usage_error(fmt::format("{}:{}: nested too deep", where, line));
  ConfigNode setting;
  if (node.IsMap()) {
    ASSAY_TRY(setting, table_of(node, where, depth));
  } else if (node.IsSequence()) {
    setting.kind = Kind::list;
    for (const YAML::Node& entry : node) {
      ASSAY_TRY(ConfigNode inner, setting_of(entry, where, depth + 1));
      setting.entries.push_back({"", std::move(inner)});
    }
  } else if (node.IsScalar()) {
    const bool quoted = node.Tag() == "!";
    setting = quoted ? ConfigNode{Kind::text, 0, node.Scalar(), {}} : plain(node.Scalar());
  }
  setting.line = line;
  return setting;
}

}  // namespace

Result<ConfigNode> yaml_tree(const std::string& text, std::string_view where) {
  try {
    return setting_of(YAML::Load(text), where, 0);
  } catch (const YAML::Exception& error) {
    return usage_error(fmt::format("{}:{}: {}", where, error.mark.line + 1, error.msg));
  }
}

}  // namespace assay
