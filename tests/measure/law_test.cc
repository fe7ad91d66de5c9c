// Samples that keep to their law pass for every seed; samples of a law that is a little wrong, and
// values that cannot be, do not. The samples come from <random>, which knows nothing of assay.

#include "measure/law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "buffers.h"

namespace assay {
namespace {

using Engine = std::mt19937_64;
using Sampler = std::function<double(Engine&)>;

std::vector<double> draw(std::size_t count, unsigned seed, const Sampler& sampler) {
  Engine engine(seed);
  std::vector<double> samples(count);
  for (double& sample : samples) sample = sampler(engine);
  return samples;
}

template <typename D>
Sampler of(D distribution) {
  return
      [distribution](Engine& engine) mutable { return static_cast<double>(distribution(engine)); };
}

LawParameter array(DType dtype, const Bytes& bytes) {
  return {.number = 0, .dtype = dtype, .array = bytes};
}
Law law(LawKind kind, double first = 0, double second = 0) {
  Law made;
  made.kind = kind;
  made.first.number = first;
  made.second.number = second;
  return made;
}

LawMeasurement judge(const Law& promised, DType dtype, const std::vector<double>& samples) {
  return measure_law(promised, dtype, buffer(dtype, samples));
}

struct Promise {
  const char* name;
  Law law;
  Sampler right;
  Sampler wrong;  // off by a few percent
};

// Law by law, with parameters where it is easy and where it is not.
std::vector<Promise> promises() {
  using K = LawKind;
  const auto scaled = [](const Sampler& sampler, double by) {
    return Sampler([=](Engine& e) { return sampler(e) * by; });
  };
  const auto normal = of(std::normal_distribution(0.0, 1.0));
  const auto cauchy = of(std::cauchy_distribution(1.0, 2.0));
  return {
      {"uniform", law(K::uniform, -1, 3), of(std::uniform_real_distribution(-1.0, 3.0)),
       of(std::uniform_real_distribution(-1.0, 2.9))},
      {"normal", law(K::normal, 0, 1), normal, of(std::normal_distribution(0.05, 1.0))},
      {"normal, wide", law(K::normal, 0, 1), normal, scaled(normal, 1.05)},
      {"normal, shaped", law(K::normal, 0, 1), normal,
       of(std::uniform_real_distribution(-1.732, 1.732))},
      {"bernoulli", law(K::bernoulli, 0.3), of(std::bernoulli_distribution(0.3)),
       of(std::bernoulli_distribution(0.32))},
      {"bernoulli, rare", law(K::bernoulli, 0.001), of(std::bernoulli_distribution(0.001)),
       of(std::bernoulli_distribution(0.02))},
      {"integers", law(K::integers, -3, 7), of(std::uniform_int_distribution(-3, 6)),
       of(std::uniform_int_distribution(-3, 5))},
      {"exponential", law(K::exponential, 2), of(std::exponential_distribution(2.0)),
       of(std::exponential_distribution(2.1))},
      {"poisson", law(K::poisson, 3.5), of(std::poisson_distribution(3.5)),
       of(std::poisson_distribution(3.6))},
      {"poisson, small", law(K::poisson, 0.1), of(std::poisson_distribution(0.1)),
       of(std::poisson_distribution(0.12))},
      {"geometric", law(K::geometric, 0.25, 0), of(std::geometric_distribution(0.25)),
       of(std::geometric_distribution(0.26))},
      {"log normal", law(K::log_normal, 0.5, 0.7), of(std::lognormal_distribution(0.5, 0.7)),
       of(std::lognormal_distribution(0.5, 0.74))},
      {"cauchy", law(K::cauchy, 1, 2), cauchy, of(std::cauchy_distribution(1.2, 2.0))},
      {"gamma", law(K::gamma, 2.5, 2), of(std::gamma_distribution(2.5, 0.5)),
       of(std::gamma_distribution(2.5, 0.52))},
      {"gamma, small shape", law(K::gamma, 0.3, 1), of(std::gamma_distribution(0.3, 1.0)),
       of(std::gamma_distribution(0.32, 1.0))},
      {"binomial", law(K::binomial, 12, 0.4), of(std::binomial_distribution(12, 0.4)),
       of(std::binomial_distribution(12, 0.41))},
  };
}

TEST(Law, HoldsForSamplesOfItInEveryDtype) {
  for (const Promise& promise : promises()) {
    for (const DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
      for (unsigned seed = 0; seed < 5; ++seed) {
        const std::size_t count = std::size_t{1} << seed % 16;
        const auto m = judge(promise.law, dtype, draw(count, seed, promise.right));
        ASSERT_TRUE(law_holds(m)) << promise.name << " in " << name(dtype) << ", " << count
                                  << " samples: out " << m.out_of_support << " mean " << m.mean_z
                                  << " variance " << m.variance_z << " ks " << m.ks;
        EXPECT_EQ(m.judged, count);
      }
    }
  }
}

TEST(Law, FailsForSamplesOfALawThatIsALittleWrong) {
  for (const Promise& promise : promises()) {
    for (unsigned seed = 0; seed < 3; ++seed) {
      const auto m = judge(promise.law, DType::float32, draw(200000, seed, promise.wrong));
      EXPECT_FALSE(law_holds(m)) << promise.name << ": mean " << m.mean_z << " variance "
                                 << m.variance_z << " ks " << m.ks;
    }
  }
}

// Without a limit on the error's rate the tests above would prove little: the statistics of right
// samples must also look as they should, or the thresholds would be idle.
TEST(Law, StatisticsHaveTheScaleThatTheBoundsAssume) {
  for (const Promise& promise : promises()) {
    double mean = 0;
    double variance = 0;
    double ks = 0;
    constexpr unsigned kSeeds = 200;
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      const auto m = judge(promise.law, DType::float64, draw(1000, seed, promise.right));
      mean += m.mean_z * m.mean_z / kSeeds;
      variance += m.variance_z * m.variance_z / kSeeds;
      ks += m.ks / kSeeds;
    }
    // Means of 200 squares of standard normal variables: 1 ± 0.1; Kolmogorov's mean is 0.869.
    EXPECT_NEAR(mean, 1, 0.5) << promise.name;
    EXPECT_NEAR(variance, 1, 0.5) << promise.name;
    EXPECT_NEAR(ks, 0.86, 0.1) << promise.name;
  }
}

TEST(Law, CoarseSamplersArePassedAsRounding) {
  // As torch and paddle draw bfloat16 in [0, 1): eight random bits, cut and not rounded.
  const auto cut = [](Engine& e) { return static_cast<double>(e() % 256) / 256; };
  EXPECT_TRUE(
      law_holds(judge(law(LawKind::uniform, 0, 1), DType::bfloat16, draw(1000000, 1, cut))));
  // Rounded up to the open end of the range.
  const auto m = judge(law(LawKind::uniform, 0, 1), DType::bfloat16, {1.0, 0.999});
  EXPECT_TRUE(law_holds(m));
  EXPECT_FALSE(law_holds(judge(law(LawKind::uniform, 0, 1), DType::bfloat16, {1.02})));
  // Large counts in float16 are even numbers; of a heavy tail the end is infinity.
  const auto counts = draw(100000, 2, of(std::poisson_distribution(3000.0)));
  EXPECT_TRUE(law_holds(judge(law(LawKind::poisson, 3000), DType::float16, counts)));
  EXPECT_TRUE(law_holds(judge(law(LawKind::cauchy, 0, 1), DType::float16, {kInf, -kInf, 1})));
  EXPECT_FALSE(law_holds(judge(law(LawKind::cauchy, 0, 1), DType::float32, {kInf, 1})));
  EXPECT_FALSE(law_holds(judge(law(LawKind::normal, 0, 1), DType::float16, {kInf, 1})));
}

TEST(Law, ValuesOutsideTheSupportAreFound) {
  using K = LawKind;
  const auto first_out = [](const Law& promised, const std::vector<double>& samples) {
    const auto m = judge(promised, DType::float32, samples);
    EXPECT_FALSE(law_holds(m));
    return m.first_out_index;
  };
  EXPECT_EQ(first_out(law(K::uniform, 0, 1), {0.5, 0.2, 1.1, -1}), 2U);
  EXPECT_EQ(first_out(law(K::normal, 0, 1), {0.5, kNan}), 1U);
  EXPECT_EQ(first_out(law(K::bernoulli, 0.5), {0, 1, 0.5}), 2U);
  EXPECT_EQ(first_out(law(K::bernoulli, 0), {0, 1}), 1U);
  EXPECT_EQ(first_out(law(K::integers, 0, 5), {4, 5}), 1U);
  EXPECT_EQ(first_out(law(K::exponential, 1), {1, -1}), 1U);
  EXPECT_EQ(first_out(law(K::poisson, 1), {0, 1, 2.5}), 2U);
  EXPECT_EQ(first_out(law(K::geometric, 0.5, 1), {1, 0}), 1U);
  EXPECT_EQ(first_out(law(K::binomial, 3, 0.5), {3, 4}), 1U);
  EXPECT_EQ(first_out(law(K::normal, 2, 0), {2, 2.1}), 1U);
}

TEST(Law, ParametersMayDifferFromElementToElement) {
  constexpr std::size_t kCount = 50000;
  Engine engine(1);
  std::vector<double> p(kCount);
  std::vector<double> right(kCount);
  std::vector<double> wrong(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    p[i] = std::uniform_real_distribution(0.0, 1.0)(engine);
    right[i] = std::bernoulli_distribution(static_cast<float>(p[i]))(engine);
    wrong[i] = std::bernoulli_distribution(0.5)(engine);  // right on average only
  }
  const Bytes parameters = buffer(DType::float32, p);
  Law promised = law(LawKind::bernoulli);
  promised.first = array(DType::float32, parameters);
  EXPECT_TRUE(law_holds(judge(promised, DType::float32, right)));
  EXPECT_FALSE(law_holds(judge(promised, DType::float32, wrong)));
}

TEST(Law, AnythingGoesForUninitialisedMemory) {
  EXPECT_TRUE(law_holds(judge(law(LawKind::anything), DType::float32, {kNan, 1, kInf})));
}

TEST(Law, TheSampleOfManyIsJudgedAndAllAreLookedAt) {
  std::vector<double> samples(3 * kLawSamples, 0.0);
  Engine engine(3);
  for (double& sample : samples) sample = static_cast<double>(engine() >> 11) * 0x1p-53;
  auto m = judge(law(LawKind::uniform, 0, 1), DType::float32, samples);
  EXPECT_TRUE(law_holds(m));
  EXPECT_EQ(m.judged, kLawSamples);
  samples[123457] = 2;
  m = judge(law(LawKind::uniform, 0, 1), DType::float32, samples);
  EXPECT_EQ(m.first_out_index, 123457U);
}

struct Dropout {
  std::vector<double> values;
  std::vector<double> result;
};

// `run` elements share a draw.
Dropout dropout(std::size_t count, double keep, unsigned seed, std::size_t run = 1) {
  Dropout made;
  Engine engine(seed);
  std::bernoulli_distribution coin(keep);
  bool kept = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % run == 0) kept = coin(engine);
    made.values.push_back(i % 50 == 0 ? 0 : std::normal_distribution()(engine) / keep);
    made.result.push_back(kept ? made.values.back() : 0);
  }
  return made;
}

