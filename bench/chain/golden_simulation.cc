// How often the judge of goldens finds planted changes, and how often it blames an innocent build:
// simulated nights of simulated models.
//
//   golden_simulation [MODELS] [SEED] [SHARE]
//
// The noise of a metric has a part of the night (autocorrelated, shared by all runs of the night,
// SHARE of the variance, by default half) and a part of the run (Student's t with 5 degrees of
// freedom). A run may be an outlier, and its
// neighbours in that night are then likely to be outliers too. The environment moves now and then,
// for all builds. Every night has a new build. Reruns and runs of the baseline build are made as
// the judge asks for them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "chain/history/golden.h"

namespace {

using assay::chain::history::judge;
using assay::chain::history::Judgement;
using assay::chain::history::Kind;
using assay::chain::history::Observation;
using assay::chain::history::Purpose;
using assay::chain::history::rule_of;
using assay::chain::history::State;
using Random = std::mt19937_64;

// Deviations are fractions of the metric.
struct Noise {
  const char* name;
  Kind kind;
  double low;  // standard deviation of all noise: log-uniform over the models
  double high;
  double outliers;  // share of the nights with an outlier
  double largest;   // outlier
  double moves;     // share of the nights in which the environment moves
  double move;      // standard deviation of such a move
};

constexpr std::array kMetrics{
    Noise{"loss", Kind::loss, 0.0002, 0.003, 0.005, 0.05, 0.005, 0.005},
    Noise{"loss, last tenth", Kind::loss, 0.0005, 0.006, 0.005, 0.05, 0.005, 0.005},
    Noise{"ips", Kind::speed, 0.002, 0.01, 0.02, -0.3, 0.015, 0.02},
    Noise{"memory", Kind::memory, 0.0005, 0.01, 0.005, 0.1, 0.005, 0.03},
};
constexpr double kStays = 0.7;    // an outlier, for the next run of that night
constexpr double kReturns = 0.2;  // the same after a run that was none

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// One metric of one model.
class Source {
 public:
  Source(const Noise& noise, double share, Random& random)
      : noise_(noise),
        share_(share),
        sigma_(noise.low * std::pow(noise.high / noise.low, uniform(random, 0, 1))),
        rho_(uniform(random, 0.2, 0.6)) {}

  void begin_night(Random& random) {
    const double kick = std::normal_distribution<double>(0, std::sqrt(1 - rho_ * rho_))(random);
    night_ = rho_ * night_ + kick;
    if (uniform(random, 0, 1) < noise_.moves) {
      level_ += std::normal_distribution<double>(0, noise_.move)(random);
    }
    disturbed_ = outlier_ = uniform(random, 0, 1) < noise_.outliers;
  }

  double run(Random& random, double planted) {
    constexpr double kUnit = 0.7745966692;  // a t of 5 degrees with variance 1
    const double own = kUnit * std::student_t_distribution<double>(5)(random);
    double value =
        1 + level_ + sigma_ * (std::sqrt(share_) * night_ + std::sqrt(1 - share_) * own) + planted;
    if (outlier_) value += uniform(random, 0.1, 1) * noise_.largest;
    if (disturbed_) outlier_ = uniform(random, 0, 1) < (outlier_ ? kStays : kReturns);
    return 1000 * value;
  }

  double sigma() const { return sigma_; }
  Kind kind() const { return noise_.kind; }

 private:
  const Noise& noise_;
  double share_;
  double sigma_;
  double rho_;
  double night_ = 0;
  double level_ = 0;
  bool disturbed_ = false;  // this night
  bool outlier_ = false;    // the next run
};

struct Plant {
  std::size_t metric = kMetrics.size();  // none
  double size = 0;
  int night = -1;
};

struct Model {
  std::vector<Source> sources;
  std::vector<std::vector<Observation>> histories;
  int runs = 0;

  Model(double share, Random& random) : histories(kMetrics.size()) {
    for (const Noise& noise : kMetrics) sources.emplace_back(noise, share, random);
  }

  void add(Random& random, Purpose purpose, const std::string& build, const Plant* plant) {
    ++runs;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      // A shift of the loss is one of its end, too.
      const bool hit = plant != nullptr && (plant->metric == i || (plant->metric == 0 && i == 1));
      histories[i].push_back(
          {purpose, build, sources[i].run(random, hit ? plant->size : 0), false});
    }
  }

