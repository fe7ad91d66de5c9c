#include "measure/bar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "fill/numbers.h"

namespace assay {
namespace {

using Number = std::complex<double>;

// The precision and range of a dtype; `real` is false for whole numbers.
struct Format {
  bool real = false;
  int mantissa = 0;
  double epsilon = 0;  // the ulp of 1
  double smallest_normal = 0;
  double floor = 0;  // the largest error by underflow
  double largest = 0;
  // float16 and bfloat16, whose sums are computed in float32.
  bool is_half() const { return mantissa == 7 || mantissa == 10; }
};

template <typename Part>
Format format_of_part() {
  Format format;
  if constexpr (kIsFloat<Part>) {
    format.real = true;
    format.mantissa = Traits<Part>::kMantissa;
    format.epsilon = std::ldexp(1, -format.mantissa);
    format.smallest_normal = std::ldexp(1, Traits<Part>::kQuantum + Traits<Part>::kMantissa);
    // Intermediate subnormals may be flushed to zero in float32 and bfloat16. float16 is computed
    // in float32, which has all of its subnormals.
    const bool exact_below = std::is_same_v<Part, Float16>;
    format.floor = exact_below ? std::ldexp(1, Traits<Part>::kQuantum) : format.smallest_normal;
    if constexpr (std::is_same_v<Part, float> || std::is_same_v<Part, double>) {
      format.largest = static_cast<double>(std::numeric_limits<Part>::max());
    } else {
      format.largest = widen(Part{static_cast<decltype(Part::code)>(Part::kOverflow - 1)});
    }
  }
  return format;
}

Format format_of(DType dtype) {
  return visit(dtype, []<typename T>(Type<T>) { return format_of_part<PartOf<T>>(); });
}

// The largest power of two ≤ value, for positive normal numbers.
double power_below(double value) {
  constexpr std::uint64_t kExponent = std::uint64_t{0x7FF} << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kExponent);
}

double ulp_in(const Format& format, double magnitude) {
  if (!format.real || !std::isfinite(magnitude)) return 0;
  return power_below(std::max(magnitude, format.smallest_normal)) * format.epsilon;
}

// Avoids the square root for real numbers, which are the usual case.
double magnitude_of(Number value) {
  return value.imag() == 0 ? std::abs(value.real()) : std::abs(value);
}

double magnitude_of(double value) { return std::abs(value); }

bool is_nan(double value) { return std::isnan(value); }
bool is_finite(double value) { return std::isfinite(value); }
bool is_nan(Number value) { return std::isnan(value.real()) || std::isnan(value.imag()); }
bool is_finite(Number value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }

// True unless both are infinite with different signs.
bool same_infinity(double a, double b) { return !std::isinf(a) || !std::isinf(b) || a == b; }

// True if both are finite, both NaN, or the same infinity. A complex number with one infinite part
// is an infinity, whatever its other part: that depends on whether exp or cos is rounded first.
bool same_kind(Number a, Number b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) == is_nan(b);
  if (is_finite(a) || is_finite(b)) return is_finite(a) == is_finite(b);
  return same_infinity(a.real(), b.real()) && same_infinity(a.imag(), b.imag());
}

double larger_part(double value) { return std::abs(value); }
double larger_part(Number value) {
  return std::max(std::abs(value.real()), std::abs(value.imag()));
}

// Number i as a double.
template <typename T>
double real_at(const RealNumbers& numbers, std::size_t i) {
  T value;
  std::memcpy(&value, numbers.bytes.data() + i * sizeof value, sizeof value);
  double wide = 0;
  if constexpr (std::is_arithmetic_v<T>) {
    wide = static_cast<double>(value);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    wide = value.code != 0 ? 1 : 0;
  } else {
    wide = widen(value);
  }
  return numbers.signs ? wide : std::abs(wide);
}

// Calls f(Type<T>{}) with the C++ type of a real dtype.
template <typename F>
double visit_real(DType dtype, F&& f) {
  return visit(dtype, [&]<typename T>(Type<T> type) -> double {
    if constexpr (kIsComplex<T>)
      return INFINITY;
    else
      return f(type);
  });
}

