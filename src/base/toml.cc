#include "base/toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

// What it asserts while it reads a key does not hold for every text; without assertions it reports
// an error.
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/nearest.h"
#include "base/utf8.h"

namespace assay {
namespace {

using Kind = ConfigNode::Kind;

ConfigNode scalar(Kind kind, std::string text) { return {kind, 0, std::move(text), "", {}}; }

Result<ConfigNode> converted(const toml::node& node, std::string_view where) {
  ConfigNode result;
  if (const auto* flag = node.as_boolean()) {
    result = scalar(Kind::flag, flag->get() ? "True" : "False");
  } else if (const auto* whole = node.as_integer()) {
    result = scalar(Kind::number, fmt::format("{}", whole->get()));
  } else if (const auto* number = node.as_floating_point()) {
    result = scalar(Kind::number, fmt::format("{:#}", number->get()));
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
    return usage_error(
        fmt::format("{}:{}: a date or time is no setting", where, node.source().begin.line));
  }
  result.line = node.source().begin.line;
  return result;
}

template <typename Number>
bool is_number(const ConfigNode& node, Number& value) {
  const std::string_view digits = std::string_view(node.text).substr(node.text.starts_with('+'));
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  return node.kind == Kind::number && parsed.ec == std::errc() && parsed.ptr == end;
}

// The end of the string of TOML that starts at `at`, or of the text.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  std::size_t marks = 1;
  while (marks < 6 && at + marks < text.size() && text[at + marks] == quote) ++marks;
  if (marks == 2 || marks == 6) return at + marks;  // an empty string
  const std::string end(marks >= 3 ? 3 : 1, quote);
  for (std::size_t i = at + end.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text.substr(i).starts_with(end)) {
      return i + end.size();
    } else if (end.size() == 1 && text[i] == '\n') {
      return i;
    }
  }
  return text.size();
}

}  // namespace

std::string toml_text(std::string_view text) {
  std::string safe = "\"";
  for (const char c : replace_bad_bytes(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      safe += '\\';
      safe += c;
    } else if (byte < ' ' || byte == 0x7f) {
      safe += fmt::format("\\u{:04X}", byte);
    } else {
      safe += c;
    }
  }
  return safe + "\"";
}

Status check_toml_keys(std::string_view text, std::string_view where) {
  constexpr std::size_t kMostParts = 16;
  std::size_t dots = 0;  // since the last character that no key has
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(text, i) - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.' && ++dots == kMostParts) {
      const auto line =
          1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
      return usage_error(
          fmt::format("{}:{}: a key has more than {} parts", where, line, kMostParts));
    } else if (std::string_view("\n,={}[]").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
  return {};
}

Result<ConfigNode> toml_tree(std::string_view text, std::string_view where) {
  constexpr std::size_t kMostBytes = std::size_t{2} << 20;  // the parser takes 30 times as many
  if (text.size() > kMostBytes) return usage_error(fmt::format("{}: larger than 2 MiB", where));
  ASSAY_CHECK(check_toml_keys(text, where));
  const toml::parse_result parsed = toml::parse(text, where);
  if (parsed) return converted(parsed.table(), where);
  const toml::parse_error& error = parsed.error();
  return usage_error(
      fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
}

TomlTable::TomlTable(ConfigNode table, std::string_view where)
    : file_(std::make_shared<const ConfigNode>(std::move(table))),
      table_(file_.get()),
      where_(where) {}

TomlTable::TomlTable(const TomlTable& outer, const ConfigNode& table, std::string name)
    : file_(outer.file_), table_(&table), where_(outer.where_), name_(std::move(name)) {}

const ConfigNode* TomlTable::find(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = std::ranges::find(table_->entries, key, &ConfigNode::name);
  return found == table_->entries.end() || found->kind == Kind::nothing ? nullptr : &*found;
}

std::string TomlTable::named(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

tl::unexpected<Error> TomlTable::error(const ConfigNode& at, std::string_view message) const {
  return usage_error(fmt::format("{}:{}: {}", where_, at.line, message));
}

Result<TomlTable> TomlTable::parse(std::string_view text, std::string_view where,
                                   std::int64_t version) {
  ASSAY_TRY(ConfigNode tree, toml_tree(text, where));
  TomlTable table(std::move(tree), where);
  ASSAY_CHECK(table.want_version(version));
  return table;
}

Status TomlTable::want_version(std::int64_t version) {
  const ConfigNode* const found = find("version");
  std::int64_t of_file = 0;
  if (found != nullptr && is_number(*found, of_file) && of_file == version) return {};
  std::vector<std::string_view> keys;
  keys.reserve(table_->entries.size());
  for (const ConfigNode& entry : table_->entries) keys.push_back(entry.name);
  const std::string_view meant = found == nullptr ? nearest("version", keys) : std::string_view();
  return usage_error(fmt::format("{}: version = {} is wanted{}", where_, version,
                                 meant.empty() ? "" : fmt::format(", not {}", meant)));
}

Status TomlTable::read(std::string_view key, bool& value) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::flag) return error(*node, named(key) + " wants true or false");
  value = node->text == "True";
  return {};
}

