#pragma once

// Draws for the tests of distributions, from the standard library.

#include <random>
#include <vector>

#include "measure/draw_distribution.h"

namespace assay {

inline constexpr double kDouble = 0x1p-52;
inline constexpr int kSeeds = 200;

template <typename Distribution>
std::vector<double> draw(Distribution distribution, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> drawn(count);
  for (double& x : drawn) x = static_cast<double>(distribution(random));
  return drawn;
}

inline bool holds(DrawDistribution kind, const std::vector<double>& drawn,
                  const std::vector<DrawParameter>& parameters, double resolution = kDouble) {
  return distribution_holds(measure_draws(kind, drawn, parameters, resolution));
}

// A generator that repeats blocks of numbers, with the right distribution.
inline std::vector<double> in_blocks(const std::vector<double>& drawn, std::size_t block) {
  std::vector<double> again(2 * drawn.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    again[i] = drawn[i / (2 * block) * block + i % block];
  }
  return again;
}

}  // namespace assay
