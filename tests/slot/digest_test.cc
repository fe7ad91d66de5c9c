// Digests of large results: faults that are planted show, and right results raise no alarm.

#include "slot/digest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace assay {
namespace {

using Floats = std::vector<float>;

constexpr int kRounds = 200;
constexpr double kBarUlps = 8;  // a right result is within 8 ulps

double ulp(float value) { return std::abs(std::nextafter(value, INFINITY) - value); }

std::span<const std::byte> bytes(const Floats& values) { return std::as_bytes(std::span(values)); }

// Whether the digest of `reference` shows that `test` is not it.
bool shows(const Floats& reference, const Floats& test, std::uint64_t seed) {
  const DigestPlan plan(DType::float32, reference.size(), wire::Equality::value, seed, "[0]");
  std::vector<double> errors;
  for (const float value : reference) errors.push_back(kBarUlps * ulp(value));
  for (std::uint64_t sample = 0; sample < kDigestSamples; ++sample) {
    const std::uint64_t at = plan.position(sample);
    if (!(std::abs(double{test[at]} - double{reference[at]}) <= errors[at])) return true;
  }
  const std::vector<double> limits = plan.tolerances(errors);
  const std::vector<double> expected = plan.sums(bytes(reference));
  const std::vector<double> found = plan.sums(bytes(test));
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (std::abs(found[i] - expected[i]) > limits[i]) return true;
  }
  return false;
}

// The share of rounds in which a result with this fault passes. A right result differs from the
// reference by up to 2 ulps in each element.
double missed(std::size_t size, const std::function<void(Floats&, std::mt19937_64&)>& plant) {
  int passes = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::mt19937_64 random(static_cast<std::uint64_t>(round) * 1000 + size);
    std::normal_distribution<float> value;
    std::uniform_int_distribution<int> rounding(-2, 2);
    Floats reference(size);
    Floats test(size);
    for (std::size_t i = 0; i < size; ++i) {
      reference[i] = value(random);
      test[i] = reference[i] + static_cast<float>(rounding(random) * ulp(reference[i]));
    }
    plant(test, random);
    passes += shows(reference, test, static_cast<std::uint64_t>(round)) ? 0 : 1;
  }
  return static_cast<double>(passes) / kRounds;
}

void one_by(double share, Floats& test, std::mt19937_64& random) {
  float& value = test[random() % test.size()];
  value = static_cast<float>(value * (1 + share));
}

TEST(Digest, RightResultsRaiseNoAlarm) {
  for (const std::size_t size : {200UL, 10'000UL, 100'000UL}) {
    EXPECT_EQ(missed(size, [](Floats&, std::mt19937_64&) {}), 1) << size;
  }
}

// The figures of docs/reference/goldens.md.
TEST(Digest, PlantedFaultsShow) {
  struct Fault {
    const char* name;
    std::function<void(Floats&, std::mt19937_64&)> plant;
    double most;  // missed, at 100,000 elements
  };
  const std::vector<Fault> faults{
      {"one element of another sign",
       [](Floats& test, std::mt19937_64& random) { one_by(-2, test, random); }, 0.01},
      {"one element NaN",
       [](Floats& test, std::mt19937_64& random) { test[random() % test.size()] = NAN; }, 0.01},
      {"one element off by 1%",
       [](Floats& test, std::mt19937_64& random) { one_by(0.01, test, random); }, 0.1},
      {"0.1% of elements off by 1%",
       [](Floats& test, std::mt19937_64& random) {
         for (std::size_t i = 0; i < test.size() / 1000; ++i) one_by(0.01, test, random);
       },
       0.01},
      {"all off by 16 ulps",
       [](Floats& test, std::mt19937_64&) {
         for (float& value : test) value += static_cast<float>(16 * ulp(value));
       },
       0},
  };
  for (const Fault& fault : faults) {
    for (const std::size_t size : {1'000UL, 100'000UL}) {
      const double share = missed(size, fault.plant);
      fmt::print("{:>7} elements, {}: {:.1f}% missed\n", size, fault.name, 100 * share);
      EXPECT_LE(share, fault.most) << fault.name << size;
    }
  }
}

TEST(Digest, PositionsLieInTheTensorAndDependOnTheSeed) {
  const DigestPlan one(DType::float32, 1000, wire::Equality::value, 1, "[0]");
  const DigestPlan other(DType::float32, 1000, wire::Equality::value, 2, "[0]");
  int same = 0;
  for (std::uint64_t sample = 0; sample < kDigestSamples; ++sample) {
    EXPECT_LT(one.position(sample), 1000);
    same += one.position(sample) == other.position(sample) ? 1 : 0;
  }
  EXPECT_LT(same, 16);
}

}  // namespace
}  // namespace assay