Status TomlTable::read(std::string_view key, std::optional<bool>& value) {
  if (find(key) == nullptr) return {};
  return read(key, value.emplace());
}

Status TomlTable::read(std::string_view key, std::int64_t& value) {
  const ConfigNode* const node = find(key);
  if (node == nullptr || (is_number(*node, value) && value >= 1)) return {};
  return error(*node, named(key) + " wants a whole number of at least 1");
}

Status TomlTable::read(std::string_view key, double& value) {
  const ConfigNode* const node = find(key);
  if (node == nullptr || is_number(*node, value)) return {};
  return error(*node, named(key) + " wants a number");
}

Status TomlTable::read(std::string_view key, std::string& value) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::text) return error(*node, named(key) + " wants a text in quotes");
  value = node->text;
  return {};
}

Status TomlTable::read(std::string_view key, std::vector<std::string>& value) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::list || !std::ranges::all_of(node->entries, [](const ConfigNode& each) {
        return each.kind == Kind::text;
      })) {
    return error(*node, named(key) + " wants a list of texts in quotes");
  }
  value.clear();
  for (const ConfigNode& entry : node->entries) value.push_back(entry.text);
  return {};
}

Status TomlTable::read_inner(const ConfigNode& table, std::string_view key,
                             const ReadTable& read) const {
  TomlTable inner(*this, table, named(key));
  ASSAY_CHECK(read(std::string(key), inner));
  return inner.refuse_others();
}

Status TomlTable::each_table(const ReadTable& read) {
  for (const ConfigNode& entry : table_->entries) {
    if (entry.kind != Kind::table) continue;
    asked_.push_back(entry.name);
    ASSAY_CHECK(read_inner(entry, entry.name, read));
  }
  return {};
}

Status TomlTable::read_table(std::string_view key, const ReadTable& read) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::table) return error(*node, named(key) + " wants a table");
  return read_inner(*node, key, read);
}

Status TomlTable::read_tables(std::string_view key, const ReadTable& read) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::table) {
    return error(*node, fmt::format("{} wants tables: [{}.NAME]", key, named(key)));
  }
  return read_inner(*node, key,
                    [&](const std::string&, TomlTable& inner) { return inner.each_table(read); });
}

Status TomlTable::read_array(std::string_view key, const ReadTable& read) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::list) {
    return error(*node, fmt::format("{} wants tables: [[{}]]", key, named(key)));
  }
  for (const ConfigNode& entry : node->entries) {
    if (entry.kind != Kind::table) return error(entry, fmt::format("{} wants tables", key));
    ASSAY_CHECK(read_inner(entry, key, read));
  }
  return {};
}

Status TomlTable::read_scalars(std::string_view key, const ReadScalar& read) {
  const ConfigNode* const node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Kind::table) return error(*node, named(key) + " wants a table");
  for (const ConfigNode& entry : node->entries) {
    if (entry.kind == Kind::nothing) continue;
    if (!entry.is_scalar()) {
      return error(entry, fmt::format("{}.{} wants one value", named(key), entry.name));
    }
    ASSAY_CHECK(read(entry));
  }
  return {};
}

Status TomlTable::read_texts(std::string_view key, const ReadText& read) {
  return read_scalars(key, [&](const ConfigNode& entry) -> Status {
    if (entry.kind != Kind::text) {
      return error(entry, fmt::format("{}.{} wants a text in quotes", key, entry.name));
    }
    read(entry.name, entry.text);
    return {};
  });
}

Status TomlTable::refuse_others() const {
  for (const ConfigNode& entry : table_->entries) {
    if (std::ranges::find(asked_, entry.name) != asked_.end()) continue;
    const std::string known =
        asked_.empty() ? std::string("only tables") : fmt::format("{}", fmt::join(asked_, ", "));
    return error(entry, fmt::format("unknown setting {}; known here: {}{}", named(entry.name),
                                    known, suggest(entry.name, asked_)));
  }
  return {};
}

}  // namespace assay
