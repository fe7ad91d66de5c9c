#pragma once

// Lists the fields of a settings table by name, with FlatBuffers' reflection. A new setting thus
// reaches the run's properties and the lane's Python without further code.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "wire/settings_generated.h"

namespace assay::wire {

// All value regimes, in the format of CaseSettings.values.
inline constexpr std::string_view kAllValues = "usual,wide,nan,infinity,bulk,exact,layout,constant";
// The regime that needs a capture, CaseSettings.observed.
inline constexpr std::string_view kObservedValues = "observed";
// All faults that can be planted, in the format of CaseSettings.mutants; see
// python/assay/mutation/faults.py.
inline constexpr std::string_view kAllMutants =
    "off_5_percent,off_0.1_percent,off_8_ulp,off_by_one,sign,nan_swallowed,last_row,wrapped,dtype,"
    "shape,axes,output_lost,gradient_1.01,gradient_lost,gradient_of_neighbour,axis,epsilon,biased,"
    "lower_precision,ties,stale_state,last_index,stride_ignored,argument_ignored,rate_pooled,"
    "seed_ignored,row_repeated,input_overwritten,no_kernel";

using SettingValue = std::variant<std::string, bool, std::int64_t, std::uint64_t, double>;

struct Setting {
  std::string_view name;  // static
  SettingValue value;
};

// All fields except vectors, in the order of settings.fbs. Includes fields with default values.
std::vector<Setting> fields_of(const CaseSettingsT& settings);
std::vector<Setting> fields_of(const LaneSpecT& spec);

// The settings among a run's properties, with defaults for missing ones. An error that names the
// field if its value has the wrong type.
Result<CaseSettingsT> settings_of(const std::map<std::string, std::string>& properties);

// The value as text ("true", "42", "0.01"), from which settings_of() reads exactly the same value.
std::string text_of(const SettingValue& value);

}  // namespace assay::wire
