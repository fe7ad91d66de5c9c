#include "timeline/analysis/stage_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "base/fd.h"
#include "base/json.h"
#include "base/statistics.h"
#include "timeline/analysis/outliers.h"

namespace assay::timeline {
namespace {

constexpr std::string_view kMagic = "assay-stages ";
constexpr std::string_view kVersion = "2 ";
constexpr const char* kSuffix = ".stages";
constexpr std::string_view kOfHost = " host";
constexpr std::int64_t kWarmUp = 10;  // first steps, which are not compared
constexpr std::size_t kWindow = 32;   // steps
constexpr std::size_t kEvery = 4;     // steps between two judgements
constexpr std::size_t kLeast = 12;    // slow steps of a rank that is named
constexpr std::size_t kClean = 8;     // steps after which it is slow no longer

Nanos own(const StageTimes& times) {
  return std::accumulate(times.begin(), times.end(), Nanos{0}) - times[kWaiting];
}

// Whether the median excess is six times its standard error: with few ranks, each is the slower one
// in half of the steps.
bool certain(const std::vector<Series>& peers, std::size_t rank) {
  std::vector<double> excess;
  for (std::size_t step = 0; step < peers[rank].size(); ++step) {
    Series others;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (i != rank) others.push_back(peers[i][step]);
    }
    excess.push_back(static_cast<double>(peers[rank][step] - lower_median(std::move(others))));
  }
  const double middle = median_of(excess);
  for (double& one : excess) one = std::abs(one - middle);
  constexpr double kErrors = 6;
  constexpr double kErrorOfMedian = 1.86;  // of the median absolute deviation, by sqrt(n)
  const double error =
      kErrorOfMedian * median_of(excess) / std::sqrt(static_cast<double>(excess.size()));
  return middle > kErrors * error;
}

bool writer_ended(const Fd& file) { return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

}  // namespace

Result<std::vector<std::string>> StageWatch::look() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kSuffix) continue;
    ASSAY_CHECK(read(entry.path(), ranks_[entry.path().filename().string()]));
  }
  if (error)
    return usage_error(fmt::format("cannot read {}: {}", folder_.string(), error.message()));
  std::vector<std::string> lines;
  while (next_common(lines)) {
  }
  return lines;
}

Status StageWatch::read(const std::filesystem::path& path, Rank& rank) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return errno_error(path.string());
  // A rank that starts again writes its file anew.
  if (status.st_ino != rank.file || static_cast<std::uint64_t>(status.st_size) < rank.read) {
    rank = {};
    rank.file = status.st_ino;
  }
  rank.ended = writer_ended(file);
  std::array<char, 1U << 16U> buffer{};
  for (;;) {
    const ssize_t count =
        ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(rank.read));
    if (count < 0) return errno_error(path.string());
    if (count == 0) return {};
    rank.read += static_cast<std::uint64_t>(count);
    rank.rest.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rank.rest.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      ASSAY_CHECK(take(path, std::string_view(rank.rest).substr(begin, end - begin), rank));
    }
    rank.rest.erase(0, begin);
  }
}

Status StageWatch::take(const std::filesystem::path& path, std::string_view line, Rank& rank) {
  if (line.starts_with(kMagic)) {
    line.remove_prefix(kMagic.size());
    if (!line.starts_with(kVersion)) {
      return usage_error(fmt::format("{}: written by another version of assay ({}…)", path.string(),
                                     line.substr(0, line.find(' '))));
    }
    const auto head = parse_json(line.substr(kVersion.size()));
    const auto number = head.is_object() ? head.find("rank") : head.end();
    if (number != head.end() && number->is_number_integer()) rank.number = *number;
    return {};
  }
  Measured one;
  one.of_host = line.ends_with(kOfHost);
  if (one.of_host) line.remove_suffix(kOfHost.size());
  const char* at = line.data();
  const char* const end = at + line.size();
  bool good = true;
  const auto number = [&](std::int64_t& value) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50U;
    const auto [behind, error] = std::from_chars(at, end, value);
    good &= error == std::errc() && value >= 0 && value < kMost;
    at = behind < end ? behind + 1 : end;
  };
  number(one.step);
  for (Nanos& time : one.times) {
    number(time);
    time *= 1000;
  }
  number(one.loading);
  one.loading *= 1000;
  good &= at == end && (rank.steps == 0 || one.step > rank.last);
  if (!good) {
    ++malformed_;
    return {};
  }
  if (++rank.steps == 2) rank.total = {};
  if (rank.steps == 1) rank.first = one.step;
  const Nanos steps = rank.steps == 1 ? 1 : one.step - rank.last;
  for (std::size_t i = 0; i < one.times.size(); ++i) rank.total[i] += steps * one.times[i];
  rank.last = one.step;
  if (rank.number != kNone && one.step - rank.first >= kWarmUp) rank.pending.push_back(one);
  return {};
}

