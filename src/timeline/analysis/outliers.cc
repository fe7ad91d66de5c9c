#include "timeline/analysis/outliers.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/statistics.h"

namespace assay::timeline {
namespace {

// Splits the steps with more than `least` into runs of three and more, in which three of four steps
// are such, and the rest, which must exceed `most`.
std::vector<Excess> spells_of(const Series& excess, Nanos least, Nanos most) {
  std::vector<Excess> found;
  std::vector<std::size_t> single;
  const std::size_t count = excess.size();
  for (std::size_t begin = 0; begin < count;) {
    if (excess[begin] <= least) {
      ++begin;
      continue;
    }
    std::vector<std::size_t> run;
    for (std::size_t step = begin; step < count; ++step) {
      if (excess[step] <= least) continue;
      if (4 * (run.size() + 1) < 3 * (step - begin + 1)) break;
      run.push_back(step);
    }
    if (run.size() >= std::min<std::size_t>(3, count)) {
      begin = run.back() + 1;
      found.push_back(excess_in(excess, std::move(run), true));
    } else {
      if (excess[begin] > most) single.push_back(begin);
      ++begin;
    }
  }
  if (!single.empty()) found.push_back(excess_in(excess, std::move(single), false));
  return found;
}

}  // namespace

Excess excess_in(const Series& excess, std::vector<std::size_t> steps, bool lasting) {
  Nanos sum = 0;
  for (const std::size_t step : steps) sum += excess[step];
  return {sum / static_cast<Nanos>(steps.size()), std::move(steps), lasting};
}

Series usual_of(const Series& times, const std::vector<std::size_t>& kinds) {
  std::map<std::size_t, Series> of_kind;
  for (std::size_t step = 0; step < times.size(); ++step)
    of_kind[kinds[step]].push_back(times[step]);
  std::map<std::size_t, Nanos> medians;
  for (auto& [kind, all] : of_kind) medians[kind] = lower_median(std::move(all));
  Series usual;
  for (const std::size_t kind : kinds) usual.push_back(medians[kind]);
  return usual;
}

std::vector<std::pair<std::size_t, Excess>> outliers(const std::vector<Series>& peers, Nanos step,
                                                     const std::vector<std::size_t>& kinds) {
  constexpr Nanos kSpreads = 6;
  const bool itself = peers.size() == 1;
  const Series own = itself ? usual_of(peers[0], kinds) : Series();
  std::vector<Series> all = peers;
  for (std::size_t step_at = 0; !peers.empty() && step_at < peers[0].size(); ++step_at) {
    Series here;
    for (const Series& peer : peers) here.push_back(peer[step_at]);
    const Nanos usual = itself ? own[step_at] : lower_median(std::move(here));
    for (Series& excess : all) excess[step_at] -= usual;
  }
  std::vector<std::pair<std::size_t, Excess>> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Series others;
    for (std::size_t other = 0; other < all.size(); ++other) {
      if (other == i && !itself) continue;
      for (const Nanos one : all[other]) others.push_back(std::abs(one));
    }
    const Nanos spread = kSpreads * lower_median(std::move(others));
    const Nanos most = std::max(step / 10, spread);
    for (Excess& one : spells_of(all[i], itself ? most : std::max(step / 30, spread), most)) {
      found.emplace_back(i, std::move(one));
    }
  }
  return found;
}

}  // namespace assay::timeline
