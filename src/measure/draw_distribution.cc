#include "measure/draw_distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fill/element.h"
#include "fill/fill.h"
#include "fill/numbers.h"
#include "fill/philox.h"
#include "measure/dependence.h"
#include "measure/distribution.h"
#include "measure/groups.h"
#include "measure/two_valued_draws.h"

namespace assay {
namespace {

struct DistributionName {
  DrawDistribution kind;
  std::string_view name;
  std::size_t parameters;
};
constexpr std::array<DistributionName, 16> kDistributions{{
    {DrawDistribution::anything, "anything", 0},
    {DrawDistribution::kept, "kept", 3},
    {DrawDistribution::uniform, "uniform", 2},
    {DrawDistribution::normal, "normal", 2},
    {DrawDistribution::bernoulli, "bernoulli", 1},
    {DrawDistribution::integers, "integers", 2},
    {DrawDistribution::exponential, "exponential", 1},
    {DrawDistribution::poisson, "poisson", 1},
    {DrawDistribution::geometric, "geometric", 1},
    {DrawDistribution::log_normal, "log_normal", 2},
    {DrawDistribution::cauchy, "cauchy", 2},
    {DrawDistribution::gamma, "gamma", 2},
    {DrawDistribution::binomial, "binomial", 2},
    {DrawDistribution::permutation, "permutation", 1},
    {DrawDistribution::either, "either", 4},
    {DrawDistribution::categorical, "categorical", 3},
}};

// The number of points at which the empirical distribution of u is compared. The result is at most
// the true distance.
constexpr std::size_t kPlaces = 2048;
// The largest float16. It is the only dtype whose end a distribution in use reaches, so infinity
// counts as a draw beyond the end for coarse dtypes only.
constexpr double kCoarseEnd = 65504;
constexpr double kCoarse = 0x1p-10;

void note_outside(DrawMeasurement& measured, std::size_t index, double value) {
  if (measured.outside++ == 0) {
    measured.first_outside = index;
    measured.first_value = value;
  }
}

// The distance from x to the next value of a dtype, away from zero.
double spacing(double x, double resolution) {
  if (resolution == 0) return 1;
  return x == 0 ? 0 : std::ldexp(resolution, std::ilogb(x));
}

// The possible values of a distribution, allowing for rounding to the dtype.
class Support {
 public:
  Support(const Distribution& distribution, double resolution)
      : distribution_(distribution), resolution_(resolution), valid_(distribution.valid()) {
    if (!valid_) return;
    only_ = distribution.only_value();
    least_ = distribution.least() - rounding(distribution.least());
    greatest_ = distribution.greatest() + rounding(distribution.greatest());
  }
  const Distribution& distribution() const { return distribution_; }
  // False: the parameters are out of the domain, and nothing is judged.
  bool valid() const { return valid_; }
  bool leaves_no_choice() const { return only_.has_value(); }
  bool holds(double x) const {
    if (std::isnan(x)) return false;
    if (only_) return near(x, *only_, slack_of(resolution_));
    if (std::isinf(x)) return holds_infinity(x > 0);
    return x >= least_ && x <= greatest_ && (!distribution_.discrete() || x == std::floor(x));
  }

 private:
  bool holds_infinity(bool positive) const {
    const double beyond =
        positive ? 1 - distribution_.cumulative(kCoarseEnd) : distribution_.cumulative(-kCoarseEnd);
    return resolution_ >= kCoarse && !distribution_.discrete() && beyond > 1e-13;
  }
  // A bound that the dtype lacks is rounded to a neighbour, and so may be values near it.
  double rounding(double bound) const {
    const double step = resolution_ == 0 || std::isinf(bound) ? 0 : spacing(bound, resolution_);
    return distribution_.discrete() && step <= 1 ? 0 : step;
  }

