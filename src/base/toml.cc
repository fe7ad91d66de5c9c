#include "base/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

// What it asserts while it reads a key does not hold for every text; without assertions it reports
// an error.
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/nearest.h"

namespace assay {

struct TomlTable::Impl {
  std::shared_ptr<const toml::table> document;  // keeps all tables alive
  const toml::table* table = nullptr;
  std::string where;
  std::string name;  // "frameworks.paddle"; empty for the whole file
  std::vector<std::string> asked;

  const toml::node* find(std::string_view key) {
    asked.emplace_back(key);
    return table->get(key);
  }
  tl::unexpected<Error> error(const toml::node& at, std::string_view message) const {
    return usage_error(fmt::format("{}:{}: {}", where, at.source().begin.line, message));
  }
  std::string named(std::string_view key) const {
    return name.empty() ? std::string(key) : fmt::format("{}.{}", name, key);
  }
};

namespace {

std::optional<std::vector<std::string>> texts_of(const toml::node& node) {
  std::vector<std::string> texts;
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  for (const toml::node& entry : *array) {
    const auto* text = entry.as_string();
    if (text == nullptr) return std::nullopt;
    texts.push_back(text->get());
  }
  return texts;
}

template <typename T>
std::optional<T> value_of(const toml::node& node) {
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return texts_of(node);
  } else if constexpr (std::is_same_v<T, double>) {
    return node.is_number() ? node.value<double>() : std::nullopt;
  } else {
    return node.value_exact<T>();
  }
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

TomlTable::TomlTable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TomlTable::TomlTable(TomlTable&&) noexcept = default;
TomlTable& TomlTable::operator=(TomlTable&&) noexcept = default;
TomlTable::~TomlTable() = default;

Result<TomlTable> TomlTable::parse(std::string_view text, std::string_view where,
                                   std::int64_t version) {
  ASSAY_CHECK(check_toml_keys(text, where));
  toml::parse_result parsed = toml::parse(text, where);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return usage_error(
        fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
  auto impl = std::make_unique<Impl>();
  impl->document = std::make_shared<const toml::table>(std::move(parsed).table());
  impl->table = impl->document.get();
  impl->where = where;
  const toml::node* found = impl->find("version");
  if (found == nullptr || found->value_exact<std::int64_t>() != version) {
    return usage_error(fmt::format("{}: version = {} is wanted", where, version));
  }
  return TomlTable(std::move(impl));
}

template <typename T>
Status TomlTable::read_as(std::string_view key, T& value, std::string_view wanted) {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return {};
  auto found = value_of<T>(*node);
  if (!found) return impl_->error(*node, fmt::format("{} wants {}", impl_->named(key), wanted));
  value = std::move(*found);
  return {};
}

Status TomlTable::read(std::string_view key, bool& value) {
  return read_as(key, value, "true or false");
}
Status TomlTable::read(std::string_view key, double& value) {
  return read_as(key, value, "a number");
}
Status TomlTable::read(std::string_view key, std::string& value) {
  return read_as(key, value, "a text in quotes");
}
Status TomlTable::read(std::string_view key, std::vector<std::string>& value) {
  return read_as(key, value, "a list of texts in quotes");
}

Status TomlTable::each_table(const ReadTable& read) {
  for (const auto& [key, node] : *impl_->table) {
    const toml::table* const inner = node.as_table();
    if (inner == nullptr) continue;
    impl_->asked.emplace_back(key.str());
    auto impl = std::make_unique<Impl>(*impl_);
    impl->table = inner;
    impl->name = impl_->named(key.str());
    impl->asked.clear();
    TomlTable table(std::move(impl));
    ASSAY_CHECK(read(std::string(key.str()), table));
    ASSAY_CHECK(table.refuse_others());
  }
  return {};
}

Status TomlTable::read_tables(std::string_view key, const ReadTable& read) {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return {};
  const toml::table* const inner = node->as_table();
  if (inner == nullptr) {
    return impl_->error(*node, fmt::format("{} wants tables: [{}.NAME]", key, impl_->named(key)));
  }
  auto impl = std::make_unique<Impl>(*impl_);
  impl->table = inner;
  impl->name = impl_->named(key);
  impl->asked.clear();
  TomlTable table(std::move(impl));
  ASSAY_CHECK(table.each_table(read));
  return table.refuse_others();
}

Status TomlTable::read_array(std::string_view key, const ReadTable& read) {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return {};
  const toml::array* const array = node->as_array();
  if (array == nullptr) {
    return impl_->error(*node, fmt::format("{} wants tables: [[{}]]", key, impl_->named(key)));
  }
  for (const toml::node& entry : *array) {
    const toml::table* const inner = entry.as_table();
    if (inner == nullptr) return impl_->error(entry, fmt::format("{} wants tables", key));
    auto impl = std::make_unique<Impl>(*impl_);
    impl->table = inner;
    impl->name = impl_->named(key);
    impl->asked.clear();
    TomlTable table(std::move(impl));
    ASSAY_CHECK(read(std::string(key), table));
    ASSAY_CHECK(table.refuse_others());
  }
  return {};
}

Status TomlTable::read_texts(std::string_view key, const ReadText& read) {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return {};
  const toml::table* const inner = node->as_table();
  if (inner == nullptr) return impl_->error(*node, fmt::format("{} wants a table", key));
  for (const auto& [name, value] : *inner) {
    const auto* text = value.as_string();
    if (text == nullptr) {
      return impl_->error(value, fmt::format("{}.{} wants a text in quotes", key, name.str()));
    }
    read(std::string(name.str()), text->get());
  }
  return {};
}

Status TomlTable::refuse_others() const {
  for (const auto& [key, node] : *impl_->table) {
    if (std::find(impl_->asked.begin(), impl_->asked.end(), key.str()) != impl_->asked.end()) {
      continue;
    }
    const std::string known = impl_->asked.empty()
                                  ? std::string("only tables")
                                  : fmt::format("{}", fmt::join(impl_->asked, ", "));
    return impl_->error(
        node, fmt::format("unknown setting {}; known here: {}{}", impl_->named(key.str()), known,
                          suggest(key.str(), impl_->asked)));
  }
  return {};
}

}  // namespace assay
