#include <fmt/format.h>

#include "campaign/tree.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace assay {
namespace {

using Kind = ConfigNode::Kind;

Result<ConfigNode> setting_of(const toml::node& node, std::string_view where) {
  ConfigNode setting;
  setting.line = node.source().begin.line;
  if (const auto* flag = node.as_boolean()) {
    setting.kind = Kind::flag;
    setting.text = flag->get() ? "True" : "False";
  } else if (const auto* whole = node.as_integer()) {
    setting.kind = Kind::number;
    setting.text = fmt::format("{}", whole->get());
  } else if (const auto* number = node.as_floating_point()) {
    setting.kind = Kind::number;
    setting.text = fmt::format("{}", number->get());
  } else if (const auto* text = node.as_string()) {
    setting.kind = Kind::text;
    setting.text = text->get();
  } else if (const auto* list = node.as_array()) {
    setting.kind = Kind::list;
    for (const toml::node& entry : *list) {
      ASSAY_TRY(ConfigNode inner, setting_of(entry, where));
      setting.entries.push_back({"", std::move(inner)});
    }
  } else if (const auto* table = node.as_table()) {
    setting.kind = Kind::table;
    for (const auto& [key, entry] : *table) {
      ASSAY_TRY(ConfigNode inner, setting_of(entry, where));
      inner.line = key.source().begin.line;
      setting.entries.push_back({std::string(key.str()), std::move(inner)});
    }
  } else {
    return usage_error(fmt::format("{}:{}: dates mean nothing here", where, setting.line));
  }
  return setting;
}

}  // namespace

Result<ConfigNode> toml_tree(std::string_view text, std::string_view where) {
  const toml::parse_result parsed = toml::parse(text, where);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return usage_error(
        fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
  return setting_of(parsed.table(), where);
}

}  // namespace assay