// The largest finite magnitude of values(i), or 0.
double largest_finite(std::size_t count, const auto& values) {
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = values(i);
    if (is_finite(value)) largest = std::max(largest, magnitude_of(value));
  }
  return largest;
}

// An element at which both sides are measured.
struct Element {
  std::uint64_t index = 0;
  Number truth;
  std::optional<double> moved;  // how far the truth moves there; computed on demand
};

class Bar {
 public:
  Bar(const BarInput& input, double scale)
      : input_(input),
        format_(format_of(input.dtype)),
        root_(format_.is_half() ? 1 : std::sqrt(std::max(1.0, input.terms))) {
    // The truth of a float64 result is not more precise than the result, so its error is of the
    // order of the scale. The truth of a single element does not depend on the scale.
    const bool alone = input.terms <= 1 && input.scale_floor == 0;
    at_scale_ = std::max(input.scale_floor, is_finest() && !alone ? 1.0 : 0.0);
    // float16 is computed in float32, which has a wider range.
    slack_ = input.dtype == DType::float16 || input.terms < 1 ? 1 : input.slack;
    scale_floor_ = at_scale_ * ulp_in(format_, scale);
    unit_floor_ = input.unit_floor * ulp_in(format_, 1);
    is_complex_ = input.dtype == DType::complex64 || input.dtype == DType::complex128;
    direct_ = input.terms <= 0;
    // With a scale floor, the scale of the result shows whether terms cancel.
    const bool few_terms = input.terms <= kFewTerms || format_.is_half();
    few_ = input.terms <= 1 || (few_terms && input.scale_floor > 0);
    // A larger move is a jump (half of the digits at once), not conditioning. For whole numbers
    // every move is a jump.
    jump_ = format_.real ? scale * std::sqrt(std::ldexp(1, -format_.mantissa)) : 0;
  }

  BarMeasurement run() {
    BarMeasurement measured;
    measured.count = input_.truth.size();
    // Sums of other values may be exact by chance on one side. A floor above one ulp is of sums.
    const bool single = input_.terms <= 1 && input_.scale_floor <= 1;
    exact_ = (input_.exact_values || single) && is_exact();
    few_ = few_ || (input_.exact_values && rounds_once());
    for (std::uint64_t i = 0; i < measured.count; ++i) {
      if (input_.test[i] == input_.reference[i]) continue;
      Element element{i, input_.truth[i], std::nullopt};
      const bool worse = take(input_.test[i], input_.reference[i], element, measured.test);
      (void)take(input_.reference[i], input_.test[i], element, measured.reference);
      if (!worse) continue;
      measured.test_value = input_.test[i];
      measured.reference_value = input_.reference[i];
      measured.true_value = input_.truth[i];
    }
    return measured;
  }

  std::vector<double> moved_distances() const {
    std::vector<double> found;
    found.reserve(input_.truth.size());
    for (std::uint64_t i = 0; i < input_.truth.size(); ++i) found.push_back(moved_at(i));
    return found;
  }

  std::vector<double> error_units() const {
    std::vector<double> found;
    found.reserve(input_.truth.size());
    for (std::uint64_t i = 0; i < input_.truth.size(); ++i) {
      const double ulp = ulp_in(format_, larger_part(input_.truth[i]));
      found.push_back(rounding(ulp, direct_ ? 0 : moved_at(i)) + below());
    }
    return found;
  }

  bool needs_scale() const { return at_scale_ > 0; }

