#include "chain/history/judge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/statistics.h"

namespace assay::chain::history {
namespace {

constexpr std::size_t kFewestNights = 8;  // for a tolerance of their own
constexpr std::size_t kMostNights = 30;   // that the golden value comes from
constexpr std::size_t kDeepest = 5;       // nights back that a change-point is looked for
constexpr std::size_t kReruns = 2;
constexpr std::size_t kPaired = 2;  // runs of the baseline build, and then of the new one, a night
constexpr std::size_t kLastPairedNight = 3;  // then the nearer explanation is taken
constexpr double kSuspect = 2.0;             // standard errors of a change-point
constexpr double kBlame = 2.3;               // standard errors between two builds
constexpr double kCorrelation = 0.4;         // assumed between a night and the next
constexpr double kMedianVariance = 1.5708;   // pi/2: of a median against a mean, for normal noise

struct Night {
  std::size_t first = 0;  // index of its first observation
  std::string build;
  std::vector<double> current;
  std::vector<double> baseline;
  std::vector<double> after;  // those of `current` that were run after a baseline run
  double moved = 0;           // by which its value was shifted to a later golden value
  bool accept = false;
};

double range_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low;
}

double value_of(const Night& night) { return median_of(night.current) + night.moved; }

double center_of(std::span<const Night> nights) {
  std::vector<double> values;
  for (const Night& night : nights) values.push_back(value_of(night));
  return median_of(values);
}

// Standard deviation by the median absolute deviation, with its correction for few values.
double spread_of(std::span<const Night> nights, double center) {
  constexpr double kNormal = 1.4826;
  std::vector<double> deviations;
  for (const Night& night : nights) deviations.push_back(std::abs(value_of(night) - center));
  const auto count = static_cast<double>(nights.size());
  return kNormal * median_of(deviations) * count / (count - 0.8);
}

// A quantile of Student's t for a quantile of the normal distribution (Abramowitz and Stegun
// 26.7.5, first term). The median absolute deviation has 37% of the efficiency of a variance.
double widened(double quantile, std::size_t nights) {
  const double freedom = 0.37 * static_cast<double>(nights - 1);
  return quantile * (1 + (quantile * quantile + 1) / (4 * freedom));
}

// Variance of the mean of `nights` values, in variances of one, if neighbours are correlated.
double variance_of_mean(std::size_t nights) {
  const auto count = static_cast<double>(nights);
  double sum = count;
  for (std::size_t lag = 1; lag < nights; ++lag) {
    const auto distance = static_cast<double>(lag);
    sum += 2 * (count - distance) * std::pow(kCorrelation, distance);
  }
  return sum / (count * count);
}

struct Scale {
  double golden = 0;
  double spread = 0;
  double least = 0;  // smallest change, in the metric's unit
  std::size_t nights = 0;

  bool learning() const { return nights < kFewestNights; }
  // What the median of the last `count` nights may differ by.
  double tolerance(std::size_t count) const {
    if (learning()) return least;
    const double variance = variance_of_mean(count) + kMedianVariance / static_cast<double>(nights);
    return std::max(least, widened(kSuspect, nights) * spread * std::sqrt(variance));
  }
  // What two builds may differ by in the same nights.
  double paired(std::size_t current, std::size_t baseline) const {
    if (learning()) return least;
    const double variance = 1 / static_cast<double>(current) + 1 / static_cast<double>(baseline);
    return std::max(least, widened(kBlame, nights) * spread * std::sqrt(variance));
  }
};

Scale scale_of(std::span<const Night> nights, const Rule& rule) {
  if (nights.size() > kMostNights) nights = nights.last(kMostNights);
  Scale scale;
  scale.nights = nights.size();
  scale.golden = center_of(nights);
  scale.least =
      std::max(rule.floor, std::abs(scale.golden) * (scale.learning() ? rule.first : rule.least));
  if (!scale.learning()) scale.spread = spread_of(nights, scale.golden);
  return scale;
}

// The state after each night. Nights join the reference when they are good or explained.
class Fold {
 public:
  explicit Fold(const Rule& rule) : rule_(rule) {}

  void add(Night night) {
    state_ = known_;
    since_.reset();
    if (night.accept || reference_.empty()) return restart(std::move(night));
    tail_.push_back(std::move(night));
    if (known_ == State::regression) return follow_up();
    if (tail_.size() == 1) look_back();
    const Scale scale = scale_of(reference_, rule_);
    shift_ = center_of(tail_) - scale.golden;
    // A median of many nights is no surer than the oldest change-point that is looked for.
    if (std::abs(shift_) <= scale.tolerance(std::min(tail_.size(), kDeepest))) return join();
    since_ = tail_.front().first;
    explain(scale);
  }

  Judgement judgement() const {
    Judgement result;
    const Scale scale = scale_of(reference_, rule_);
    result.state = state_;
    result.learnt = scale.nights;
    result.learning = scale.learning();
    result.golden = scale.golden;
    result.tolerance = scale.tolerance(1);
    result.value = tail_.empty() ? last_value_ : center_of(tail_);
    result.since = since_;
    if (!reference_.empty()) result.baseline_build = reference_.back().build;
    if (state_ == State::suspect) result.wanted = 1 + kReruns - runs_of_tail();
    if (state_ == State::shifted) {
      const Night& night = tail_.back();
      result.wanted = kPaired - std::min(kPaired, night.baseline.size());
      if (result.wanted > 0) {
        result.next = Purpose::baseline;
      } else {
        result.wanted = kPaired - std::min(kPaired, night.after.size());
      }
    }
    return result;
  }

