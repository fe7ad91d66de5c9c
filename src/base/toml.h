#pragma once

// Files of settings that people write, in TOML. What is read is checked: a value of another type, a
// key that nobody asks for and another version are errors that name file and line.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

class TomlTable {
 public:
  // `where` is the file's name in messages. The file must say `version = VERSION`.
  static Result<TomlTable> parse(std::string_view text, std::string_view where,
                                 std::int64_t version);
  TomlTable(TomlTable&&) noexcept;
  TomlTable& operator=(TomlTable&&) noexcept;
  TomlTable(const TomlTable&) = delete;
  TomlTable& operator=(const TomlTable&) = delete;
  ~TomlTable();

  // What stands under the key; without it `value` stays as it is. Whole numbers are numbers.
  Status read(std::string_view key, bool& value);
  Status read(std::string_view key, double& value);
  Status read(std::string_view key, std::string& value);
  Status read(std::string_view key, std::vector<std::string>& value);
  // Each table inside of this one under its name; reads it and refuses what is left over in it.
  using ReadTable = std::function<Status(const std::string& name, TomlTable& table)>;
  Status each_table(const ReadTable& read);
  Status read_tables(std::string_view key, const ReadTable& read);  // those inside the table `key`
  // Each table of the array `key` ([[key]]), in order. Its name is "key".
  Status read_array(std::string_view key, const ReadTable& read);
  // Each key of the table `key`, whose values are all texts.
  using ReadText = std::function<void(const std::string& name, const std::string& value)>;
  Status read_texts(std::string_view key, const ReadText& read);

  // Once everything was read: refuses keys that nobody asked for.
  Status refuse_others() const;

 private:
  struct Impl;
  explicit TomlTable(std::unique_ptr<Impl> impl);
  template <typename T>
  Status read_as(std::string_view key, T& value, std::string_view wanted);

  std::unique_ptr<Impl> impl_;
};

}  // namespace assay
