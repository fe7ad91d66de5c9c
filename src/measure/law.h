#pragma once

// A random result against the law that it promises. Two draws never agree element by element; what
// can be checked is that each element lies where the law allows and that all together are spread as
// the law says.
//
// Method. Where a law has a distribution function F, u = F(x) is uniform on [0, 1] (probability
// integral transform; for whole numbers the randomised one, u = F(x−1) + v·P(x) with v from a
// counter). The largest distance between the empirical distribution of u and the uniform one is
// held against the Dvoretzky–Kiefer–Wolfowitz bound with Massart's constant,
//   P(distance > ε) ≤ 2 exp(−2nε²),
// which holds for every n; shares are held against Hoeffding's bound, which has the same form. Both
// are used at 1e-10, so a right result is called wrong less than once in 10^9 cases.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case/dtype.h"

namespace assay {

enum class LawKind : std::uint8_t {
  anything,     // uninitialised memory
  kept,         // values, share, independent: 0 or values[i], which is kept with probability share
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
};

std::optional<LawKind> find_law(std::string_view name);
std::string_view name(LawKind kind);
// How many parameters a law has.
std::size_t parameter_count(LawKind kind);

// A number for all elements, or one value for each element.
struct LawParameter {
  double number = 0;
  std::vector<double> values;
  double at(std::size_t index) const { return values.empty() ? number : values[index]; }
};

struct LawMeasurement {
  std::uint64_t count = 0;
  std::uint64_t outside = 0;  // elements that the law cannot give
  std::uint64_t first_outside = 0;
  double first_value = 0;
  std::uint64_t judged = 0;  // elements (or independent draws) that the spread was taken from
  double distance = 0;       // from the law's distribution, or of the share from its promise
  double allowed = 0;        // what chance and the dtype's rounding explain of it
  bool all_kept = false;     // of `kept`: nothing was dropped
};

// `drawn` as numbers (the real parts of complex ones), `resolution` the relative spacing of its
// dtype. There are parameter_count(kind) parameters.
LawMeasurement measure_law(LawKind kind, std::span<const double> drawn,
                           std::span<const LawParameter> parameters, double resolution);

bool law_holds(const LawMeasurement& measured);
// What was promised and what came, in one line.
std::string describe(LawKind kind, const LawMeasurement& measured);

// Relative spacing of the values of a dtype; 0 for whole numbers and bool.
double resolution_of(DType dtype);

}  // namespace assay
