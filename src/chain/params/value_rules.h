#pragma once

// Whether a value is one that its place can hold.

#include <string_view>
#include <vector>

#include "chain/params/layouts.h"

namespace assay::chain::params {

// What values may name beside the words of their rules.
struct KnownNames {
  std::span<const std::string_view> modes;  // of `mode=value`
  std::vector<std::string_view> keys;       // the file's own: each may be a trainer's
};

// The problems of one value; places are in the file's coordinates.
std::vector<Problem> check_value(const Place& place, const Line& line, const KnownNames& names);

// What a by-mode value says for a mode: `a=1|b=2` gives "1" for a, nothing for an absent mode.
std::string_view value_for_mode(std::string_view value, std::string_view mode);

// Nothing and `null` both leave the argument out.
inline bool is_absent(std::string_view value) { return value.empty() || value == "null"; }

}  // namespace assay::chain::params