  // test(i) and reference(i) return number i.
  double apart(std::size_t count, const auto& test, const auto& reference) const {
    double most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto a = test(i);
      const auto b = reference(i);
      const double unit = rounding(ulp_in(format_, larger_part(b)), 0) + below();
      const double distance = magnitude_of(a - b);
      // The bound keeps infinite and NaN distances from being skipped.
      if (distance <= std::min(most * unit, std::numeric_limits<double>::max())) continue;
      if (a == b || (is_nan(a) && is_nan(b))) continue;
      if (!is_finite(a) || !is_finite(b)) return INFINITY;
      most = unit > 0 ? distance / unit : INFINITY;
    }
    return most;
  }

 private:
  // True if the truth has no more digits and range than the result.
  bool is_finest() const { return format_.mantissa >= Traits<double>::kMantissa; }

  // True if nothing was rounded, so that the reference is the truth everywhere. For the finest
  // dtype, which is also the truth's, half of the digits must be enough.
  bool is_exact() const {
    if (!format_.real) return false;
    const bool finest = is_finest();
    for (std::uint64_t i = 0; i < input_.truth.size(); ++i) {
      const Number truth = input_.truth[i];
      if (!same_kind(input_.reference[i], truth)) return false;
      if (!is_finite(truth)) continue;
      if (finest ? needs_float64(truth) : input_.reference[i] != truth) {
        return false;
      }
    }
    return true;
  }

  // True if the reference is the rounded truth everywhere, which shows that a result is rounded
  // once. It does not for functions of exponentials, which have a floor in ulps of 1: references of
  // PyTorch's own functions are computed in float64 and then rounded, whatever the function rounds.
  bool rounds_once() const {
    if (is_finest() || input_.unit_floor > 0) return false;
    for (std::uint64_t i = 0; i < input_.truth.size(); ++i) {
      const Number truth = input_.truth[i];
      if (!same_kind(input_.reference[i], truth)) return false;
      if (!is_finite(truth)) continue;
      const double half = 0.5 * ulp_in(format_, larger_part(truth));
      if (larger_part(input_.reference[i] - truth) > half * kAsGoodAsHalf) return false;
    }
    return true;
  }

  // The error that rounding can cause in an element with this ulp, whose truth moves by `moved`.
  double rounding(double ulp, double moved) const {
    if (exact_) return kFewShare * std::max(ulp, moved > jump_ ? moved : 0);
    if (few_) return kFewShare * std::max({ulp, moved, scale_floor_, unit_floor_});
    return root_ * (ulp + moved + scale_floor_ + unit_floor_);
  }

  // The error that underflow can cause.
  double below() const { return format_.floor * slack_; }

  // How far the truth moves at an element; infinite if it becomes NaN, infinite or finite.
  double moved(Element& element) const {
    if (!element.moved) element.moved = moved_at(element.index);
    return *element.moved;
  }

  double moved_at(std::uint64_t i) const {
    double distance = 0;
    for (const Values& values : input_.moved) {
      double apart = INFINITY;
      if (same_kind(values[i], input_.truth[i])) {
        apart = is_finite(values[i]) ? magnitude_of(values[i] - input_.truth[i]) : 0;
      }
      if (!input_.jumps_excuse && apart > jump_) continue;
      distance = std::max(distance, apart);
    }
    return distance;
  }

  // True if rounding could turn a finite truth into an infinity, or an infinite one into a number.
  bool at_the_limit(Number value, Number truth, double unit) const {
    const double largest = larger_part(truth);
    const double slack = kLimitUnits * unit;
    // C11, annex G, leaves open which of the two a complex product becomes.
    const bool neither = !is_finite(value) && !is_finite(truth);
    if (is_complex_ && neither && (is_nan(value) || is_nan(truth))) return true;
    if (is_nan(truth)) return false;
    // Terms of a sum overflow on both sides of zero. A complex product is such a sum.
    const bool adds_up = input_.terms > 1 || is_complex_;
    if (is_nan(value) && (!adds_up || std::isinf(largest))) return false;
    if (neither) return false;  // two different infinities
    if (!std::isfinite(largest)) {
      // A truth with no wider range than the result overflows on its way as easily.
      const double factor = is_finest() ? slack_ : 1;
      return larger_part(value) * factor + slack >= format_.largest;
    }
    return largest * slack_ + slack >= format_.largest;
  }

  // Updates `side`; returns true if `value` is its worst so far.
  bool take(Number value, Number other, Element& element, Distance& side) const {
    const Number truth = element.truth;
    // Bit-equal lanes cannot differ in error, whatever the truth is.
    if (value == other || (is_nan(value) && is_nan(other))) return false;
    const double ulp = ulp_in(format_, larger_part(truth));
    if (!is_finite(value) || !is_finite(truth)) {
      if (same_kind(value, truth) || same_kind(value, other)) return false;
      const double unit = std::isfinite(ulp) ? root_ * (ulp + format_.largest * 0x1p-52) : 0;
      const double distance = moved(element);
      if (std::isinf(distance) || at_the_limit(value, truth, unit)) return false;
      if (input_.jumps_excuse && distance > jump_) return false;
      return ++side.specials == 1 && set(side, element.index, INFINITY, INFINITY);
    }
    const double error = magnitude_of(value - truth);
    if (error == 0) return false;
    const double unit = rounding(ulp, direct_ ? 0 : moved(element)) + below();
    if (std::isinf(unit)) return false;
    const double errors = unit > 0 ? error / unit : INFINITY;
    if (errors <= side.errors) return false;
    return set(side, element.index, errors, ulp > 0 ? error / ulp : INFINITY);
  }

  static bool set(Distance& side, std::uint64_t i, double errors, double ulps) {
    side.errors = errors;
    side.index = i;
    side.ulps = ulps;
    return true;
  }

  static constexpr double kLimitUnits = 64;
  static constexpr double kAsGoodAsHalf = 1 + 0x1p-10;  // slack for the rounding of the truth

  const BarInput& input_;
  Format format_;
  double root_;
  double slack_ = 1;
  double jump_ = 0;
  double at_scale_ = 0;     // ulps of the largest value that every element may be off…
  double scale_floor_ = 0;  // … as an absolute error
  double unit_floor_ = 0;
  bool is_complex_ = false;
  bool few_ = false;     // few terms are added per element
  bool direct_ = false;  // the conditioning of inputs excuses nothing
  bool exact_ = false;   // nothing was rounded
};

}  // namespace

