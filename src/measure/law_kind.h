#pragma once

// The laws that random results are held against (measure/law.h).

#include <cstdint>

namespace assay {

// With the parameters in order.
enum class LawKind : std::uint8_t {
  anything,     // uninitialised memory
  kept,         // values, share, groups: 0 or values[i], which is kept with probability share
  uniform,      // low, high
  normal,       // mean, standard deviation
  bernoulli,    // probability
  integers,     // low, high: low … high − 1
  exponential,  // rate
  poisson,      // rate
  geometric,    // probability: trials up to and with the first success
  log_normal,   // mean and standard deviation of the logarithm
  cauchy,       // location, scale
  gamma,        // concentration, rate
  binomial,     // trials, probability
  permutation,  // extent: 0 … extent − 1, each once
  // values, others, share, groups: values[i], with probability share, or others[i]. Groups are
  // elements of one number, which stand or fall together; 0 alone means that each has its own.
  either,
  // weights, categories, replacement: rows of draws from 0 … categories − 1, as often as the row's
  // weights say; without replacement (0) each category at most once in a row
  categorical,
};

// Whether a law has a distribution function: its draws are judged one by one.
constexpr bool has_distribution(LawKind kind) {
  return kind >= LawKind::uniform && kind <= LawKind::binomial;
}

}  // namespace assay
