#pragma once

// Draws that are one of two values: the kept value or its replacement. They arrive block by block,
// so that no caller needs all of them at once.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/dependence.h"
#include "measure/draw_measurement.h"

namespace assay {

// The allowed distance of an element from a value that it must equal, per unit of 1 + |value|: a
// few roundings of its dtype, but at most 0.01.
double slack_of(double resolution);
// True if x equals the value within the slack; NaN never does.
inline bool near(double x, double value, double slack) {
  return x == value || std::abs(x - value) <= slack * (1 + std::abs(value));
}

// One number for all draws of a block, or one for each draw.
struct DrawNumbers {
  double number = 0;
  std::span<const double> values;
  double at(std::size_t index) const { return values.empty() ? number : values[index]; }
};

class Choice {
 public:
  // `share` is the probability of being kept, `resolution` the relative spacing of the dtype.
  Choice(double share, double resolution);

  // Adds draws, with the value of each if it is kept (`values`) and if it is not (`others`). Draws
  // with the same number in `groups` (whole numbers from 0 on) are kept or not together; without
  // groups each draw is independent.
  void add(std::span<const double> drawn, const DrawNumbers& values, const DrawNumbers& others,
           const DrawNumbers& groups);
  DrawMeasurement finish() const;

 private:
  enum class Fate : std::uint8_t { unknown, kept, fallen };
  void add_with_zeros(std::span<const double> drawn, const DrawNumbers& values);
  void note_outside(std::uint64_t index, double value);

  DrawMeasurement measured_;
  double slack_;
  ChoiceDependence dependence_;
  std::vector<Fate> fates_;  // one per group
};

}  // namespace assay