  Distribution distribution_;
  double resolution_;
  bool valid_;
  std::optional<double> only_;
  double least_ = 0;
  double greatest_ = 0;
};

void note_dependence(DrawMeasurement& measured, const Dependence& dependence,
                     std::span<const std::size_t> rows) {
  const DependenceFound found = dependence.run(rows);
  measured.correlation = found.correlation;
  measured.lag = found.lag;
  measured.pairs = found.pairs;
}

// Collects u and computes the statistics.
class Uniformity {
 public:
  // `moved` is how far u moves to the dtype's neighbouring values.
  void add(double u, double moved) {
    const double centred = u - 0.5;
    sum_ += centred;
    squares_ += centred * centred - 1.0 / 12;
    moved_ += moved;
    most_moved_ = std::max(most_moved_, moved);
    least_ = std::min(least_, u);
    greatest_ = std::max(greatest_, u);
    dependence_.add(centred);
    ++cells_[std::min(static_cast<std::size_t>(u * kPlaces), kPlaces - 1)];
    ++count_;
  }
  void finish(DrawMeasurement& measured, std::span<const std::size_t> rows = {}) const {
    measured.judged = count_;
    if (count_ == 0) return;
    const auto n = static_cast<double>(count_);
    measured.mean_z = sum_ * std::sqrt(12 / n);
    measured.variance_z = squares_ * std::sqrt(180 / n);
    measured.resolution_mean = moved_ / n;
    measured.resolution_max = most_moved_;
    measured.gap = std::max(least_, 1 - greatest_);
    double below = 0;
    double farthest = 0;
    for (std::size_t i = 0; i < kPlaces; ++i) {
      below += static_cast<double>(cells_[i]);
      farthest = std::max(farthest, std::abs(below / n - static_cast<double>(i + 1) / kPlaces));
    }
    measured.ks = farthest * std::sqrt(n);
    note_dependence(measured, dependence_, rows);
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double moved_ = 0;
  double most_moved_ = 0;
  double least_ = 1;
  double greatest_ = 0;
  std::array<std::uint64_t, kPlaces> cells_{};
  Dependence dependence_{0.5, std::sqrt(1.0 / 12)};
};

// A draw as a uniform number, and how far that moves to the neighbouring values of the dtype.
struct UniformDraw {
  double u;
  double moved;
};

UniformDraw uniform_of(const Distribution& distribution, double x, double v, double resolution) {
  if (std::isinf(x)) return {x > 0 ? 1.0 : 0.0, 0};
  const double step = spacing(x, resolution);
  const auto moved = [&] {
    return distribution.cumulative(x + step) - distribution.cumulative(x - step);
  };
  if (!distribution.discrete()) return {distribution.cumulative(x), moved()};
  const double before = distribution.cumulative(x - 1);
  // Whole numbers that the dtype has exactly stand for themselves only, so their u does not move.
  return {before + v * (distribution.cumulative(x) - before), step <= 1 ? 0 : moved()};
}

// Chooses the elements that give a u: the first ones, which are compared as neighbours, and one
// random element of each stretch of equal length.
class Sample {
 public:
  explicit Sample(std::size_t count) : stretch_((count + kDrawSamples - 1) / kDrawSamples) {}
  // The random part of the element's u, if the element is chosen. Call it in order of the elements.
  std::optional<double> noise(std::size_t i) {
    const std::uint64_t number = i / stretch_;
    if (i % stretch_ == 0) next_ = i + below(draws_.draw(32, 4 * number), 32, stretch_);
    if (i != next_) {
      if (i >= kNeighbours) return std::nullopt;
      return unit<double, 64>(more_draws_.draw(64, i));
    }
    return unit<double, 64>(draws_.draw(64, 2 * number + 1));
  }

