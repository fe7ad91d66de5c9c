#pragma once

// What the text of a case says of it, as far as cases are counted by it.

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// "paddle.add" of "paddle.add(Tensor(…), 1)".
std::string_view api_of(std::string_view case_text);

// "float32" of the first tensor of a case; empty: it has none.
std::string_view first_dtype(std::string_view case_text);

// In which row of kSizes a case stands, by the elements of all its tensors.
inline constexpr std::array<const char*, 6> kSizes{"no tensor",         "up to 100 elements",
                                                   "up to 10 thousand", "up to 1 million",
                                                   "up to 100 million", "more"};
std::size_t size_of_case(std::string_view case_text);

struct CaseTraits {
  std::string api;
  std::string dtype;
  std::uint8_t size = 0;  // a row of kSizes

  auto operator<=>(const CaseTraits&) const = default;
};
CaseTraits traits_of(std::string_view case_text);

}  // namespace assay
