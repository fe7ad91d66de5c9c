#include "campaign/tree.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>

#define TOML_ASSERT(expression) static_cast<void>(0)  // as in base/toml.cc
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/toml.h"

namespace assay {
namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t kMostNodes = 20'000;

ConfigNode scalar(Kind kind, std::string text) { return {kind, 0, std::move(text), "", {}}; }

template <typename Line>
tl::unexpected<Error> error_at(std::string_view where, Line line, std::string_view message) {
  return usage_error(fmt::format("{}:{}: {}", where, line, message));
}

Result<ConfigNode> converted(const toml::node& node, std::string_view where) {
  ConfigNode result;
  if (const auto* flag = node.as_boolean()) {
    result = scalar(Kind::flag, flag->get() ? "True" : "False");
  } else if (const auto* whole = node.as_integer()) {
    result = scalar(Kind::number, fmt::format("{}", whole->get()));
  } else if (const auto* number = node.as_floating_point()) {
    result = scalar(Kind::number, fmt::format("{}", number->get()));
  } else if (const auto* text = node.as_string()) {
    result = scalar(Kind::text, text->get());
  } else if (const auto* list = node.as_array()) {
    result.kind = Kind::list;
    for (const toml::node& entry : *list) {
      ASSAY_TRY(result.entries.emplace_back(), converted(entry, where));
    }
  } else if (const auto* table = node.as_table()) {
    result.kind = Kind::table;
    for (const auto& [key, entry] : *table) {
      ConfigNode& inner = result.entries.emplace_back();
      ASSAY_TRY(inner, converted(entry, where));
      inner.line = key.source().begin.line;
      inner.name = key.str();
    }
  } else {
    return error_at(where, node.source().begin.line, "a campaign has no dates");
  }
  result.line = node.source().begin.line;
  return result;
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
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

Result<ConfigNode> toml_tree(std::string_view text, std::string_view where) {
  ASSAY_CHECK(check_toml_keys(text, where));
  const toml::parse_result parsed = toml::parse(text, where);
  if (parsed) return converted(parsed.table(), where);
  return error_at(where, parsed.error().source().begin.line, parsed.error().description());
}

Result<ConfigNode> yaml_tree(const std::string& text, std::string_view where) {
  try {
    std::size_t left = kMostNodes;
    return converted(YAML::Load(text), where, 0, left);
  } catch (const YAML::Exception& error) {
    return error_at(where, error.mark.line + 1, error.msg);
  }
}

}  // namespace assay
