#pragma once

// Numbers the values of a floating-point format: number 0 is zero, number n the n-th value above
// zero, number -n its negative. With a quantum coarser than the format's own, it numbers a subset:
// evenly spaced near zero, and with the format's own spacing where that is wider.

#include <cstdint>

#include "fill/host_device.h"

namespace assay {

// The value of a number; exact. The quantum is 2^exponent, exponent ≥ -1022. Branch-free, because a
// branch would be mispredicted for every other number.
ASSAY_HD double grid_value(std::int64_t number, int mantissa, int exponent) {
  const bool negative = number < 0;
  const std::uint64_t magnitude =
      negative ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  const std::uint64_t octave = magnitude >> mantissa;
  const std::uint64_t hidden = std::uint64_t{1} << mantissa;
  const std::uint64_t normal = octave == 0 ? 0 : 1;
  const std::uint64_t significand = (magnitude & (hidden - 1)) | normal << mantissa;
  const int shift = static_cast<int>(octave - normal);
  const double value = ieee::mul(static_cast<double>(static_cast<std::int64_t>(significand)),
                                 ieee::power_of_two(exponent + shift));
  return ieee::mul(value, static_cast<double>(1 - 2 * static_cast<std::int64_t>(negative)));
}

}  // namespace assay
