#pragma once

// The values that the lanes of a stored case had, made again as its record says.

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

// The seed of all values of a run.
Result<std::uint64_t> run_seed(const std::map<std::string, std::string>& properties);

// Whether the record has a trial whose lanes it tells of.
bool has_lanes(const wire::Record& record);

// The trial under these values; the first that ran where there is none. The record has_lanes().
const wire::Trial& trial_under(const wire::Record& record, std::string_view values);

// How a tensor of the case was filled: what the test lane said, or else another lane, which had the
// same. nullptr: no lane lived to tell.
const wire::Filling* filling_of(const wire::Trial& trial, std::size_t tensor);

// Writes the tensor's elements; without a filling as the default of its dtype.
Status fill_again(const wire::Filling* filling, const FillKey& key, DType dtype,
                  std::span<std::byte> out);

// The elements as Python literals that read back as the same values: "0.1", "-inf", "True". Of
// complex ones "complex(0.5, nan)".
std::vector<std::string> python_numbers(DType dtype, std::span<const std::byte> elements);

}  // namespace assay
