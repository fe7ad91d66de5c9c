#include "timeline/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/json.h"
#include "timeline/names.h"

namespace assay::timeline {

Strings::Strings() { texts_.emplace_back("(too many names)"); }

namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

}  // namespace

std::size_t Strings::Hash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

StringId Strings::intern(std::string_view text) {
  if (is_ascii(text)) return intern_valid(text);
  using nlohmann::json;
  const std::string escaped = dumped(json(text));
  return intern_valid(json::parse(escaped).get<std::string>());
}

StringId Strings::intern_valid(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  if (texts_.size() >= kMaxStrings || bytes_ + text.size() > kMaxBytes) return kOverflow;
  bytes_ += text.size();
  texts_.emplace_back(text);
  const auto id = static_cast<StringId>(texts_.size() - 1);
  ids_.emplace(texts_.back(), id);
  return id;
}

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, 5> kNames{"compute", "communication", "memory", "host",
                                                   "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

Kind kind_of_job(std::string_view type) {
  if (has_any(type, {"send", "recv", "allreduce", "all_reduce", "reduce_scatter", "allgather",
                     "all_gather", "all_to_all", "nccl"})) {
    return Kind::communication;
  }
  if (has_any(type, {"memcpy", "offload", "reload"})) return Kind::memory;
  return Kind::compute;
}

std::string device_name(std::int32_t rank, std::int32_t device) {
  const std::string gpu = device == kNone ? "host" : fmt::format("GPU {}", device);
  return rank == kNone ? gpu : fmt::format("rank {} · {}", rank, gpu);
}

void Trace::sort() {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

namespace {

// Replaces each time but those of the common steps.
template <typename OfTrack, typename OfSource>
void each_time(Trace& trace, OfTrack of_track, const OfSource& of_source) {
  const auto move = [&](auto& spans) {
    for (auto& span : spans) {
      span.begin = of_track(span.track, span.begin);
      span.end = of_track(span.track, span.end);
    }
  };
  move(trace.slices);
  move(trace.launches);
  move(trace.host_calls);
  move(trace.collective_ranges);
  move(trace.operator_calls);
  for (Flow& flow : trace.flows) flow.time = of_track(flow.track, flow.time);
  for (MemoryPoint& point : trace.memory) point.time = of_source(point.source, point.time);
  for (auto& [source, step] : trace.rank_steps) {
    step.begin = of_source(source, step.begin);
    step.end = of_source(source, step.end);
  }
}

}  // namespace

void Trace::shift(const std::vector<Nanos>& of_track, const std::vector<Nanos>& of_source) {
  each_time(
      *this, [&](std::uint32_t track, Nanos time) { return time + of_track[track]; },
      [&](std::uint32_t source, Nanos time) { return time + of_source[source]; });
}

void Trace::move_times(const std::function<Nanos(std::uint32_t, Nanos)>& clock) {
  each_time(
      *this, [&](std::uint32_t track, Nanos time) { return clock(tracks[track].source, time); },
      clock);
  std::map<std::int64_t, Step> common;
  for (const RankStep& mark : rank_steps) {
    widen(common.try_emplace(mark.step.number, mark.step).first->second, mark.step);
  }
  for (Step& step : steps) {
    if (const auto moved = common.find(step.number); moved != common.end()) step = moved->second;
  }
}

}  // namespace assay::timeline
