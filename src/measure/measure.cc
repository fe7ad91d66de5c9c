#include "measure/measure.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fill/numbers.h"
#include "measure/element_difference.h"
#include "measure/kernels.h"

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

// The loops for a dtype.
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
ProfileLoop<Real> profile_for(const MeasureKernels& kernels) {
  if constexpr (std::is_same_v<Real, float>) {
    return kernels.profile_float;
  } else {
    return kernels.profile_double;
  }
}
template <typename T>
const QuickLoops<MeasureReal<T>>* quick_for(const MeasureKernels& kernels) {
  if constexpr (std::is_same_v<T, Float16>) return kernels.quick_float16;
  if constexpr (std::is_same_v<T, BFloat16>) return kernels.quick_bfloat16;
  if constexpr (std::is_same_v<T, float>) return kernels.quick_float32;
  return nullptr;
}

// Measures a pair of buffers block by block.
template <typename T>
class Measurer {
 public:
  using Real = MeasureReal<T>;
  static constexpr std::size_t kFirst = kIsCoarse<T> ? kFirstCoarse : kFirstGrid;

  Measurer(const MeasureKernels& kernels, Tolerance under)
      : split_(split_for<T>(kernels)),
        equal_(equal_for<T>(kernels)),
        profile_(profile_for<Real>(kernels)),
        quick_(quick_for<T>(kernels)),
        limits_(limits_of<Real>(under, kIsCoarse<T>)) {
    result_.under = under;
    pairs_.bit_equal = 0;
    std::fill(std::begin(pairs_.buckets), std::end(pairs_.buckets), 0);
  }

  Measurement run(const std::byte* left, const std::byte* right, std::size_t count) {
    while (result_.count < count) {
      const std::size_t n = std::min<std::size_t>(kBlockOf<T>, count - result_.count);
      const std::byte* const a = left + result_.count * sizeof(T);
      const std::byte* const b = right + result_.count * sizeof(T);
      if (equal_(a, b, n * sizeof(T))) {
        pairs_.bit_equal += n;
        pairs_.buckets[0] += n;
      } else if (n < kBlockOf<T> || !add_quickly(a, b)) {
        add_block(a, b, n);
      }
      result_.count += n;
    }
    result_.bit_equal = pairs_.bit_equal;
    std::copy(std::begin(pairs_.buckets), std::end(pairs_.buckets), result_.ulp_histogram.begin());
    result_.max_abs = result_.atol_needed[0];
    return result_;
  }

 private:
  void add_block(const std::byte* left, const std::byte* right, std::size_t n) {
    std::fill(std::begin(pairs_.special), std::end(pairs_.special), 0);
    pairs_.first_disagreement = kMeasureBlock;
    split_(left, right, n, pairs_);
    const Profile<Real> profile = profile_(pairs_, n, limits_);
    add_maxima(profile);
    quick_until_ = kLastGrid;
    shorten(profile);
    const std::uint64_t disagreeing = add_special();
    result_.beyond += profile.beyond + disagreeing;
    if (!result_.first && profile.beyond + disagreeing > 0) note_first(left, right);
    const double worst =
        disagreeing > 0 ? std::numeric_limits<double>::infinity() : double{profile.worst};
    if (worst > result_.worst.excess) note_worst(left, right, profile.worst, disagreeing > 0);
  }

  // Most blocks resemble the one before, so a quick pass over a block usually suffices.
  //
  // needed[g] decreases with g. If needed[p] of a block is at most the total's needed[last], then
  // no needed[g ≥ p] of the block changes the total; nor does the excess under an rtol from grid[p]
  // to grid[last]. The quick pass therefore stops at p. It computes the excess too if rtol is
  // outside of that range; the excess of a grid entry below p is one of needed[]. If the quick pass
  // fails, or a pair disagrees or is the worst so far, the full pass runs for this block and the
  // next ones.
  bool add_quickly(const std::byte* left, const std::byte* right) {
    if (quick_ == nullptr) return false;
    if (pause_ > 0) {
      --pause_;
      return false;
    }
    const auto last = static_cast<Real>(result_.atol_needed[kLastGrid]);
    const bool covered = limits_.grid[quick_until_] <= limits_.rtol &&
                         limits_.rtol <= limits_.grid[kLastGrid] && last <= limits_.atol;
    const std::size_t entry = covered ? 0 : rtol_entry();
    const auto& loops = covered || entry > 0 ? quick_->grid_alone : quick_->with_excess;
    const auto worst = static_cast<Real>(result_.worst.excess);
    const Accepted<Real> accepted{limits_, last, std::min(worst, limits_.atol), entry};
    Profile<Real> profile{};
    if (!loops[quick_until_](left, right, accepted, pairs_, profile)) {
      next_pause_ = std::min(2 * next_pause_ + 1, 63);
      pause_ = next_pause_;
      return false;
    }
    next_pause_ = 0;
    add_maxima(profile);
    shorten(profile);
    return true;
  }
  // The index of rtol among the entries that a quick pass computes; 0: none.
  std::size_t rtol_entry() const {
    std::size_t entry = quick_until_;
    while (entry >= kFirst && limits_.grid[entry] != limits_.rtol) --entry;
    return entry >= kFirst ? entry : 0;
  }
  void add_maxima(const Profile<Real>& profile) {
    for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
      result_.atol_needed[g] = std::max(result_.atol_needed[g], double{profile.needed[g]});
    }
    result_.max_rel = std::max(result_.max_rel, double{profile.relative});
  }
  void shorten(const Profile<Real>& profile) {
    const double last = result_.atol_needed[kLastGrid];
    while (quick_until_ > kFirst && profile.needed[quick_until_ - 1] <= last) --quick_until_;
  }

  // Counts the pairs that are not finite. Returns how many of them disagree.
  std::uint64_t add_special() {
    const auto of = [&](PairKind kind) { return pairs_.special[static_cast<int>(kind)]; };
    result_.both_nan += of(PairKind::both_nan);
    result_.nan_left_only += of(PairKind::nan_left_only);
    result_.nan_right_only += of(PairKind::nan_right_only);
    result_.inf_disagree += of(PairKind::inf_disagree);
    return std::uint64_t{of(PairKind::nan_left_only)} + of(PairKind::nan_right_only) +
           of(PairKind::inf_disagree);
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
  ProfileLoop<Real> profile_;
  const QuickLoops<Real>* quick_;
  Limits<Real> limits_;
  std::size_t quick_until_ = kLastGrid;
  int pause_ = 0;       // blocks until the next quick pass
  int next_pause_ = 0;  // doubles with every failure
  Split<Real> pairs_;
  Measurement result_;
};

}  // namespace

template <typename Real>
Limits<Real> limits_of(Tolerance tolerance, bool coarse) {
  Limits<Real> limits;
  for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
    limits.grid[g] = coarse && g < kFirstCoarse ? 0 : static_cast<Real>(kRtolGrid[g]);
  }
  limits.rtol = static_cast<Real>(tolerance.rtol);
  limits.atol = static_cast<Real>(tolerance.atol);
  if (double{limits.atol} > tolerance.atol) {
    limits.atol = std::nextafter(limits.atol, -std::numeric_limits<Real>::infinity());
  }
  return limits;
}
template Limits<float> limits_of<float>(Tolerance, bool);
template Limits<double> limits_of<double>(Tolerance, bool);

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
      .quick_float16 = nullptr,
      .quick_bfloat16 = nullptr,
      .quick_float32 = nullptr,
  };
  return kernels;
}

const MeasureKernels& best_measure_kernels() {
  static const MeasureKernels& best =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2_measure_kernels()
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
