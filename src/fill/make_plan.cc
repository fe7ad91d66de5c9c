#include "fill/make_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fill/element.h"
#include "fill/grid.h"
#include "fill/numbers.h"

namespace assay {
namespace {

// The number of grid values above zero up to x ≥ 0, rounded by `round`.
std::int64_t grid_magnitude(double x, int mantissa, int exponent, double (*round)(double)) {
  if (x == 0) return 0;
  const int shift = std::max(0, std::ilogb(x) - exponent - mantissa);
  const double significand = round(std::ldexp(x, -(exponent + shift)));
  return (static_cast<std::int64_t>(shift) << mantissa) + static_cast<std::int64_t>(significand);
}

// The smallest grid number whose value is at least x.
std::int64_t grid_number(double x, int mantissa, int exponent) {
  if (x >= 0) return grid_magnitude(x, mantissa, exponent, [](double v) { return std::ceil(v); });
  return -grid_magnitude(-x, mantissa, exponent, [](double v) { return std::floor(v); });
}

template <typename T>
double largest_finite() {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return std::numeric_limits<T>::max();
  } else {
    return widen(T{static_cast<decltype(T::code)>(T::kOverflow - 1)});
  }
}

template <typename T>
double rounded_value(double x) {
  return static_cast<double>(real_of(rounded<T>(x)));
}

// Value `number` of T in order of magnitude.
template <typename T>
double value_number(std::int64_t number) {
  return grid_value(number, Traits<T>::kMantissa, Traits<T>::kQuantum);
}

// The smallest value of T that is at least x, and the largest below x, for x in T's range.
template <typename T>
double at_or_above(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x + 0.0;  // turns -0 into 0
  } else {
    return value_number<T>(grid_number(x, Traits<T>::kMantissa, Traits<T>::kQuantum));
  }
}
template <typename T>
double below_limit(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::nextafter(x, -std::numeric_limits<double>::infinity());
  } else {
    return value_number<T>(grid_number(x, Traits<T>::kMantissa, Traits<T>::kQuantum) - 1);
  }
}

struct Range {
  double low;
  double high;
  bool empty() const { return !(low < high); }  // also true if either is NaN
};

std::uint64_t two_complement(double value) {
  return value < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                   : static_cast<std::uint64_t>(value);
}

// Each plan_… function below sets the fields of its kind. It returns false if the range has no
// value.

bool plan_whole(Range range, FillPlan& plan) {
  const double low = std::ceil(range.low);
  const double high = std::ceil(range.high);
  if (!(low < high)) return false;
  const double count = high - low;
  plan.whole = true;
  plan.first = two_complement(low);
  plan.count = count < 0x1p64 ? static_cast<std::uint64_t>(count) : ~std::uint64_t{0};
  plan.draw_width = plan.count <= 256 ? 16 : plan.count <= (std::uint64_t{1} << 32) ? 32 : 64;
  return true;
}

// distinct: spreads `extent` positions evenly over `values`; all differ if there are enough. The
// fraction is rounded up, so that p · step rounded down is ⌊p · values / extent⌋ for p < extent <
// 2^32.
void plan_steps(std::uint64_t values, FillPlan& plan) {
  plan.grid_step_whole = values / plan.extent;
  const auto rest = static_cast<unsigned __int128>(values % plan.extent) << 64;
  plan.grid_step_fraction = static_cast<std::uint64_t>((rest + plan.extent - 1) / plan.extent);
}

// distinct: chooses the coarsest grid with `extent` values in the range, and the step between them.
template <typename T>
bool plan_grid(Range range, FillPlan& plan) {
  constexpr int kMantissa = Traits<T>::kMantissa;
  constexpr int kFinest = std::max(Traits<T>::kQuantum, sizeof(T) == 8 ? -1000 : -126);
  const double spacing = (range.high - range.low) / static_cast<double>(plan.extent);
  std::uint64_t values = 0;
  int exponent = std::max(std::ilogb(spacing) + 2, kFinest);
  for (;; --exponent) {
    plan.grid_first = grid_number(range.low, kMantissa, exponent);
    values = static_cast<std::uint64_t>(grid_number(range.high, kMantissa, exponent)) -
             static_cast<std::uint64_t>(plan.grid_first);
    if (values >= plan.extent || exponent == kFinest) break;
  }
  plan.grid_exponent = exponent;
  plan_steps(values, plan);
  return values > 0;
}

// magnitudes: chooses the powers of two.
template <typename T>
bool plan_magnitudes(const FillRule& rule, FillPlan& plan) {
  constexpr double kLargest = 0x1p1022;  // times 1.mantissa this is still finite
  plan.top = std::clamp(rule.high, 0.0, largest_finite<T>());
  const double smallest = std::ldexp(1, std::max(Traits<T>::kQuantum, -1000));
  const double low = std::max(std::abs(rule.low), smallest);
  const double high = std::min(plan.top, kLargest);
  if (!(low <= high)) return false;
  plan.low = low;
  plan.grid_first = std::ilogb(low);
  plan.count = static_cast<std::uint64_t>(std::ilogb(high) - plan.grid_first + 1);
  return true;
}