 private:
  Draws draws_{make_stream(0, 0, 0)};
  Draws more_draws_{make_stream(0, 0, 1)};
  std::uint64_t stretch_;
  std::uint64_t next_ = 0;
};

void measure_spread(DrawDistribution kind, std::span<const double> drawn,
                    std::span<const DrawParameter> parameters, double resolution,
                    std::span<const std::size_t> rows, DrawMeasurement& measured) {
  Sample sample(drawn.size());
  Uniformity uniformity;
  std::array<Groups, 2> groups;
  EqualDraws equal;
  const bool one_for_all =
      std::all_of(parameters.begin(), parameters.end(),
                  [](const DrawParameter& each) { return each.values.empty(); });
  std::optional<Support> support;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto noise = sample.noise(i);
    if (!support || !one_for_all) {
      const double second = parameters.size() > 1 ? parameters[1].at(i) : 0;
      support.emplace(Distribution{kind, parameters[0].at(i), second}, resolution);
    }
    if (!support->valid()) continue;
    if (!support->holds(drawn[i])) {
      note_outside(measured, i, drawn[i]);
    } else if (noise && !support->leaves_no_choice()) {
      const UniformDraw draw = uniform_of(support->distribution(), drawn[i], *noise, resolution);
      uniformity.add(draw.u, draw.moved);
      if (!support->distribution().discrete() && std::isfinite(drawn[i]))
        equal.add(drawn[i], draw.moved);
      for (std::size_t k = 0; k < std::min(groups.size(), parameters.size()); ++k) {
        if (!parameters[k].values.empty()) groups[k].add(parameters[k].at(i), draw.u, draw.moved);
      }
    }
  }
  // Only if no draw is left out are rows as long as in the tensor.
  const std::span known = uniformity.count() == drawn.size() ? rows : rows.first(0);
  uniformity.finish(measured, known);
  for (const Groups& each : groups) each.finish(measured);
  equal.finish(measured, known);
}

DrawMeasurement measure_choice(DrawDistribution kind, std::span<const double> drawn,
                               std::span<const DrawParameter> parameters, double resolution) {
  const auto numbers = [&](std::size_t which) {
    return DrawNumbers{parameters[which].number, parameters[which].values};
  };
  const std::size_t share = parameters.size() - 2;
  Choice choice(parameters[share].number, resolution);
  choice.add(drawn, numbers(0), kind == DrawDistribution::either ? numbers(1) : DrawNumbers{},
             numbers(share + 1));
  return choice.finish();
}

// Weights with updates and prefix sums in logarithmic time (Fenwick, "A new data structure for
// cumulative frequency tables", 1994).
class Weights {
 public:
  Weights(const DrawParameter& all, std::size_t first, std::size_t count) : sums_(count + 1) {
    for (std::size_t i = 0; i < count; ++i) weights_.push_back(std::max(0.0, all.at(first + i)));
    for (std::size_t i = 1; i <= count; ++i) {
      sums_[i] += weights_[i - 1];
      if (const std::size_t above = i + (i & -i); above <= count) sums_[above] += sums_[i];
    }
  }
  double at(std::size_t index) const { return weights_[index]; }
  double before(std::size_t index) const {
    double sum = 0;
    for (std::size_t i = index; i > 0; i -= i & -i) sum += sums_[i];
    return sum;
  }
  void remove(std::size_t index) {
    for (std::size_t i = index + 1; i < sums_.size(); i += i & -i) sums_[i] -= weights_[index];
    weights_[index] = 0;
  }

