#pragma once

// Buffers of elements for the tests of measure().

#include <cstring>
#include <initializer_list>
#include <limits>
#include <vector>

#include "fill/kernels.h"
#include "fill/numbers.h"
#include "measure/measure.h"

namespace assay {

using Bytes = std::vector<std::byte>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
Bytes raw(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Numbers rounded to a dtype; for complex dtypes real and imaginary parts alternate.
inline Bytes buffer(DType dtype, const std::vector<double>& parts) {
  Bytes bytes;
  visit(dtype, [&]<typename T>(Type<T>) {
    using Part = PartOf<T>;
    for (const double value : parts) {
      Part part{};
      if constexpr (kIsFloat<Part>) {
        part = rounded<Part>(value);
      } else if constexpr (std::is_same_v<Part, Boolean>) {
        part.code = value != 0 ? 1 : 0;
      } else {
        part = static_cast<Part>(value);
      }
      bytes.resize(bytes.size() + sizeof(Part));
      store(bytes.data() + bytes.size() - sizeof(Part), part);
    }
  });
  return bytes;
}

}  // namespace assay
