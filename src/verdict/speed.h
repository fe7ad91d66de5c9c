#pragma once

// How much longer one side takes than another, from timings that swing, and whether that can be
// believed. Pure: numbers in, an interval out.
//
// What a machine does meanwhile is the same for all samples of a turn, so a turn counts once, by
// its least sample, to which others have added least (Chen and Revels 2016, Robust benchmarking in
// noisy environments). And where its memory lies makes a process faster or slower for as long as it
// lives, so two lanes that take turns count once, by the middle of the ratios of their turns. The
// logarithm of that is one observation: the middle is the Hodges-Lehmann estimate (the median of
// the means of any two observations), the interval that of Wilcoxon's signed-rank test. Two runs
// give no pairs; there the observations are all differences of logarithms, and the interval is that
// of the Mann-Whitney test. Both intervals hold whatever the law of the noise, and are exact for as
// few observations as there are: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods,
// 3rd edition, sections 3.3 and 4.3 (Hodges and Lehmann 1963, Moses 1965).

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

// How many times as long the left side takes as the right one; with the chance that was allowed for
// it the truth lies outside of [low, high].
struct Ratio {
  double low = 0;
  double middle = 1;
  double high = std::numeric_limits<double>::infinity();
};

enum class Speed : std::uint8_t { same, fast, slow, unsure };

std::string_view name(Speed speed);

// Observations after which it is asked whether enough is known. Who asks several times errs as
// often, so the looks share what doubt is allowed.
inline constexpr std::array<std::size_t, 4> kLooks{12, 24, 48, 96};
inline constexpr double kDoubt = 0.01;
inline constexpr double kDoubtOfALook = kDoubt / kLooks.size();

// The value in the middle, of an even number the mean of the two there. There is at least one.
double median_of(std::span<const double> values);
// Half of the values lie in so wide a range, as a share of their median.
double spread_of(std::span<const double> values);

// From how many times as long the left side took, pair by pair. Where there are too few for so
// little doubt, nothing is excluded.
Ratio ratio_of_pairs(std::span<const double> ratios, double doubt);
// The same of times, in any unit, that belong to no pairs.
Ratio ratio_of_sets(std::span<const double> left, std::span<const double> right, double doubt);

// slow, fast: the whole interval lies beyond a difference of `margin` (0.025: 2.5%). same: all of
// it within. Else nobody knows.
Speed speed_of(const Ratio& ratio, double margin);

}  // namespace assay