// Moves the next step that all ranks have measured into the windows.
bool StageWatch::next_common(std::vector<std::string>& lines) {
  std::size_t most = 0;
  for (const auto& [name, rank] : ranks_) most = std::max(most, rank.pending.size());
  std::vector<Rank*> ranks;
  for (auto& [name, rank] : ranks_) {
    const bool left = rank.ended && rank.pending.empty() && most > kWindow;  // the others go on
    if (rank.number != kNone && !left) ranks.push_back(&rank);
  }
  std::ranges::sort(ranks, {}, &Rank::number);
  if (ranks.size() < 2) return false;
  for (;;) {
    std::int64_t latest = 0;
    for (const Rank* rank : ranks) {
      if (rank->pending.empty()) return false;
      latest = std::max(latest, rank->pending.front().step);
    }
    bool common = true;
    for (Rank* rank : ranks) {
      while (!rank->pending.empty() && rank->pending.front().step < latest) {
        rank->pending.pop_front();
      }
      common &= !rank->pending.empty() && rank->pending.front().step == latest;
    }
    if (!common) continue;
    std::vector<std::int32_t> numbers;
    std::vector<Measured> step;
    for (Rank* rank : ranks) {
      numbers.push_back(rank->number);
      step.push_back(rank->pending.front());
      rank->pending.pop_front();
    }
    if (numbers != numbers_) {
      work_.steps.clear();
      loading_.steps.clear();
    }
    numbers_ = std::move(numbers);
    const bool of_host = std::ranges::any_of(step, &Measured::of_host);
    if (!of_host) {
      Common one{latest, {}};
      for (const Measured& rank : step) one.times.push_back(rank.times);
      add(work_, std::move(one), lines);
    }
    of_hosts_ += of_host ? 1 : 0;
    add(loading_, {latest, of_loading(step, of_host)}, lines);
    return true;
  }
}

// Where a GPU waits for its host, one of equal hosts is the last, for which all others wait: of the
// own time that a rank has beyond the others', only what it has loaded longer counts.
std::vector<StageTimes> StageWatch::of_loading(const std::vector<Measured>& step, bool of_host) {
  Series owns;
  Series loads;
  for (const Measured& rank : step) {
    owns.push_back(own(rank.times));
    loads.push_back(rank.loading);
  }
  const Nanos usual = lower_median(owns);
  const Nanos usual_load = lower_median(loads);
  std::vector<StageTimes> times(step.size());
  for (std::size_t i = 0; i < step.size(); ++i) {
    const Nanos longer = of_host ? std::max(Nanos{0}, loads[i] - usual_load) : 0;
    times[i][kLoading] = std::min(owns[i], usual + longer);
    times[i][kWaiting] = owns[i] + step[i].times[kWaiting] - times[i][kLoading];
  }
  return times;
}

void StageWatch::add(Window& window, Common step, std::vector<std::string>& lines) {
  window.steps.push_back(std::move(step));
  if (window.steps.size() > kWindow) window.steps.pop_front();
  if (++window.judged % kEvery == 0) judge(window, lines);
}

