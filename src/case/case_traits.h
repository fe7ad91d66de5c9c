#pragma once

// Properties of a case by which reports count, read from its canonical text.

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// The API's name: "paddle.add" for "paddle.add(Tensor(…), 1)".
std::string_view api_of(std::string_view case_text);

// The dtype of the case's first tensor, such as "float32"; empty if it has no tensor.
std::string_view first_dtype(std::string_view case_text);

// Size classes by the number of elements of all tensors of a case.
inline constexpr std::array<const char*, 6> kSizes{"no tensor",         "up to 100 elements",
                                                   "up to 10 thousand", "up to 1 million",
                                                   "up to 100 million", "more"};
// The case's index in kSizes; 0 if the text cannot be parsed.
std::size_t size_of_case(std::string_view case_text);

struct CaseTraits {
  std::string api;
  std::string dtype;
  std::uint8_t size = 0;  // index in kSizes

  auto operator<=>(const CaseTraits&) const = default;
};
// All traits of a case.
CaseTraits traits_of(std::string_view case_text);

}  // namespace assay
