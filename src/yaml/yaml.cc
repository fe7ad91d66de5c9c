#include "yaml/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

#include "base/values.h"

namespace assay {
namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t kMostNodes = 20'000;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // a parser takes 60 times as many

ConfigNode scalar(Kind kind, std::string text) { return {kind, 0, std::move(text), "", {}}; }

tl::unexpected<Error> error_at(std::string_view where, int line, std::string_view message) {
  return usage_error(fmt::format("{}:{}: {}", where, line, message));
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  return read_number(text, value);
}

// A scalar without quotes, by the rules of YAML 1.1 and PyYAML.
ConfigNode plain(std::string text) {
  constexpr std::array<std::string_view, 23> kWords{
      "",   "~",  "null",  "Null",  "NULL",  "true", "True", "TRUE", "yes", "Yes", "YES", "on",
      "On", "ON", "false", "False", "FALSE", "no",   "No",   "NO",   "off", "Off", "OFF"};
  constexpr std::ptrdiff_t kFirstTrue = 5;
  constexpr std::ptrdiff_t kFirstFalse = 14;
  const auto word = std::find(kWords.begin(), kWords.end(), text) - kWords.begin();
  if (word < kFirstTrue) return {};
  if (word < kFirstFalse) return scalar(Kind::flag, "True");
  if (word < std::ssize(kWords)) return scalar(Kind::flag, "False");
  const Kind kind = is_number(text) ? Kind::number : Kind::text;
  return scalar(kind, std::move(text));
}

// `left`: how many more nodes the file may have. Aliases are copied, so few bytes can be many.
Result<ConfigNode> converted(const YAML::Node& node, std::string_view where, int depth,
                             std::size_t& left) {
  constexpr int kDeepest = 16;
  const int line = node.Mark().line + 1;
  if (depth > kDeepest) return error_at(where, line, "too many nested levels");
  if (left-- == 0) return error_at(where, line, "too many values");
  ConfigNode result;
  if (node.IsMap()) {
    result.kind = Kind::table;
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      ASSAY_TRY(ConfigNode inner, converted(entry.second, where, depth + 1, left));
      inner.line = key.Mark().line + 1;
      if (!key.IsScalar()) return error_at(where, inner.line, "a key must be a text");
      inner.name = key.Scalar();
      for (const ConfigNode& other : result.entries) {
        if (other.name == inner.name) {
          return error_at(where, inner.line, "duplicate key " + inner.name);
        }
      }
      result.entries.push_back(std::move(inner));
    }
  } else if (node.IsSequence()) {
    result.kind = Kind::list;
    for (const YAML::Node& entry : node) {
      ASSAY_TRY(result.entries.emplace_back(), converted(entry, where, depth + 1, left));
    }
  } else if (node.IsScalar()) {
    const bool quoted = node.Tag() == "!";
    result = quoted ? scalar(Kind::text, node.Scalar()) : plain(node.Scalar());
  }
  result.line = line;
  return result;
}

}  // namespace

Result<ConfigNode> yaml_tree(const std::string& text, std::string_view where) {
  if (text.size() > kMostBytes) return usage_error(fmt::format("{}: larger than 1 MiB", where));
  try {
    std::size_t left = kMostNodes;
    return converted(YAML::Load(text), where, 0, left);
  } catch (const YAML::Exception& error) {
    return error_at(where, error.mark.line + 1, error.msg);
  }
}

}  // namespace assay
