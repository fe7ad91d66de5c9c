#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "timeline/importers/chrome_source.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

// "[TP01] 4711" has the label "[TP01] " and the number 4711; "rank1_0" has "rank1_" and 0.
std::pair<std::string, std::int64_t> parts_of(const std::string& process) {
  const std::size_t at = process.find_last_not_of("0123456789") + 1;
  return {process.substr(0, at), leading_number(std::string_view(process).substr(at))};
}

// Gives GPU work to the process that launched it. Correlations are unique only within a process.
class Owners {
 public:
  // `labels` are those of the trace's sources.
  Owners(Trace& trace, const std::vector<std::string>& labels) : trace_(trace), labels_(labels) {
    for (const Launch& launch : trace.launches) {
      launches_[launch.correlation].push_back({launch.begin, trace.tracks[launch.track].source});
    }
  }

  // A GPU belongs to the process that can have launched most of its work, in order where several
  // can. Where there are fewer GPUs than processes, each kernel is asked.
  void assign() {
    std::map<Gpu, std::map<std::uint32_t, std::size_t>> votes;
    each_work([&](Slice& slice) {
      auto& mine = votes[gpu_of(slice)];
      for (Candidate* one : candidates(slice)) ++mine[one->source];
    });
    std::map<std::uint32_t, std::int64_t> gpus;  // by source
    std::map<Gpu, std::uint32_t> owners;
    for (const auto& [gpu, mine] : votes) {
      const auto best = std::ranges::max_element(
          mine, {}, [&](const auto& vote) { return std::pair(vote.second, -gpus[vote.first]); });
      if (best == mine.end() || votes.size() < labels_.size()) continue;
      ++gpus[best->first];
      owners[gpu] = best->first;
    }
    each_work([&](Slice& slice) {
      if (const auto owner = owners.find(gpu_of(slice)); owner != owners.end()) {
        return give(slice, owner->second);
      }
      const auto all = candidates(slice);
      const auto one = std::ranges::min_element(all, {}, &Candidate::uses);
      if (one == all.end()) return;
      ++(*one)->uses;
      give(slice, (*one)->source);
    });
  }

 private:
  using Gpu = std::tuple<std::string, std::int64_t, std::int32_t>;  // label, process, device
  struct Candidate {
    Nanos begin = 0;
    std::uint32_t source = 0;
    std::size_t uses = 0;
  };

  template <typename Take>
  void each_work(Take take) {
    for (Slice& slice : trace_.slices) {
      if (trace_.tracks[slice.track].gpu && slice.detail != kNoIndex) take(slice);
    }
  }
  Gpu gpu_of(const Slice& slice) const {
    const Track& track = trace_.tracks[slice.track];
    const auto [label, number] = parts_of(track.process);
    return {label, number, track.device};
  }
  std::vector<Candidate*> candidates(const Slice& slice) {
    const auto known = launches_.find(trace_.details[slice.detail].correlation);
    std::vector<Candidate*> found;
    if (known == launches_.end()) return found;
    const std::string& label = labels_[trace_.tracks[slice.track].source];
    for (Candidate& one : known->second) {
      if (one.begin <= slice.begin && labels_[one.source] == label) found.push_back(&one);
    }
    return found;
  }
  // A stream with work of several processes becomes a track for each.
  void give(Slice& slice, std::uint32_t owner) {
    const auto [entry, is_new] = copies_.try_emplace({slice.track, owner}, slice.track);
    if (is_new && !settled_.insert(slice.track).second) {
      entry->second = static_cast<std::uint32_t>(trace_.tracks.size());
      trace_.tracks.push_back(Track(trace_.tracks[slice.track]));
    }
    trace_.tracks[entry->second].source = owner;
    slice.track = entry->second;
  }

  Trace& trace_;
  const std::vector<std::string>& labels_;
  std::unordered_map<std::uint64_t, std::vector<Candidate>> launches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> copies_;  // by track and source
  std::set<std::uint32_t> settled_;
};

}  // namespace

void split_processes(Trace& trace) {
  constexpr std::size_t kMostProcesses = 1024;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> source_of;
  for (const Launch& launch : trace.launches) {
    source_of[parts_of(trace.tracks[launch.track].process)] = 0;
  }
  if (source_of.size() < 2 || source_of.size() > kMostProcesses) return;
  trace.sources.assign(source_of.size(), trace.sources[0]);
  std::map<std::string, std::uint32_t> of_label;
  std::vector<std::string> labels;  // by source
  std::uint32_t source = 0;
  for (auto& [process, index] : source_of) {
    trace.sources[source].rank = kNone;
    trace.sources[source].pid = process.second;
    of_label.try_emplace(process.first, source);
    labels.push_back(process.first);
    index = source++;
  }
  for (Track& track : trace.tracks) {
    const auto process = parts_of(track.process);
    const auto known = source_of.find(process);
    track.source = known == source_of.end() ? of_label[process.first] : known->second;
  }
  Owners(trace, labels).assign();
}

}  // namespace assay::timeline
