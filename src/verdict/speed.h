#pragma once

// Estimates from noisy timings how much longer one side takes than another, with a confidence
// interval. All functions are pure.
//
// The load of a machine is the same for all samples of a turn, so a turn counts once, by its
// smallest sample, which noise has changed least (Chen and Revels 2016, Robust benchmarking in
// noisy environments). Where the memory of a process lies makes the process faster or slower for
// its whole life, so two lanes that take turns count once, by the median of the ratios of their
// turns. The logarithm of that median is one observation. The estimate is that of Hodges and
// Lehmann (the median of the means of any two observations), the interval that of Wilcoxon's
// signed-rank test. Two runs have no pairs: there the observations are all differences of
// logarithms, and the interval is that of the Mann-Whitney test. Both intervals are valid for any
// distribution of the noise and exact for few observations: Hollander, Wolfe and Chicken,
// Nonparametric Statistical Methods, 3rd edition, sections 3.3 and 4.3 (Hodges and Lehmann 1963,
// Moses 1965).

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace assay {

// The time of the left side divided by that of the right side: the estimate and its confidence
// interval [low, high].
struct Ratio {
  double low = 0;
  double middle = 1;
  double high = std::numeric_limits<double>::infinity();
};

enum class Speed : std::uint8_t { same, fast, slow, unsure };

// "same", "fast", "slow" or "unsure".
std::string_view name(Speed speed);

// Numbers of observations after which timing may stop (group sequential test). Each look at the
// data is a chance for an error, so the looks share the allowed error probability (Bonferroni).
inline constexpr std::array<std::size_t, 4> kLooks{12, 24, 48, 96};
inline constexpr double kDoubt = 0.01;
inline constexpr double kDoubtOfALook = kDoubt / kLooks.size();

// The interquartile range divided by the median; 0 if the median is not positive.
double spread_of(std::span<const double> values);

// The ratio from paired ratios left / right. `doubt`: the probability that the interval misses the
// true ratio. With too few ratios for this probability, the interval is [0, infinity].
Ratio ratio_of_pairs(std::span<const double> ratios, double doubt);
// Likewise from times without pairs, in any unit.
Ratio ratio_of_sets(std::span<const double> left, std::span<const double> right, double doubt);

// slow or fast: the whole interval is outside of 1 ± `margin` (0.025: 2.5%). same: the whole
// interval is inside. Otherwise unsure.
Speed speed_of(const Ratio& ratio, double margin);

}  // namespace assay