template <typename T>
bool plan_real(const FillRule& rule, FillPlan& plan) {
  if (rule.kind == FillKind::magnitudes) {
    plan.draw_width = 64;
    return plan_magnitudes<T>(rule, plan);
  }
  constexpr bool kWide = sizeof(T) >= 4;
  const double limit = largest_finite<T>() / (kWide ? 2 : 1);
  const Range range{std::clamp(rule.low, -limit, limit), std::clamp(rule.high, -limit, limit)};
  plan.draw_width = kRealDrawWidth<T>;
  plan.low = rounded_value<T>(rule.low);
  plan.top = plan.low;
  if (range.empty() || at_or_above<T>(range.low) >= range.high) return false;
  plan.low = at_or_above<T>(range.low);
  plan.top = below_limit<T>(range.high);
  plan.span = rounded_value<RealOf<T>>(range.high - plan.low);
  if (rule.kind == FillKind::integers || rule.kind == FillKind::ends ||
      rule.kind == FillKind::rows) {
    return plan_whole({std::max(range.low, -0x1p62), std::min(range.high, 0x1p62)}, plan);
  }
  if (rule.kind == FillKind::halves || rule.kind == FillKind::corners) {
    return plan_whole({2 * std::max(range.low, -0x1p52), 2 * std::min(range.high, 0x1p52)}, plan);
  }
  return rule.kind != FillKind::distinct || plan_grid<T>(range, plan);
}

// The range of an integer type or bool: the first value, and one past the last.
template <typename T>
Range range_of() {
  if constexpr (std::is_same_v<T, Boolean>) {
    return {0, 2};
  } else {
    return {static_cast<double>(std::numeric_limits<T>::min()),
            std::ldexp(1, std::numeric_limits<T>::digits)};
  }
}

// The number that `constant` writes for a value.
template <typename T>
double nearest_whole(double value) {
  if (std::is_same_v<T, Boolean>) return value == 0 ? 0 : 1;
  if (std::isnan(value)) return 0;
  const Range range = range_of<T>();
  const double last = range.high > 0x1p53 ? std::nextafter(range.high, 0.0) : range.high - 1;
  return std::clamp(std::round(value), range.low, last);
}

template <typename T>
bool plan_integer(const FillRule& rule, FillPlan& plan) {
  const Range range = range_of<T>();
  if (rule.kind == FillKind::magnitudes) {
    plan.draw_width = 64;
    return true;
  }
  const bool constant = rule.kind == FillKind::constant;
  if (!constant &&
      plan_whole({std::max(rule.low, range.low), std::min(rule.high, range.high)}, plan)) {
    return true;
  }
  const double value = nearest_whole<T>(rule.low);
  plan_whole({value, value + 0.5}, plan);
  plan.first = two_complement(value);
  plan.count = 1;
  return false;
}

template <typename T>
double diagonal_of(const FillRule& rule, const FillPlan& plan, bool complex) {
  const double largest = std::max(std::abs(rule.low), std::abs(rule.high));
  const double sum = static_cast<double>(plan.extent) * largest * (complex ? 1.5 : 1) + 1;
  if constexpr (kIsFloat<T>) {
    // A few units in the last place more, so that rounding to T keeps the dominance.
    const double slack = std::ldexp(1, 2 - Traits<T>::kMantissa);
    return std::min(sum * (1 + slack), largest_finite<T>() - std::max(0.0, plan.top));
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return 1;
  } else {
    return std::min(sum, static_cast<double>(std::numeric_limits<T>::max() >> 1));
  }
}

template <typename T>
void plan_part(const FillRule& rule, bool complex, FillPlan& plan) {
  bool filled = false;
  if constexpr (kIsFloat<T>) {
    filled = plan_real<T>(rule, plan);
  } else {
    filled = plan_integer<T>(rule, plan);
    if (plan.kind == FillKind::distinct) plan_steps(plan.count, plan);
  }
  if (plan.kind == FillKind::positive_definite) {
    plan.diagonal = diagonal_of<T>(rule, plan, complex);
  } else if (!filled) {
    plan.kind = FillKind::constant;
  }
  if (complex && plan.kind == FillKind::boxes) plan.kind = FillKind::uniform;
}

}  // namespace

FillPlan constant_plan(double value, DType dtype) {
  FillPlan plan{};
  visit(dtype, [&]<typename T>(Type<T>) {
    using Part = PartOf<T>;
    if constexpr (kIsFloat<Part>) {
      plan.low = rounded_value<Part>(value);
    } else {
      plan.first = two_complement(nearest_whole<Part>(value));
    }
  });
  return plan;
}

FillPlan make_plan(const FillRule& rule, const FillKey& key, DType dtype) {
  FillPlan plan{};
  plan.stream = make_stream(key.seed, key.case_id, key.tensor);
  plan.kind = rule.kind;
  plan.dtype = dtype;
  plan.extent = static_cast<std::uint64_t>(std::max<std::int64_t>(rule.extent, 1));
  visit(dtype, [&]<typename T>(Type<T>) { plan_part<PartOf<T>>(rule, kIsComplex<T>, plan); });
  return plan;
}

}  // namespace assay