  // All runs of a night; the judgements after the last one.
  std::vector<Judgement> night(Random& random, int number, const Plant& plant) {
    const std::string build = std::to_string(number);
    const Plant* now = plant.night >= 0 && number >= plant.night ? &plant : nullptr;
    for (Source& source : sources) source.begin_night(random);
    add(random, Purpose::nightly, build, now);
    while (true) {
      std::vector<Judgement> all;
      const Judgement* asks = nullptr;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        all.push_back(judge(histories[i], rule_of(sources[i].kind())));
      }
      for (const Judgement& one : all) {
        const bool sooner = asks == nullptr || asks->next == Purpose::baseline;
        if (one.wanted > 0 && sooner) asks = &one;
      }
      if (asks == nullptr) return all;
      if (asks->next == Purpose::rerun) {
        add(random, Purpose::rerun, build, now);
      } else {
        // An older build has the planted change if it is not older than that.
        const bool has = now != nullptr && std::stoi(asks->baseline_build) >= plant.night;
        add(random, Purpose::baseline, asks->baseline_build, has ? now : nullptr);
      }
    }
  }
};

void simulate_quiet(int models, double share, Random& random) {
  constexpr int kNights = 100;
  int blamed = 0;
  int moved = 0;
  int runs = 0;
  int suspect = 0;
  std::array<int, kMetrics.size()> by_metric{};
  for (int i = 0; i < models; ++i) {
    Model model(share, random);
    std::vector<bool> known(kMetrics.size());
    for (int night = 0; night < kNights; ++night) {
      const int before = model.runs;
      const std::vector<Judgement> all = model.night(random, night, {});
      bool fresh = false;
      for (std::size_t m = 0; m < all.size(); ++m) {
        const bool bad = all[m].state == State::regression;
        if (bad && !known[m]) ++by_metric[m];
        fresh = fresh || (bad && !known[m]);
        known[m] = bad;
        if (all[m].state == State::environment) ++moved;
      }
      blamed += fresh ? 1 : 0;
      suspect += model.runs > before + 1 ? 1 : 0;
    }
    runs += model.runs;
  }
  const double nights = double(models) * kNights;
  fmt::print("no change planted: {:.0f} model-nights, {} blamed ({:.2f} in 1,000)", nights, blamed,
             1000 * blamed / nights);
  for (std::size_t m = 0; m < kMetrics.size(); ++m) {
    fmt::print("{}{} {}", m == 0 ? ": " : ", ", kMetrics[m].name, by_metric[m]);
  }
  fmt::print(
      "\n  {} moves of the environment seen as such; {:.1f}% of the nights needed more than one "
      "run; {:.2f} runs a night\n",
      moved, 100 * suspect / nights, runs / nights);
}

// How many models are blamed within three nights of a planted change, by the metric's noise.
void simulate_plant(const char* text, std::size_t metric, double size, int models, int past,
                    double share, Random& random) {
  struct Count {
    int found = 0;
    int all = 0;
  };
  std::array<Count, 3> counts;  // thirds of the noise
  std::array<int, 3> by_night{};
  for (int i = 0; i < models; ++i) {
    Model model(share, random);
    const Plant plant{metric, size, past};
    bool blamed_before = false;
    int found = -1;
    for (int night = 0; night < past + 3 && found < 0; ++night) {
      const std::vector<Judgement> all = model.night(random, night, plant);
      const bool bad = all[metric].state == State::regression ||
                       (metric == 0 && all[1].state == State::regression);
      if (bad && night < past) blamed_before = true;
      if (bad && night >= past) found = night - past;
    }
    if (blamed_before) continue;
    const Noise& noise = kMetrics[metric];
    const double rank =
        std::log(model.sources[metric].sigma() / noise.low) / std::log(noise.high / noise.low);
    Count& count = counts[std::min<std::size_t>(2, std::size_t(3 * rank))];
    ++count.all;
    if (found < 0) continue;
    ++count.found;
    ++by_night[std::size_t(found)];
  }
  const auto percent = [](int part, int whole) { return 100.0 * part / std::max(whole, 1); };
  const int found = counts[0].found + counts[1].found + counts[2].found;
  const int all = counts[0].all + counts[1].all + counts[2].all;
  fmt::print(
      "{} after {} nights: found within 3 nights {:.1f}% of {} (night 1 {:.1f}%, 2 {:.1f}%, "
      "3 {:.1f}%); by noise, low to high: {:.1f}%, {:.1f}%, {:.1f}%\n",
      text, past, percent(found, all), all, percent(by_night[0], all), percent(by_night[1], all),
      percent(by_night[2], all), percent(counts[0].found, counts[0].all),
      percent(counts[1].found, counts[1].all), percent(counts[2].found, counts[2].all));
}

}  // namespace

int main(int argc, char** argv) {
  const int models = argc > 1 ? std::atoi(argv[1]) : 1000;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const double share = argc > 3 ? std::strtod(argv[3], nullptr) : 0.5;
  simulate_quiet(models, share, random);
  for (const int past : {15, 40}) {
    simulate_plant("loss +1%", 0, 0.01, models, past, share, random);
    simulate_plant("ips -3%", 2, -0.03, models, past, share, random);
  }
}