LawMeasurement judge(const Dropout& made, double keep, std::uint64_t run = 1,
                     std::uint64_t independent = 0) {
  const Bytes values = buffer(DType::float32, made.values);
  Law promised = law(LawKind::kept, 0, keep);
  promised.first = array(DType::float32, values);
  promised.run = run;
  promised.independent = independent;
  return judge(promised, DType::float32, made.result);
}

TEST(Kept, HoldsForTheRightShare) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto made = dropout(1 + seed * 7, 0.9, seed);
    const auto m = judge(made, 0.9);
    ASSERT_TRUE(law_holds(m)) << seed << ": " << m.kept_count << " of " << m.draws;
  }
  EXPECT_TRUE(law_holds(judge(dropout(1000, 1, 1), 1)));
}

TEST(Kept, FailsForAnotherShareOrAnotherValue) {
  EXPECT_FALSE(law_holds(judge(dropout(100000, 0.9, 1), 0.88)));
  EXPECT_FALSE(law_holds(judge(dropout(100000, 0.1, 1), 0.9)));
  EXPECT_FALSE(law_holds(judge(dropout(1000, 0.9, 1), 1)));
  auto scaled = dropout(1000, 0.5, 1);
  for (double& value : scaled.result) value *= 0.5;  // the scale forgotten
  const auto m = judge(scaled, 0.5);
  EXPECT_FALSE(law_holds(m));
  EXPECT_GT(m.out_of_support, 300U);
}

