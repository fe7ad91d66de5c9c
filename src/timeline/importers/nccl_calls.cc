#include "timeline/importers/nccl_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/text.h"

namespace assay::timeline {
std::int64_t nccl_bytes(const std::string& function, std::int64_t bytes, std::int32_t ranks) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60U;
  if (bytes < 0 || bytes > kMost) return kNone;
  if (function != "AllGather" && function != "ReduceScatter") return bytes;
  return ranks > 0 && bytes <= kMost / ranks ? bytes * ranks : kNone;
}

void NcclCalls::find_ranks() {
  std::set<std::int32_t> ranks;
  for (const NcclCall& call : calls_) largest_ = std::max(largest_, call.ranks);
  for (const NcclCall& call : calls_) {
    if (call.ranks == largest_) ranks.insert(call.rank);
  }
  if (ranks.size() == 1) rank_ = *ranks.begin();
}

std::int32_t NcclCalls::rank_of(const NcclCall& call) const {
  return rank_ != kNone ? rank_ : call.rank;
}

// A communicator numbers its calls by function, so a gap is a call that the plug-in left out.
void NcclCalls::note_missing() {
  std::map<std::tuple<std::string, std::string, std::int32_t>, std::set<std::int64_t>> numbers;
  for (const NcclCall& call : calls_) {
    if (call.sequence == kNone) continue;
    numbers[{call.description.empty() ? call.communicator : call.description, call.function,
             call.rank}]
        .insert(call.sequence);
  }
  constexpr std::size_t kMostNotes = 10;
  auto& notes = builder_.report().notes;
  for (const auto& [key, seen] : numbers) {
    const std::int64_t missing =
        *seen.rbegin() - *seen.begin() + 1 - static_cast<std::int64_t>(seen.size());
    if (missing == 0 || notes.size() >= kMostNotes) continue;
    std::int64_t first = *seen.begin();
    while (seen.contains(first)) ++first;
    notes.push_back(fmt::format(
        "{} calls of {} on communicator {} are missing, the first is number {}: they were smaller "
        "than NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES, without a kernel's time, or dropped from a full "
        "ring",
        missing, std::get<1>(key), std::get<0>(key), first));
  }
}

Collective NcclCalls::collective_of(const NcclCall& call) {
  Strings& strings = builder_.trace().strings;
  Collective collective;
  const bool pair = call.peer != kNone;
  std::string group = call.communicator;
  if (pair) {
    const bool sends = call.function == "Send";
    group += fmt::format(" {}-{}", sends ? call.rank : call.peer, sends ? call.peer : call.rank);
  } else {
    group += ' ' + call.function;
  }
  collective.name = strings.intern(lowered(call.function));
  collective.group = strings.intern(group);
  collective.description =
      strings.intern(call.description.empty() ? call.communicator : call.description);
  collective.dtype = strings.intern(call.dtype);
  std::string members;
  constexpr std::int32_t kMostListed = 4096;
  if (!pair && call.ranks > 0 && call.ranks == largest_ && call.ranks <= kMostListed) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(call.ranks));
    std::iota(all.begin(), all.end(), 0);
    members = fmt::format("[{}]", fmt::join(all, ", "));
  }
  collective.ranks = strings.intern(members);
  collective.group_size = pair ? 2 : call.ranks;
  collective.bytes = call.bytes;
  collective.in_elements = call.elements;
  collective.sequence = call.sequence;
  collective.numbered = !pair && call.sequence != kNone;
  return collective;
}

void NcclCalls::add_slice(const NcclCall& call, std::uint32_t track, Nanos begin) {
  Trace& trace = builder_.trace();
  trace.collectives.push_back(collective_of(call));
  Detail detail;
  detail.collective = static_cast<std::uint32_t>(trace.collectives.size() - 1);
  Slice slice{.begin = begin, .end = begin + call.duration};
  slice.name = trace.strings.intern(
      fmt::format("nccl{}{}{}", call.function, call.algorithm.empty() ? "" : "_", call.algorithm));
  slice.category = trace.strings.intern("nccl");
  slice.track = track;
  slice.kind = Kind::communication;
  slice.detail = builder_.add_detail(detail);
  builder_.add(slice);
}

Trace NcclCalls::finish(const std::filesystem::path& path, std::string_view format,
                        const std::string& host, std::int64_t pid) {
  builder_.describe(path, format);
  find_ranks();
  note_missing();
  std::map<std::int32_t, std::uint32_t> sources;
  TrackTable<std::pair<std::int32_t, std::string>> tracks(builder_);
  std::map<std::int32_t, Nanos> clocks;  // by rank, of calls without times
  Trace& trace = builder_.trace();
  for (const NcclCall& call : calls_) {
    const std::int32_t rank = rank_of(call);
    const auto [source, is_new] =
        sources.try_emplace(rank, static_cast<std::uint32_t>(trace.sources.size()));
    if (is_new) {
      trace.sources.push_back(
          {.path = path.string(), .host = host, .rank = rank, .pid = pid, .groups = {}});
    }
    const std::uint32_t track = tracks.find({rank, call.communicator}, [&] {
      Track made;
      made.gpu = true;
      made.device = 0;
      made.source = source->second;
      made.process = fmt::format("rank {}", rank);
      made.label = fmt::format("communicator {}", call.communicator);
      return made;
    });
    Nanos begin = call.begin;
    if (begin == kNone) {
      trace.sources[source->second].untimed = true;
      begin = clocks[rank];
      clocks[rank] += call.duration;
    }
    add_slice(call, track, begin);
  }
  return builder_.finish();
}

}  // namespace assay::timeline
