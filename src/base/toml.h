#pragma once

// Reads settings files in TOML, and in YAML by yaml/yaml.h. A value of the wrong type, an unknown
// key and another version are errors that name the file and the line.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// A node of a TOML or YAML file. Both formats give the same tree.
struct ConfigNode {
  enum class Kind : std::uint8_t { nothing, flag, number, text, list, table };
  Kind kind = Kind::nothing;
  std::int64_t line = 0;            // of its key, in a table
  std::string text;                 // of a scalar; a flag is "True" or "False", as engineV2 has it
  std::string name;                 // its key, in a table
  std::vector<ConfigNode> entries;  // of a list or a table

  bool is_scalar() const {
    return kind == Kind::flag || kind == Kind::number || kind == Kind::text;
  }
};

// Parses TOML. `where` is its name in error messages, which have the line.
Result<ConfigNode> toml_tree(std::string_view text, std::string_view where);

// The text as a basic string of TOML, in quotes.
std::string toml_text(std::string_view text);

// Refuses keys of so many parts (a.b.c …) that the tables, which recurse, would overflow the stack.
Status check_toml_keys(std::string_view text, std::string_view where);

class TomlTable {
 public:
  // `where` is the file's name for messages. The file must contain `version = VERSION`.
  static Result<TomlTable> parse(std::string_view text, std::string_view where,
                                 std::int64_t version);
  TomlTable(ConfigNode table, std::string_view where);
  // An error unless the table has `version = VERSION`.
  Status want_version(std::int64_t version);

  // Reads the key into `value`; leaves `value` unchanged if there is no such key, or no value. A
  // double accepts integers; an integer is at least 1.
  Status read(std::string_view key, bool& value);
  Status read(std::string_view key, std::int64_t& value);
  Status read(std::string_view key, std::optional<bool>& value);
  Status read(std::string_view key, double& value);
  Status read(std::string_view key, std::string& value);
  Status read(std::string_view key, std::vector<std::string>& value);
  // Reads several: read("a", a, "b", b).
  template <typename T, typename... Rest>
  Status read(std::string_view key, T& value, Rest&... rest) {
    Status status = read(key, value);
    return status ? read(rest...) : status;
  }
  // Calls `read` for every table directly inside this one; an error for keys that it leaves unread.
  using ReadTable = std::function<Status(const std::string& name, TomlTable& table)>;
  Status each_table(const ReadTable& read);
  Status read_table(std::string_view key, const ReadTable& read);   // the table `key`
  Status read_tables(std::string_view key, const ReadTable& read);  // the tables inside table `key`
  // Each table of the array `key` ([[key]]), in order. Its name is "key".
  Status read_array(std::string_view key, const ReadTable& read);
  // Each key of the table `key`, whose values are all texts.
  using ReadText = std::function<void(const std::string& name, const std::string& value)>;
  Status read_texts(std::string_view key, const ReadText& read);
  // Each key of the table `key` that has a value, which is no list and no table.
  using ReadScalar = std::function<Status(const ConfigNode& entry)>;
  Status read_scalars(std::string_view key, const ReadScalar& read);

  // An error if a key was never read. Call it after all reads.
  Status refuse_others() const;

 private:
  TomlTable(const TomlTable& outer, const ConfigNode& table, std::string name);
  // The node of the key, or nullptr if it is missing or has no value.
  const ConfigNode* find(std::string_view key);
  std::string named(std::string_view key) const;
  tl::unexpected<Error> error(const ConfigNode& at, std::string_view message) const;
  Status read_inner(const ConfigNode& table, std::string_view key, const ReadTable& read) const;

  std::shared_ptr<const ConfigNode> file_;  // keeps all tables alive
  const ConfigNode* table_;
  std::string where_;
  std::string name_;  // "frameworks.paddle"; empty for the whole file
  std::vector<std::string> asked_;
};

}  // namespace assay
