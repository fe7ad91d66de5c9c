#include "timeline/model.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/json.h"

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
  const auto has = [type](std::string_view word) {
    return type.find(word) != std::string_view::npos;
  };
  if (has("send") || has("recv") || has("allreduce") || has("all_reduce") ||
      has("reduce_scatter") || has("allgather") || has("all_gather") || has("all_to_all") ||
      has("nccl")) {
    return Kind::communication;
  }
  if (has("memcpy") || has("offload") || has("reload")) return Kind::memory;
  return Kind::compute;
}

void Trace::sort() {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

void Trace::shift(const std::vector<Nanos>& of_track, const std::vector<Nanos>& of_source) {
  const auto move = [](auto& span, Nanos offset) {
    span.begin += offset;
    span.end += offset;
  };
  for (Slice& slice : slices) move(slice, of_track[slice.track]);
  for (Launch& launch : launches) move(launch, of_track[launch.track]);
  for (HostCall& call : host_calls) move(call, of_track[call.track]);
  for (CollectiveRange& range : collective_ranges) move(range, of_track[range.track]);
  for (OperatorCall& call : operator_calls) move(call, of_track[call.track]);
  for (RankStep& mark : rank_steps) move(mark.step, of_source[mark.source]);
  for (Flow& flow : flows) flow.time += of_track[flow.track];
  for (MemoryPoint& point : memory) point.time += of_source[point.source];
}

void Trace::move_times(const std::function<Nanos(std::uint32_t, Nanos)>& clock) {
  const auto move = [&](auto& span, std::uint32_t source) {
    span.begin = clock(source, span.begin);
    span.end = clock(source, span.end);
  };
  for (Slice& slice : slices) move(slice, tracks[slice.track].source);
  for (Launch& launch : launches) move(launch, tracks[launch.track].source);
  for (HostCall& call : host_calls) move(call, tracks[call.track].source);
  for (CollectiveRange& range : collective_ranges) move(range, tracks[range.track].source);
  for (OperatorCall& call : operator_calls) move(call, tracks[call.track].source);
  for (Flow& flow : flows) flow.time = clock(tracks[flow.track].source, flow.time);
  for (MemoryPoint& point : memory) point.time = clock(point.source, point.time);
  std::map<std::int64_t, Step> common;
  for (RankStep& mark : rank_steps) {
    move(mark.step, mark.source);
    widen(common.try_emplace(mark.step.number, mark.step).first->second, mark.step);
  }
  for (Step& step : steps) {
    if (const auto moved = common.find(step.number); moved != common.end()) step = moved->second;
  }
}

}  // namespace assay::timeline
