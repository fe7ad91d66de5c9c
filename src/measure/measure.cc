#include "measure/measure.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fill/numbers.h"
#include "measure/kernels.h"
#include "measure/pair.h"

namespace assay {
namespace {

template <typename T>
void portable_split(const std::byte* left, const std::byte* right, std::size_t n,
                    Split<MeasureReal<T>>& split) {
  for (std::size_t i = 0; i < n; ++i) split_one<T>(left, right, i, split);
}

template <typename T>
bool portable_equal(const std::byte* left, const std::byte* right, std::size_t bytes) {
  if (std::memcmp(left, right, bytes) != 0) return false;
  if constexpr (kIsFloat<T>) {
    using Part = PartOf<T>;
    for (std::size_t i = 0; i < bytes; i += sizeof(Part)) {
      Part value;
      std::memcpy(&value, left + i, sizeof value);
      if (is_nan(real_of(value))) return false;
    }
  }
  return true;
}

template <typename Real>
Profile<Real> portable_profile(const Split<Real>& split, std::size_t n,
                               const Limits<Real>& limits) {
  Profile<Real> profile{};
  for (std::size_t i = 0; i < n; ++i) {
    profile_one(split.difference[i], split.reference[i], limits, profile);
  }
  return profile;
}

void portable_histogram(const std::uint32_t* ulps, std::size_t n, std::uint32_t /*largest*/,
                        std::uint64_t* buckets) {
  for (std::size_t i = 0; i < n; ++i) ++buckets[ulp_bucket(ulps[i])];
}

// The loops for one dtype.
template <typename T>
SplitLoop<MeasureReal<T>> split_for(const MeasureKernels& kernels) {
  if constexpr (std::is_same_v<T, Float16>) return kernels.split_float16;
  if constexpr (std::is_same_v<T, BFloat16>) return kernels.split_bfloat16;
  if constexpr (std::is_same_v<T, float>) return kernels.split_float32;
  if constexpr (std::is_same_v<T, double>) return kernels.split_float64;
  return portable_split<T>;
}
template <typename T>
PlainEqual equal_for(const MeasureKernels& kernels) {
  if constexpr (std::is_same_v<T, Float16>) return kernels.equal_float16;
  if constexpr (std::is_same_v<T, BFloat16>) return kernels.equal_bfloat16;
  if constexpr (std::is_same_v<PartOf<T>, float>) return kernels.equal_float32;
  if constexpr (std::is_same_v<PartOf<T>, double>) return kernels.equal_float64;
  return portable_equal<T>;
}
template <typename Real>
auto profile_for(const MeasureKernels& kernels) {
  if constexpr (std::is_same_v<Real, float>)
    return kernels.profile_float;
  else
    return kernels.profile_double;
}

template <typename T>
std::array<double, 2> values_of(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (kIsComplex<T>)
    return {value.real, value.imaginary};
  else if constexpr (kIsFloat<T>)
    return {real_of(value), 0};
  else if constexpr (std::is_same_v<T, Boolean>)
    return {value.code != 0 ? 1.0 : 0.0, 0};
  else
    return {static_cast<double>(value), 0};
}

// The measuring of one pair of buffers, a block at a time.
template <typename T>
class Measurer {
 public:
  using Real = MeasureReal<T>;

  Measurer(const MeasureKernels& kernels, Tolerance under)
      : split_(split_for<T>(kernels)),
        equal_(equal_for<T>(kernels)),
        profile_(profile_for<Real>(kernels)),
        histogram_(kernels.histogram),
        limits_(limits_of<Real>(under)) {
    result_.under = under;
  }

  Measurement run(const std::byte* left, const std::byte* right, std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t n = std::min(kMeasureBlock, count - done);
      const std::byte* const a = left + done * sizeof(T);
      const std::byte* const b = right + done * sizeof(T);
      if (equal_(a, b, n * sizeof(T))) {
        result_.bit_equal += n;
        result_.ulp_histogram[0] += n;
      } else {
        add_block(a, b, n);
      }
      done += n;
      result_.count = done;
    }
    result_.max_abs = result_.atol_needed[0];
    return result_;
  }

 private:
  void add_block(const std::byte* left, const std::byte* right, std::size_t n) {
    pairs_.largest_ulps = 0;
    pairs_.bit_equal = 0;
    std::fill(std::begin(pairs_.special), std::end(pairs_.special), 0);
    pairs_.first_disagreement = kMeasureBlock;
    split_(left, right, n, pairs_);
    const Profile<Real> profile = profile_(pairs_, n, limits_);
    histogram_(pairs_.ulps, n, pairs_.largest_ulps, result_.ulp_histogram.data());

    result_.bit_equal += pairs_.bit_equal;
    for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
      result_.atol_needed[g] =
          std::max(result_.atol_needed[g], static_cast<double>(profile.needed[g]));
    }
    result_.max_rel = std::max(result_.max_rel, static_cast<double>(profile.relative));
    const std::uint64_t disagreeing = add_special();
    result_.beyond += profile.beyond + disagreeing;
    if (!result_.first && profile.beyond + disagreeing > 0) note_first(left, right);
    const double worst =
        disagreeing > 0 ? std::numeric_limits<double>::infinity() : double{profile.worst};
    if (worst > result_.worst.excess) note_worst(left, right, profile.worst, disagreeing > 0);
  }

