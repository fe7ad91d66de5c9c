#pragma once

#include <string_view>
#include <vector>

#include "chain/params/layouts.h"

namespace assay::chain::params {

// Names that values may have besides the words of their rules.
struct KnownNames {
  std::span<const std::string_view> modes;  // of `mode=value`
  std::vector<std::string_view> keys;       // keys of the file, which may be a trainer's
};

// Checks a value. Positions of the problems are those in the file.
std::vector<Problem> check_value(const Place& place, const Line& line, const KnownNames& names);

// The value for a mode: `a=1|b=2` gives "1" for a, "" for an absent mode.
std::string_view value_for_mode(std::string_view value, std::string_view mode);

// "" and `null` both leave the argument out.
inline bool is_absent(std::string_view value) { return value.empty() || value == "null"; }

}  // namespace assay::chain::params
