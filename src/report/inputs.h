#pragma once

// Makes the input values of a stored case again, as its record describes them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "case/case.h"
#include "fill/fill.h"
#include "wire/messages_generated.h"

namespace assay {

// The seed of all values of a run. An error if the property is missing or no number.
Result<std::uint64_t> run_seed(const std::map<std::string, std::string>& properties);

// Whether the record has a trial with lanes.
bool has_lanes(const wire::Record& record);

// The trial in this value regime; if there is none, the first trial that ran. The record must have
// lanes (has_lanes()).
const wire::Trial& trial_under(const wire::Record& record, std::string_view values);

// How a tensor of the case was filled, as the first lane reports that knows it: all lanes had the
// same inputs. nullptr if no lane reported it.
const wire::Filling* filling_of(const wire::Trial& trial, std::size_t tensor);

// Writes the tensor's elements to `out`. Without a filling, uses the default rule of the dtype.
Status fill_again(const wire::Filling* filling, const FillKey& key, DType dtype,
                  std::span<std::byte> out);
// Writes one element of the tensor to `out`.
Status fill_element_again(const wire::Filling* filling, const FillKey& key, DType dtype,
                          std::uint64_t index, std::span<std::byte> out);

// The elements as Python literals with exactly the same values: "0.1", "-inf", "True",
// "complex(0.5, nan)".
std::vector<std::string> python_numbers(DType dtype, std::span<const std::byte> elements);

}  // namespace assay
