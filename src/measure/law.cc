#include "measure/law.h"

#include <algorithm>
#include <array>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstdio>
#include <numbers>

namespace assay {
namespace {

struct LawName {
  LawKind kind;
  std::string_view name;
  std::size_t parameters;
};
constexpr std::array<LawName, 14> kLaws{{
    {LawKind::anything, "anything", 0},
    {LawKind::kept, "kept", 3},
    {LawKind::uniform, "uniform", 2},
    {LawKind::normal, "normal", 2},
    {LawKind::bernoulli, "bernoulli", 1},
    {LawKind::integers, "integers", 2},
    {LawKind::exponential, "exponential", 1},
    {LawKind::poisson, "poisson", 1},
    {LawKind::geometric, "geometric", 1},
    {LawKind::log_normal, "log_normal", 2},
    {LawKind::cauchy, "cauchy", 2},
    {LawKind::gamma, "gamma", 2},
    {LawKind::binomial, "binomial", 2},
    {LawKind::permutation, "permutation", 1},
}};

// ln(2 / 1e-10) / 2: with it, sqrt(kChance / n) is the bound of both inequalities.
constexpr double kChance = 11.86;
// Bins of the empirical distribution: its distance at their edges is at most the true one.
constexpr std::size_t kBins = 4096;
// How far an element may be from the value that it keeps: |x − v| ≤ kKept · (1 + |v|).
constexpr double kKept = 0.01;

// Even numbers in (0, 1) from a counter (the finaliser of SplitMix64, Steele et al. 2014).
double counter_uniform(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  return (static_cast<double>(z >> 11U) + 0.5) * 0x1p-53;
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// F(k) of the discrete laws: the probability of at most k.
double discrete_cdf(LawKind kind, double k, double a, double b) {
  switch (kind) {
    case LawKind::bernoulli:
      return k < 0 ? 0 : k < 1 ? 1 - a : 1;
    case LawKind::integers:
      return std::clamp((k + 1 - a) / (b - a), 0.0, 1.0);
    case LawKind::poisson:
      return k < 0 ? 0 : a <= 0 ? 1 : boost::math::gamma_q(k + 1, a);
    case LawKind::geometric:
      return k < 1 ? 0 : -std::expm1(k * std::log1p(-a));
    case LawKind::binomial:
      return k < 0 ? 0 : k >= a || b <= 0 ? 1 : b >= 1 ? 0 : boost::math::ibetac(k + 1, a - k, b);
    default:
      return 0;
  }
}

double continuous_cdf(LawKind kind, double x, double a, double b) {
  switch (kind) {
    case LawKind::uniform:
      return (x - a) / (b - a);
    case LawKind::normal:
      return normal_cdf((x - a) / b);
    case LawKind::exponential:
      return -std::expm1(-a * x);
    case LawKind::log_normal:
      return normal_cdf((std::log(x) - a) / b);
    case LawKind::cauchy:
      return 0.5 + std::atan((x - a) / b) / std::numbers::pi;
    case LawKind::gamma:
      return boost::math::gamma_p(a, x * b);
    default:
      return 0;
  }
}

bool is_discrete(LawKind kind) {
  return kind == LawKind::bernoulli || kind == LawKind::integers || kind == LawKind::poisson ||
         kind == LawKind::geometric || kind == LawKind::binomial;
}

// Whether the law can give x at all; rounding may carry a value onto a bound or to 0.
bool in_support(LawKind kind, double x, double a, double b, double resolution) {
  if (std::isnan(x)) return false;
  const double slack = resolution * std::max({std::abs(a), std::abs(b), 1e-30});
  switch (kind) {
    case LawKind::uniform:
      return x >= std::min(a, b) - slack && x <= std::max(a, b) + slack;
    case LawKind::exponential:
    case LawKind::log_normal:
    case LawKind::gamma:
      return x >= 0;
    case LawKind::bernoulli:
      return x == 0 || x == 1;
    case LawKind::integers:
      return x == std::floor(x) && x >= a - slack && x < b + slack;
    case LawKind::poisson:
      return x == std::floor(x) && x >= 0;
    case LawKind::geometric:
      return x == std::floor(x) && x >= 1;
    case LawKind::binomial:
      return x == std::floor(x) && x >= 0 && x <= a + slack;
    default:
      return true;
  }
}

// A law without spread: every element is that value.
std::optional<double> only_value(LawKind kind, double a, double b) {
  if ((kind == LawKind::normal || kind == LawKind::cauchy) && b == 0) return a;
  if (kind == LawKind::log_normal && b == 0) return std::exp(a);
  if (kind == LawKind::uniform && a == b) return a;
  return std::nullopt;
}

void note_outside(LawMeasurement& measured, std::size_t index, double value) {
  if (measured.outside++ == 0) {
    measured.first_outside = index;
    measured.first_value = value;
  }
}

// Distance of the binned empirical distribution from the uniform one.
double distance_from_uniform(const std::vector<std::uint64_t>& bins, std::uint64_t count) {
  double below = 0;
  double distance = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    below += static_cast<double>(bins[bin]);
    const double share = below / static_cast<double>(count);
    const double edge = static_cast<double>(bin + 1) / static_cast<double>(kBins);
    distance = std::max(distance, std::abs(share - edge));
  }
  return distance;
}

LawMeasurement measure_spread(LawKind kind, std::span<const double> drawn,
                              std::span<const LawParameter> parameters, double resolution) {
  LawMeasurement measured;
  measured.count = drawn.size();
  std::vector<std::uint64_t> bins(kBins);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const double x = drawn[i];
    const double a = parameters[0].at(i);
    const double b = parameters.size() > 1 ? parameters[1].at(i) : 0;
    if (const auto value = only_value(kind, a, b)) {
      if (!(std::abs(x - *value) <= kKept * (1 + std::abs(*value)))) note_outside(measured, i, x);
      continue;
    }
    if (!in_support(kind, x, a, b, resolution)) {
      note_outside(measured, i, x);
      continue;
    }
    double u = 0;
    if (is_discrete(kind)) {
      const double below = discrete_cdf(kind, x - 1, a, b);
      u = below + counter_uniform(i) * (discrete_cdf(kind, x, a, b) - below);
    } else {
      u = continuous_cdf(kind, x, a, b);
    }
    if (std::isnan(u)) continue;  // a parameter for which the law is not defined
    const auto bin = static_cast<std::size_t>(std::clamp(u, 0.0, 1.0) * kBins);
    ++bins[std::min(bin, kBins - 1)];
    ++measured.judged;
  }
  if (measured.judged == 0) return measured;
  measured.distance = distance_from_uniform(bins, measured.judged);
  measured.allowed = std::sqrt(kChance / static_cast<double>(measured.judged)) + resolution;
  return measured;
}

LawMeasurement measure_kept(std::span<const double> drawn,
                            std::span<const LawParameter> parameters) {
  const double share = parameters[1].number;
  LawMeasurement measured;
  measured.count = drawn.size();
  std::uint64_t clear = 0;  // elements whose value tells kept from dropped
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const double value = parameters[0].at(i);
    const double tolerance = kKept * (1 + std::abs(value));
    const bool is_value = std::isnan(value)
                              ? std::isnan(drawn[i])
                              : drawn[i] == value || std::abs(drawn[i] - value) <= tolerance;
    const bool is_zero = drawn[i] == 0;
    if (!is_value && !is_zero) note_outside(measured, i, drawn[i]);
    if (std::abs(value) <= 2 * tolerance) continue;
    ++clear;
    kept += is_value ? 1 : 0;
  }
  measured.all_kept = kept == clear;
  if (clear == 0) return measured;
  const auto independent = static_cast<std::uint64_t>(std::max(0.0, parameters[2].number));
  measured.judged = independent > 0 ? std::min(independent, clear) : clear;
  measured.distance = std::abs(static_cast<double>(kept) / static_cast<double>(clear) - share);
  const bool certain = share <= 0 || share >= 1;
  measured.allowed = certain ? 0 : std::sqrt(kChance / static_cast<double>(measured.judged));
  return measured;
}

