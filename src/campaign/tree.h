#pragma once

#include <cstdint>
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

// Parses a file. `where` is its name in error messages. Damaged text and duplicate keys are usage
// errors with the line. Plain YAML scalars have the types that PyYAML gives them.
Result<ConfigNode> toml_tree(std::string_view text, std::string_view where);
Result<ConfigNode> yaml_tree(const std::string& text, std::string_view where);

}  // namespace assay