TEST(Kept, WholeRunsAreOneDraw) {
  const auto made = dropout(64 * 100, 0.5, 3, 100);
  const auto m = judge(made, 0.5, 100);
  EXPECT_TRUE(law_holds(m));
  EXPECT_EQ(m.draws, 64U);
  // Judged element by element the same samples are far off, or mixed where runs are longer.
  auto unlucky = dropout(6400, 0.5, 0, 3200);
  std::copy_n(unlucky.values.begin(), 3200, unlucky.result.begin());
  std::fill(unlucky.result.begin() + 3200, unlucky.result.end(), 0.0);
  EXPECT_FALSE(law_holds(judge(unlucky, 0.5, 6400)));  // one draw did both
  EXPECT_TRUE(law_holds(judge(unlucky, 0.5, 3200)));
  std::copy(unlucky.values.begin(), unlucky.values.end(), unlucky.result.begin());
  EXPECT_FALSE(law_holds(judge(unlucky, 0.5)));
  EXPECT_TRUE(law_holds(judge(unlucky, 0.5, 1, 2)));  // two draws in all: both may be kept
}

TEST(Permutation, HoldsEachNumberOnceAndInAnotherOrder) {
  std::vector<double> order(500);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_FALSE(law_holds(judge(law(LawKind::permutation), DType::int64, order)));  // not moved
  for (unsigned seed = 0; seed < 300; ++seed) {
    Engine engine(seed);
    std::shuffle(order.begin(), order.end(), engine);
    ASSERT_TRUE(law_holds(judge(law(LawKind::permutation), DType::int64, order)));
  }
  order[7] = order[8];
  const auto m = judge(law(LawKind::permutation), DType::int64, order);
  EXPECT_FALSE(law_holds(m));
  EXPECT_EQ(m.first_out_index, 8U);
  EXPECT_FALSE(law_holds(judge(law(LawKind::permutation), DType::int64, {0, 1, 3})));
  EXPECT_TRUE(law_holds(judge(law(LawKind::permutation), DType::int64, {0, 1, 2})));  // may be
  Law rows = law(LawKind::permutation);
  rows.run = 3;
  EXPECT_TRUE(law_holds(judge(rows, DType::int64, {0, 2, 1, 1, 0, 2})));
  EXPECT_FALSE(law_holds(judge(rows, DType::int64, {0, 2, 1, 1, 3, 2})));
}