  // Counts the pairs that are not finite; returns how many of them disagree.
  std::uint64_t add_special() {
    const auto of = [&](PairKind kind) { return pairs_.special[static_cast<int>(kind)]; };
    result_.both_nan += of(PairKind::both_nan);
    result_.nan_left_only += of(PairKind::nan_left_only);
    result_.nan_right_only += of(PairKind::nan_right_only);
    result_.inf_disagree += of(PairKind::inf_disagree);
    const std::uint64_t disagreeing =
        of(PairKind::nan_left_only) + of(PairKind::nan_right_only) + of(PairKind::inf_disagree);
    // The split gave them the distance 0; only equal infinities belong there.
    result_.ulp_histogram[0] -= of(PairKind::both_nan) + disagreeing;
    return disagreeing;
  }

  Real excess(std::size_t i) const {
    return ieee::fused(-limits_.rtol, pairs_.reference[i], pairs_.difference[i]);
  }
  Offender offender(const std::byte* left, const std::byte* right, std::size_t i) const {
    const bool special = i == pairs_.first_disagreement;
    return {result_.count + i, values_of<T>(left + i * sizeof(T)),
            values_of<T>(right + i * sizeof(T)),
            special ? std::numeric_limits<double>::infinity() : double{excess(i)}};
  }
  void note_first(const std::byte* left, const std::byte* right) {
    std::size_t i = 0;
    while (i != pairs_.first_disagreement && !(excess(i) > limits_.atol)) ++i;
    result_.first = offender(left, right, i);
  }
  void note_worst(const std::byte* left, const std::byte* right, Real worst, bool disagreeing) {
    std::size_t i = pairs_.first_disagreement;
    if (!disagreeing || !is_finite(worst)) {
      std::size_t place = 0;
      while (place != i && excess(place) != worst) ++place;
      i = place;
    }
    result_.worst = offender(left, right, i);
  }

  SplitLoop<Real> split_;
  PlainEqual equal_;
  Profile<Real> (*profile_)(const Split<Real>&, std::size_t, const Limits<Real>&);
  void (*histogram_)(const std::uint32_t*, std::size_t, std::uint32_t, std::uint64_t*);
  Limits<Real> limits_;
  Split<Real> pairs_;
  Measurement result_;
};

}  // namespace

template <typename Real>
Limits<Real> limits_of(Tolerance tolerance) {
  Limits<Real> limits;
  for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
    limits.grid[g] = static_cast<Real>(kRtolGrid[g]);
  }
  limits.rtol = static_cast<Real>(tolerance.rtol);
  limits.atol = static_cast<Real>(tolerance.atol);
  if (double{limits.atol} > tolerance.atol) {
    limits.atol = std::nextafter(limits.atol, -std::numeric_limits<Real>::infinity());
  }
  return limits;
}
template Limits<float> limits_of<float>(Tolerance);
template Limits<double> limits_of<double>(Tolerance);

const MeasureKernels& portable_measure_kernels() {
  static constexpr MeasureKernels kernels{
      .split_float16 = portable_split<Float16>,
      .split_bfloat16 = portable_split<BFloat16>,
      .split_float32 = portable_split<float>,
      .split_float64 = portable_split<double>,
      .equal_float16 = portable_equal<Float16>,
      .equal_bfloat16 = portable_equal<BFloat16>,
      .equal_float32 = portable_equal<float>,
      .equal_float64 = portable_equal<double>,
      .profile_float = portable_profile<float>,
      .profile_double = portable_profile<double>,
      .histogram = portable_histogram,
  };
  return kernels;
}

const MeasureKernels& best_measure_kernels() {
  static const MeasureKernels& best = __builtin_cpu_supports("avx2") &&
                                              __builtin_cpu_supports("fma") &&
                                              __builtin_cpu_supports("f16c")
                                          ? avx2_measure_kernels()
                                          : portable_measure_kernels();
  return best;
}

Measurement measure_with(const MeasureKernels& kernels, DType dtype,
                         std::span<const std::byte> left, std::span<const std::byte> right,
                         Tolerance under) {
  const std::size_t count = std::min(left.size(), right.size()) / size_of(dtype);
  return visit(dtype, [&]<typename T>(Type<T>) {
    return Measurer<T>(kernels, under).run(left.data(), right.data(), count);
  });
}

Measurement measure(DType dtype, std::span<const std::byte> left, std::span<const std::byte> right,
                    Tolerance under) {
  return measure_with(best_measure_kernels(), dtype, left, right, under);
}

}  // namespace assay
