#pragma once

// Reads settings files in TOML. A value of the wrong type, an unknown key and another version are
// errors that name the file and the line.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// Refuses keys of so many parts (a.b.c …) that the tables, which recurse, would overflow the stack.
Status check_toml_keys(std::string_view text, std::string_view where);

class TomlTable {
 public:
  // `where` is the file's name for messages. The file must contain `version = VERSION`.
  static Result<TomlTable> parse(std::string_view text, std::string_view where,
                                 std::int64_t version);
  TomlTable(TomlTable&&) noexcept;
  TomlTable& operator=(TomlTable&&) noexcept;
  TomlTable(const TomlTable&) = delete;
  TomlTable& operator=(const TomlTable&) = delete;
  ~TomlTable();

  // Reads the key into `value`; leaves `value` unchanged if there is no such key. A double accepts
  // integers.
  Status read(std::string_view key, bool& value);
  Status read(std::string_view key, double& value);
  Status read(std::string_view key, std::string& value);
  Status read(std::string_view key, std::vector<std::string>& value);
  // Calls `read` for every table directly inside this one; an error for keys that it leaves unread.
  using ReadTable = std::function<Status(const std::string& name, TomlTable& table)>;
  Status each_table(const ReadTable& read);
  Status read_tables(std::string_view key, const ReadTable& read);  // the tables inside table `key`
  // Each table of the array `key` ([[key]]), in order. Its name is "key".
  Status read_array(std::string_view key, const ReadTable& read);
  // Each key of the table `key`, whose values are all texts.
  using ReadText = std::function<void(const std::string& name, const std::string& value)>;
  Status read_texts(std::string_view key, const ReadText& read);

  // An error if a key was never read. Call it after all reads.
  Status refuse_others() const;

 private:
  struct Impl;
  explicit TomlTable(std::unique_ptr<Impl> impl);
  template <typename T>
  Status read_as(std::string_view key, T& value, std::string_view wanted);

  std::unique_ptr<Impl> impl_;
};

}  // namespace assay
