#pragma once

// The distributions that random results are compared with (measure/draw_distribution.h).

#include <cstdint>

namespace assay {

// Each with its parameters in order.
enum class DrawDistribution : std::uint8_t {
  anything,     // uninitialised memory
  kept,         // values, share, groups: values[i] with probability share, else 0
  uniform,      // low, high
  normal,       // mean, standard deviation
  bernoulli,    // probability
  integers,     // low, high: low … high − 1
  exponential,  // rate
  poisson,      // rate
  geometric,    // probability: trials up to the first success, that one included
  log_normal,   // mean and standard deviation of the logarithm
  cauchy,       // location, scale
  gamma,        // concentration, rate
  binomial,     // trials, probability
  permutation,  // extent: 0 … extent − 1, each once
  // values, others, share, groups: values[i] with probability share, else others[i]. Elements with
  // the same number in `groups` are decided together; the single number 0 means that each is
  // independent.
  either,
  // weights, categories, replacement: rows of draws from 0 … categories − 1 with the row's weights.
  // replacement = 0: each category at most once in a row.
  categorical,
};

// True if there is a distribution function, so that draws are judged one by one.
constexpr bool has_distribution(DrawDistribution kind) {
  return kind >= DrawDistribution::uniform && kind <= DrawDistribution::binomial;
}

}  // namespace assay