 private:
  std::vector<double> weights_;
  std::vector<double> sums_;
};

// Without replacement, a draw is judged by the categories that its predecessors in the row have
// left.
void measure_categorical(std::span<const double> drawn, std::span<const DrawParameter> parameters,
                         DrawMeasurement& measured) {
  const auto categories = static_cast<std::size_t>(std::max(1.0, parameters[1].number));
  const bool replacement = parameters[2].number != 0;
  const std::size_t rows = std::max<std::size_t>(1, parameters[0].values.size() / categories);
  const std::size_t row = drawn.size() / rows;
  Sample sample(drawn.size());
  Uniformity uniformity;
  for (std::size_t i = 0; i < rows * row;) {
    Weights weights(parameters[0], i / row * categories, categories);
    for (const std::size_t end = i + row; i < end; ++i) {
      const double x = drawn[i];
      const auto noise = sample.noise(i);
      const bool inside = x >= 0 && x < static_cast<double>(categories) && x == std::floor(x);
      const auto category = inside ? static_cast<std::size_t>(x) : 0;
      const double weight = weights.at(category);
      if (!inside || weight == 0) {
        note_outside(measured, i, x);
        continue;
      }
      if (noise) {
        const double place = weights.before(category) + *noise * weight;
        uniformity.add(std::clamp(place / weights.before(categories), 0.0, 1.0), 0);
      }
      if (!replacement) weights.remove(category);
    }
  }
  uniformity.finish(measured);
}

void measure_permutation(std::span<const double> drawn, const DrawParameter& extent,
                         DrawMeasurement& measured) {
  const auto size = static_cast<std::size_t>(std::max(0.0, extent.number));
  std::vector<bool> seen(size);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const double x = drawn[i];
    const bool inside = x >= 0 && x < static_cast<double>(size) && x == std::floor(x);
    if (!inside || seen[static_cast<std::size_t>(x)]) {
      note_outside(measured, i, x);
      continue;
    }
    seen[static_cast<std::size_t>(x)] = true;
    measured.in_place += x == static_cast<double>(i) ? 1 : 0;
  }
}

// True for parameters that are one number for all draws.
bool is_number(DrawDistribution kind, std::size_t which) {
  switch (kind) {
    case DrawDistribution::permutation:
      return true;
    case DrawDistribution::kept:
      return which == 1;
    case DrawDistribution::either:
      return which == 2;
    case DrawDistribution::categorical:
      return which > 0;
    default:
      return false;
  }
}

bool whole_and_below(double x, std::size_t end) {
  return x >= 0 && x < static_cast<double>(end) && x == std::floor(x);
}

std::string groups_fault(const DrawParameter& groups, std::size_t count) {
  const bool sound = std::all_of(groups.values.begin(), groups.values.end(),
                                 [&](double group) { return whole_and_below(group, count); });
  return sound ? "" : "its groups are not whole numbers below the number of elements";
}

std::string categories_fault(std::span<const DrawParameter> parameters, std::size_t count) {
  const std::size_t weights = std::max<std::size_t>(1, parameters[0].values.size());
  const double categories = parameters[1].number;
  if (!whole_and_below(categories - 1, weights)) return "it has more categories than weights";
  const std::size_t rows = weights / static_cast<std::size_t>(categories);
  if (weights % static_cast<std::size_t>(categories) != 0) return "its last row is incomplete";
  return count % rows == 0 ? "" : "its draws are not whole rows";
}

}  // namespace

std::optional<DrawDistribution> find_distribution(std::string_view text) {
  for (const DistributionName& distribution : kDistributions) {
    if (distribution.name == text) return distribution.kind;
  }
  return std::nullopt;
}

std::string_view name(DrawDistribution kind) {
  return kDistributions[static_cast<std::size_t>(kind)].name;
}

std::size_t parameter_count(DrawDistribution kind) {
  return kDistributions[static_cast<std::size_t>(kind)].parameters;
}

std::string parameter_fault(DrawDistribution kind, std::span<const DrawParameter> parameters,
                            std::size_t count) {
  if (parameters.size() != parameter_count(kind)) return "it has the wrong number of parameters";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::size_t size = parameters[i].values.size();
    const bool rows = kind == DrawDistribution::categorical && i == 0;
    if (size == 0 || rows) continue;
    if (size != count) return "a parameter and the result differ in size";
    if (is_number(kind, i)) return "it has an array where a number is wanted";
  }
  switch (kind) {
    case DrawDistribution::kept:
      return groups_fault(parameters[2], count);
    case DrawDistribution::either:
      return groups_fault(parameters[3], count);
    case DrawDistribution::permutation:
      return parameters[0].number == static_cast<double>(count) ? "" : "its extent is not its size";
    case DrawDistribution::categorical:
      return categories_fault(parameters, count);
    default:
      return {};
  }
}

DrawMeasurement measure_draws(DrawDistribution kind, std::span<const double> drawn,
                              std::span<const DrawParameter> parameters, double resolution,
                              std::span<const std::size_t> rows) {
  DrawMeasurement measured;
  measured.count = drawn.size();
  switch (kind) {
    case DrawDistribution::anything:
      break;
    case DrawDistribution::kept:
    case DrawDistribution::either:
      return measure_choice(kind, drawn, parameters, resolution);
    case DrawDistribution::categorical:
      measure_categorical(drawn, parameters, measured);
      break;
    case DrawDistribution::permutation:
      measure_permutation(drawn, parameters[0], measured);
      break;
    default:
      measure_spread(kind, drawn, parameters, resolution, rows, measured);
      break;
  }
  return measured;
}

double resolution_of(DType dtype) {
  return visit(dtype, []<typename T>(Type<T>) {
    using Part = PartOf<T>;
    if constexpr (kIsFloat<Part>) {
      return std::ldexp(1, -Traits<Part>::kMantissa);
    } else {
      return 0.0;
    }
  });
}

}  // namespace assay
