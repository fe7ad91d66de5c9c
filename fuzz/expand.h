#pragma once

// Deep and wide inputs from few bytes, which a fuzzer would not reach by itself: a part that the
// input names is repeated up to 2^17 times.

#include <cstdint>
#include <string>

namespace assay {

// The first byte: the power of two. The second: the length of the part. Then the part and the rest.
inline std::string expanded(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return {};
  const std::size_t times = std::size_t{1} << (data[0] % 18U);
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string part = text.substr(0, data[1] % 32U);
  std::string all;
  for (std::size_t i = 0; i < times && all.size() < (1U << 20U); ++i) all += part;
  return all + text.substr(part.size());
}

}  // namespace assay
