#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/toml.h"

namespace assay {

// Parses a YAML file to the same tree as TOML. `where` is its name in error messages. Damaged text
// and duplicate keys are usage errors with the line. Plain scalars have the types that PyYAML gives
// them.
Result<ConfigNode> yaml_tree(const std::string& text, std::string_view where);

}  // namespace assay