double ulp_of(DType dtype, double magnitude) { return ulp_in(format_of(dtype), magnitude); }

double scale_of(Values values) {
  return largest_finite(values.size(), [&](std::size_t i) { return values[i]; });
}

BarMeasurement measure_bar(const BarInput& input) {
  return Bar(input, scale_of(input.truth)).run();
}

bool needs_float64(std::complex<double> value) {
  const auto narrowed = [](double part) { return double{static_cast<float>(part)}; };
  return narrowed(value.real()) != value.real() || narrowed(value.imag()) != value.imag();
}

std::vector<double> moved_distances(const BarInput& input) {
  return Bar(input, scale_of(input.truth)).moved_distances();
}

std::vector<double> error_units(const BarInput& input) {
  return Bar(input, scale_of(input.truth)).error_units();
}

double units_apart(const BarInput& input, double scale) {
  return Bar(input, scale)
      .apart(
          input.test.size(), [&](std::size_t i) { return input.test[i]; },
          [&](std::size_t i) { return input.reference[i]; });
}

double scale_of(const RealNumbers& numbers) {
  return visit_real(numbers.dtype, [&]<typename T>(Type<T>) {
    return largest_finite(numbers.bytes.size() / sizeof(T),
                          [&](std::size_t i) { return real_at<T>(numbers, i); });
  });
}

double units_apart(const BarInput& input, double scale, const RealNumbers& test,
                   const RealNumbers& reference) {
  const Bar bar(input, scale);
  return visit_real(reference.dtype, [&]<typename T>(Type<T>) {
    return bar.apart(
        reference.bytes.size() / sizeof(T), [&](std::size_t i) { return real_at<T>(test, i); },
        [&](std::size_t i) { return real_at<T>(reference, i); });
  });
}

bool needs_scale(const BarInput& input) { return Bar(input, 0).needs_scale(); }

}  // namespace assay