void StageWatch::judge(Window& window, std::vector<std::string>& lines) {
  std::vector<Series> peers(numbers_.size());
  Series totals;
  for (const Common& one : window.steps) {
    for (std::size_t i = 0; i < peers.size(); ++i) peers[i].push_back(own(one.times[i]));
    totals.push_back(own(one.times[0]) + one.times[0][kWaiting]);
  }
  const std::size_t count = window.steps.size();
  std::set<std::int32_t> late;
  const std::vector<std::size_t> kinds(count);  // all steps do the same work
  for (const auto& [peer, excess] : outliers(peers, lower_median(std::move(totals)), kinds)) {
    if (!excess.lasting || excess.steps.back() + kClean < count) continue;
    const std::int32_t rank = numbers_[peer];
    late.insert(rank);
    const bool is_new = excess.steps.size() >= kLeast && excess.steps.back() + kEvery >= count;
    if (window.slow.contains(rank) || !is_new || !certain(peers, peer)) continue;
    window.slow[rank] = window.steps[excess.steps.front()].step;
    lines.push_back(describe(window, peer, window.slow[rank]));
  }
  std::erase_if(window.slow, [&](const auto& one) {
    if (late.contains(one.first)) return false;
    if (!std::ranges::binary_search(numbers_, one.first)) return true;
    lines.push_back(fmt::format("step {}: rank {} is no longer slow (it was since step {})",
                                window.steps.back().step, one.first, one.second));
    return true;
  });
}

std::string StageWatch::describe(const Window& window, std::size_t rank, std::int64_t since) const {
  // The median of a time over the steps since then, of the rank and of the others.
  const auto compare = [&](const auto& time) {
    Series mine;
    Series others;
    for (const Common& one : window.steps) {
      if (one.step < since) continue;
      for (std::size_t i = 0; i < one.times.size(); ++i) {
        (i == rank ? mine : others).push_back(time(one.times[i]));
      }
    }
    return std::pair(lower_median(std::move(mine)), lower_median(std::move(others)));
  };
  std::size_t worst = 0;
  Nanos most = 0;
  for (std::size_t stage = 0; stage < kStageNames.size(); ++stage) {
    const auto [mine, others] = compare([&](const StageTimes& times) { return times[stage]; });
    if (stage == kWaiting || mine - others <= most) continue;
    most = mine - others;
    worst = stage;
  }
  const auto [mine, others] = compare(own);
  const auto waits = compare([](const StageTimes& times) { return times[kWaiting]; });
  return fmt::format(
      "step {}: rank {} is slow since step {}: its own work takes {:.1f} ms a step, most of the "
      "excess in {}; the others take {:.1f} ms and wait {:.1f} ms",
      window.steps.back().step, numbers_[rank], since, millis(mine), kStageNames[worst],
      millis(others), millis(waits.second));
}

void StageWatch::clean(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const Fd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (entry.path().extension() == kSuffix && file && writer_ended(file)) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

bool StageWatch::ended() const {
  return any() && std::ranges::all_of(ranks_, [](const auto& one) { return one.second.ended; });
}

std::string StageWatch::table() const {
  std::vector<std::pair<std::int32_t, const Rank*>> ranks;
  ranks.reserve(ranks_.size());
  for (const auto& [name, rank] : ranks_) ranks.emplace_back(rank.number, &rank);
  std::ranges::sort(ranks);
  std::string text = fmt::format("{:<6}{:>9}{:>12}", "rank", "measured", "own ms");
  for (const std::string_view name : kStageNames) text += fmt::format("{:>14}", name);
  text += '\n';
  for (const auto& [number, rank] : ranks) {
    const double steps = static_cast<double>(std::max<std::int64_t>(1, rank->last - rank->first));
    text += fmt::format("{:<6}{:>9}{:>12.1f}", number == kNone ? "?" : std::to_string(number),
                        rank->steps, millis(own(rank->total)) / steps);
    for (const Nanos total : rank->total) text += fmt::format("{:>14.1f}", millis(total) / steps);
    text += '\n';
  }
  if (of_hosts_ > 0) {
    text += fmt::format(
        "in {} of {} steps a GPU waited for its host: only data loading is compared in them\n",
        of_hosts_, loading_.judged);
  }
  if (malformed_ > 0) text += fmt::format("{} malformed lines are left out\n", malformed_);
  return text;
}

}  // namespace assay::timeline
