#pragma once

// A file of settings as a tree in which everything knows its line, whether it was written as TOML
// or as YAML.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct ConfigNode {
  enum class Kind : std::uint8_t { nothing, flag, number, text, list, table };
  Kind kind = Kind::nothing;
  std::int64_t line = 0;
  std::string text;  // of a scalar; a flag is "True" or "False", as engineV2 takes it
  struct Entry;
  std::vector<Entry> entries;  // of a table; of a list, without names

  bool is_scalar() const {
    return kind == Kind::flag || kind == Kind::number || kind == Kind::text;
  }
};

struct ConfigNode::Entry {
  std::string name;
  ConfigNode value;
};

// `where` is the file's name in messages. What is no such file, or names a key twice, is an error
// with its line. Plain scalars of YAML mean what they mean to PyYAML.
Result<ConfigNode> toml_tree(std::string_view text, std::string_view where);
Result<ConfigNode> yaml_tree(const std::string& text, std::string_view where);

}  // namespace assay
