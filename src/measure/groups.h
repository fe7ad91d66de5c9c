#pragma once

// Finer tests of draws: those with similar parameters by themselves, and equal draws.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/draw_measurement.h"

namespace assay {

// Means of draws by their parameter. A fault of small rates alone disappears in the mean of all.
class Groups {
 public:
  // `resolution` is how far u moves to the neighbouring values of its dtype.
  void add(double parameter, double u, double resolution) {
    draws_.push_back({parameter, u - 0.5, resolution});
  }
  // Tests groups of equal width and groups between powers of two.
  void finish(DrawMeasurement& measured) const;

 private:
  struct Draw {
    double parameter;
    double centred;
    double resolution;
  };
  template <typename GroupOf>
  void look(DrawMeasurement& measured, const GroupOf& group_of) const;

  std::vector<Draw> draws_;
};

// Counts equal pairs among the first draws of a distribution with a density. A generator with too
// few different values has too many. One that repeats a row has too many that are a row apart.
class EqualDraws {
 public:
  void add(double draw, double resolution);
  // `rows` are the lengths of rows, planes and so on.
  void finish(DrawMeasurement& measured, std::span<const std::size_t> rows);

 private:
  std::vector<double> draws_;
  double moved_ = 0;
};

}  // namespace assay