LawMeasurement measure_permutation(std::span<const double> drawn, const LawParameter& extent) {
  LawMeasurement measured;
  measured.count = drawn.size();
  const auto size = static_cast<std::size_t>(std::max(0.0, extent.number));
  std::vector<bool> seen(size);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const double x = drawn[i];
    const bool inside = x >= 0 && x < static_cast<double>(size) && x == std::floor(x);
    if (!inside || seen[static_cast<std::size_t>(x)]) {
      note_outside(measured, i, x);
    } else {
      seen[static_cast<std::size_t>(x)] = true;
    }
  }
  return measured;
}

}  // namespace

std::optional<LawKind> find_law(std::string_view text) {
  for (const LawName& law : kLaws) {
    if (law.name == text) return law.kind;
  }
  return std::nullopt;
}

std::string_view name(LawKind kind) { return kLaws[static_cast<std::size_t>(kind)].name; }

std::size_t parameter_count(LawKind kind) {
  return kLaws[static_cast<std::size_t>(kind)].parameters;
}

LawMeasurement measure_law(LawKind kind, std::span<const double> drawn,
                           std::span<const LawParameter> parameters, double resolution) {
  switch (kind) {
    case LawKind::anything: {
      LawMeasurement measured;
      measured.count = drawn.size();
      return measured;
    }
    case LawKind::kept:
      return measure_kept(drawn, parameters);
    case LawKind::permutation:
      return measure_permutation(drawn, parameters[0]);
    default:
      return measure_spread(kind, drawn, parameters, resolution);
  }
}

bool law_holds(const LawMeasurement& measured) {
  return measured.outside == 0 && measured.distance <= measured.allowed;
}

std::string describe(LawKind kind, const LawMeasurement& measured) {
  std::array<char, 320> line{};
  const std::string law(name(kind));
  if (measured.outside > 0) {
    std::snprintf(line.data(), line.size(),
                  "%llu of %llu elements cannot come from the law %s; first at element %llu: %.9g",
                  static_cast<unsigned long long>(measured.outside),
                  static_cast<unsigned long long>(measured.count), law.c_str(),
                  static_cast<unsigned long long>(measured.first_outside), measured.first_value);
  } else {
    std::snprintf(line.data(), line.size(),
                  "%llu draws are %.4g away from the law %s; chance explains %.4g",
                  static_cast<unsigned long long>(measured.judged), measured.distance, law.c_str(),
                  measured.allowed);
  }
  return line.data();
}

double resolution_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float8_e4m3fn:
      return 0x1p-3;
    case DType::float8_e5m2:
      return 0x1p-2;
    case DType::float32:
    case DType::complex64:
      return 0x1p-23;
    case DType::float64:
    case DType::complex128:
      return 0x1p-52;
    default:
      return 0;
  }
}

}  // namespace assay