 private:
  void restart(Night night) {
    known_ = state_ = State::good;
    if (!reference_.empty()) {
      tail_.clear();
      rebase(value_of(night));
    }
    tail_.push_back(std::move(night));
    join();
  }

  // Moves good nights that a change-point includes from the reference to the tail.
  void look_back() {
    std::size_t best = 0;
    double most = 1;  // in tolerances
    for (std::size_t back = 0; back < kDeepest && reference_.size() > kFewestNights + back;
         ++back) {
      const std::size_t left = reference_.size() - back;
      const Scale scale = scale_of(std::span(reference_).first(left), rule_);
      std::vector<double> values{value_of(tail_.front())};
      for (const Night& night : std::span(reference_).last(back)) values.push_back(value_of(night));
      const double oldest = (back == 0 ? values.front() : values[1]) - scale.golden;
      const double shift = median_of(values) - scale.golden;
      const double ratio = std::abs(shift) / std::max(scale.tolerance(back + 1), 1e-300);
      // A change starts with a night that has it.
      if (ratio <= most || oldest / shift < 0.5) continue;
      most = ratio;
      best = back;
    }
    const auto from = reference_.end() - static_cast<std::ptrdiff_t>(best);
    tail_.insert(tail_.begin(), std::make_move_iterator(from),
                 std::make_move_iterator(reference_.end()));
    reference_.erase(from, reference_.end());
  }

  void join() {
    last_value_ = value_of(tail_.back());
    reference_.insert(reference_.end(), std::make_move_iterator(tail_.begin()),
                      std::make_move_iterator(tail_.end()));
    tail_.clear();
  }

  void rebase(double golden) {
    const double by = golden - scale_of(reference_, rule_).golden;
    for (Night& night : reference_) night.moved += by;
  }

  std::size_t runs_of_tail() const {
    std::size_t runs = 0;
    for (const Night& night : tail_) runs += night.current.size();
    return std::min(runs, 1 + kReruns);
  }

  void explain(const Scale& scale) {
    state_ = State::suspect;
    if (runs_of_tail() < 1 + kReruns) return;
    state_ = State::shifted;
    if (tail_.back().build == reference_.back().build) return accept_as(State::environment);
    std::vector<double> current;
    std::vector<double> baseline;
    std::size_t paired_nights = 0;  // whose runs agree: otherwise something disturbed the machine
    for (const Night& night : tail_) {
      if (night.baseline.size() < kPaired || night.after.size() < kPaired) continue;
      if (std::max(range_of(night.baseline), range_of(night.after)) > scale.paired(1, 1)) continue;
      ++paired_nights;
      current.insert(current.end(), night.after.begin(), night.after.end());
      baseline.insert(baseline.end(), night.baseline.begin(), night.baseline.end());
    }
    if (paired_nights == 0) return;
    const double limit = scale.paired(current.size(), baseline.size());
    const double was = median_of(baseline);
    const double apart = median_of(current) - was;
    const bool same_way = (apart > 0) == (shift_ > 0);
    const bool moved_too = std::abs(apart) < std::abs(shift_) / 2;
    if (same_way && std::abs(apart) > limit) {
      blame();
    } else if (moved_too && (std::abs(was - scale.golden) > scale.tolerance(1) ||
                             paired_nights >= kLastPairedNight)) {
      accept_as(State::environment);
    }
  }

  void blame() {
    const bool better =
        (rule_.worse == Worse::higher && shift_ < 0) || (rule_.worse == Worse::lower && shift_ > 0);
    if (better) return accept_as(State::improvement);
    state_ = known_ = State::regression;
  }

  // The nights since the change have the new golden value. The spread of those before is kept.
  void accept_as(State state) {
    state_ = state;
    rebase(center_of(tail_));
    join();
  }

  // A regression lasts until two nights in a row are nearer to the golden value. Its nights never
  // join the reference.
  void follow_up() {
    const double golden = scale_of(reference_, rule_).golden;
    const std::span<const Night> last =
        std::span(tail_).last(std::min<std::size_t>(2, tail_.size()));
    since_ = tail_.front().first;
    if (std::abs(center_of(last) - golden) > std::abs(shift_) / 2) return;
    state_ = known_ = State::good;
    since_.reset();
    tail_.erase(tail_.begin(), tail_.end() - 1);
    join();
  }

  Rule rule_;
  State known_ = State::good;  // good, or a regression that lasts
  State state_ = State::good;
  double shift_ = 0;
  double last_value_ = 0;
  std::optional<std::size_t> since_;
  std::vector<Night> reference_;
  std::vector<Night> tail_;  // nights since a change that is not explained
};

}  // namespace

std::string_view name(State state) {
  constexpr std::array<std::string_view, 6> kNames{"good",       "suspect",     "shifted",
                                                   "regression", "improvement", "environment"};
  return kNames.at(static_cast<std::size_t>(state));
}

Judgement judge(std::span<const Observation> history, const Rule& rule) {
  if (history.empty()) return {};
  Fold fold(rule);
  Night night;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Observation& one = history[i];
    if (one.purpose == Purpose::nightly && !night.current.empty()) {
      fold.add(std::exchange(night, {}));
    }
    if (night.current.empty()) {
      night.first = i;
      night.build = one.build;
    }
    night.accept = night.accept || one.accept;
    if (one.purpose != Purpose::baseline) {
      night.current.push_back(one.value);
      if (!night.baseline.empty()) night.after.push_back(one.value);
    } else if (one.build != night.build) {
      night.baseline.push_back(one.value);
    }
  }
  if (!night.current.empty()) fold.add(std::move(night));
  return fold.judgement();
}

}  // namespace assay::chain::history
