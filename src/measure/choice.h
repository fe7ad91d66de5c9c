#pragma once

// Draws that are one of two values each: what is kept, and what stands where it is not. They come
// block by block, so that nobody needs all of them at once.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/dependence.h"
#include "measure/law_measurement.h"

namespace assay {

// How far an element may be from a value that it must equal, for each unit of 1 + |value|: a few
// roundings of its dtype, and never more than 0.01.
double slack_of(double resolution);
inline bool near(double x, double value, double slack) {
  return x == value || std::abs(x - value) <= slack * (1 + std::abs(value));
}

// One number for all draws of a block, or one for each.
struct LawNumbers {
  double number = 0;
  std::span<const double> values;
  double at(std::size_t index) const { return values.empty() ? number : values[index]; }
};

class Choice {
 public:
  // `share` of the draws is kept; `resolution` is the relative spacing of their dtype.
  Choice(double share, double resolution);

  // The next draws, with what each is if it is kept and if not. Draws with one number among
  // `groups`, which are whole numbers from 0 on, are kept or not together; without values every
  // draw is on its own.
  void add(std::span<const double> drawn, const LawNumbers& values, const LawNumbers& others,
           const LawNumbers& groups);
  LawMeasurement finish() const;

 private:
  enum class Fate : std::uint8_t { unknown, kept, fallen };
  void add_with_zeros(std::span<const double> drawn, const LawNumbers& values);
  void note_outside(std::uint64_t index, double value);

  LawMeasurement measured_;
  double slack_;
  ChoiceDependence dependence_;
  std::vector<Fate> fates_;  // of the groups
};

}  // namespace assay