TEST(Shuffled, HoldsTheSameRows) {
  constexpr std::size_t kRow = 4;
  std::vector<double> values(400);
  std::iota(values.begin(), values.end(), 0);
  const Bytes before = buffer(DType::float32, values);
  Law promised = law(LawKind::shuffled);
  promised.first = array(DType::float32, before);
  promised.run = kRow;
  std::vector<double> moved;
  for (std::size_t row = 0; row < 100; ++row) {
    const auto from = values.begin() + static_cast<long>((row * 37 + 5) % 100 * kRow);
    moved.insert(moved.end(), from, from + kRow);
  }
  EXPECT_TRUE(law_holds(judge(promised, DType::float32, moved)));
  EXPECT_FALSE(law_holds(judge(promised, DType::float32, values)));  // not shuffled at all
  std::swap(moved[40], moved[44]);                                   // two rows torn
  const auto m = judge(promised, DType::float32, moved);
  EXPECT_EQ(m.out_of_support, 2U);
  EXPECT_EQ(m.first_out_index, 10U);
  EXPECT_FALSE(law_holds(m));
  const Bytes same = buffer(DType::float32, std::vector<double>(400, 1.0));
  promised.first = array(DType::float32, same);
  EXPECT_TRUE(law_holds(judge(promised, DType::float32, std::vector<double>(400, 1.0))));
}

}  // namespace
}  // namespace assay
