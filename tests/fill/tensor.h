#pragma once

// Helpers that make a tensor and read it as numbers.

#include <complex>
#include <cstring>
#include <vector>

#include "fill/fill.h"
#include "fill/kernels.h"
#include "fill/numbers.h"

namespace assay {

inline constexpr FillKey kKey{.seed = 20240607, .case_id = 0x123456789ABCDEF0, .tensor = 1};

inline std::vector<std::byte> make(const FillRule& rule, DType dtype, std::size_t count,
                                   std::uint64_t first = 0, const FillKey& key = kKey) {
  std::vector<std::byte> bytes(count * size_of(dtype));
  fill(rule, key, dtype, bytes, first);
  return bytes;
}

// Every part (two for complex) as a double; exact below 2^53.
inline std::vector<double> parts_of(DType dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> values;
  visit(dtype, [&]<typename T>(Type<T>) {
    using Part = PartOf<T>;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(Part)) {
      const auto part = load<Part>(bytes.data() + i);
      if constexpr (kIsFloat<Part>) {
        values.push_back(static_cast<double>(real_of(part)));
      } else if constexpr (std::is_same_v<Part, Boolean>) {
        values.push_back(part.code);
      } else {
        values.push_back(static_cast<double>(part));
      }
    }
  });
  return values;
}

inline std::vector<double> values(const FillRule& rule, DType dtype, std::size_t count,
                                  const FillKey& key = kKey) {
  return parts_of(dtype, make(rule, dtype, count, 0, key));
}

}  // namespace assay
