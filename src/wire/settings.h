#pragma once

// The fields of a settings table by name, from FlatBuffers' reflection. So a setting reaches the
// run's properties and the lane's Python without code of its own.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "wire/settings_generated.h"

namespace assay::wire {

// Value regimes, as CaseSettings.values names them.
inline constexpr std::string_view kAllValues = "usual,wide,nan,infinity,bulk,exact,layout";

// Planted faults, as CaseSettings.mutants names them; see python/assay/mutation/faults.py.
inline constexpr std::string_view kAllMutants =
    "off_5_percent,off_0.1_percent,off_8_ulp,off_by_one,sign,nan_swallowed,last_row,wrapped,dtype,"
    "shape,axes,output_lost,gradient_1.01,gradient_lost,gradient_of_neighbour,axis,epsilon,biased,"
    "lower_precision,ties,stale_state,input_overwritten,no_kernel";

using SettingValue = std::variant<std::string, bool, std::int64_t, std::uint64_t, double>;

struct Setting {
  std::string_view name;  // lives as long as the program
  SettingValue value;
};

// All fields except vectors, also those with their default, in the order of settings.fbs.
std::vector<Setting> fields_of(const CaseSettingsT& settings);
std::vector<Setting> fields_of(const LaneSpecT& spec);

// The settings among a run's properties; missing ones have their defaults. Fails, with the name of
// the field, if a value does not fit it.
Result<CaseSettingsT> settings_of(const std::map<std::string, std::string>& properties);

// "true", "42", "0.01": reads back as the same value.
std::string text_of(const SettingValue& value);

}  // namespace assay::wire
