#include "timeline/analysis/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json.h"
#include "pages/page.h"
#include "timeline/analysis/host_activity.h"
#include "timeline/analysis/reports.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

constexpr int kPageVersion = 2;

// Kinds of work, pipeline jobs and the host's ranges, each of which has a colour.
enum Colour : std::uint8_t {
  compute,
  communication,
  memory,
  forward,
  backward,
  weight,
  optimizer,
  range
};
// Behind them the lanes of waits: the causes of idle time, the data loader, and the other ranks of
// a collective.
constexpr std::array<const char*, 16> kKinds{"compute",  "communication", "memory",     "forward",
                                             "backward", "weight",        "optimizer",  "range",
                                             "fill",     "drain",         "dependency", "host",
                                             "device",   "queue",         "loader",     "ranks"};
constexpr std::size_t kWaits = range + 1;
constexpr std::size_t kRanksLane = kLoadingLane + 1;
static_assert(kWaits + kRanksLane + 1 == kKinds.size());

int colour_of(const Trace& trace, const Slice& slice) {
  const std::string_view category = trace.strings.text(slice.category);
  if (category.starts_with("forward")) return forward;
  if (category.starts_with("backward_w")) return weight;
  if (category.starts_with("backward")) return backward;
  if (category.starts_with("optimizer")) return optimizer;
  if (slice.kind == Kind::compute) return compute;
  if (slice.kind == Kind::communication) return communication;
  if (slice.kind == Kind::memory) return memory;
  return -1;  // ranges on a GPU's stream are not work
}

// The rows of the drawing. A row's slices are a flat list of begin (relative to the previous
// begin), duration, colour and name.
class Rows {
 public:
  Rows(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives,
       const Span& span)
      : trace_(trace), activity_(trace), begin_(span.begin), end_(span.end) {
    for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
      const Track& track = trace.tracks[i];
      if (!track.gpu) continue;
      Row& row = rows_[static_cast<std::uint32_t>(i)];
      row.label = track.label;
      row.rank = track.rank;
    }
    std::size_t count = 0;
    for (const Slice& slice : trace.slices) count += rows_.contains(slice.track) ? 1 : 0;
    for (const DeviceReport& device : analysis.devices) count += device.waits.size();
    in_pieces_ = count > kMaxPageSlices;
    for (std::size_t i = 0; i < collectives.calls.size(); ++i) {
      for (const CollectivePart& part : collectives.calls[i].parts) call_of_[part.slice] = i;
    }
    for (std::size_t i = 0; i < trace.slices.size(); ++i) add(i);
    for (auto& [track, row] : rows_) flush(row);
    add_waits(analysis, collectives);
    for (auto& [key, row] : waits_) flush(row);
    if (!in_pieces_) add_host();
  }

  // By rank, then by label, then the waits, then the host.
  json by_rank() const {
    std::vector<const Row*> sorted;
    for (const auto& [track, row] : rows_) {
      if (!row.flat.empty()) sorted.push_back(&row);
    }
    std::ranges::stable_sort(sorted, {}, [](const Row* row) {
      return std::tuple(row->rank, row->label.size(), row->label);
    });
    for (const auto& [key, row] : waits_) sorted.push_back(&row);
    for (const auto& [track, row] : host_) sorted.push_back(&row);
    std::ranges::stable_sort(sorted, {}, &Row::rank);
    json rows = json::array();
    for (const Row* row : sorted) {
      rows.push_back({{"l", row->label}, {"rank", row->rank}, {"s", row->flat}});
      if (!row->calls.empty()) rows.back()["c"] = row->calls;
    }
    return rows;
  }
  const std::vector<std::string>& names() const { return names_; }
  bool in_pieces() const { return in_pieces_; }

 private:
  struct Row {
    std::string label;
    std::int32_t rank = kNone;
    std::vector<std::int64_t> flat;
    std::vector<std::size_t> calls = {};  // pairs: index of the slice, index of its collective
    Nanos last = 0;
    std::size_t piece = 0;
    std::array<Nanos, kKinds.size()> of_piece{};
  };

  void add(std::size_t index) {
    const Slice& slice = trace_.slices[index];
    const auto row = rows_.find(slice.track);
    const int colour = colour_of(trace_, slice);
    if (row == rows_.end() || colour < 0 || slice.end < begin_ || slice.begin > end_) return;
    const auto call = call_of_.find(index);
    if (!in_pieces_ && call != call_of_.end()) {
      row->second.calls.insert(row->second.calls.end(),
                               {row->second.flat.size() / 4, call->second});
    }
    add(row->second, slice.begin - begin_, slice.end - begin_, static_cast<std::size_t>(colour),
        in_pieces_ ? -1 : name_of(slice));
  }

  // What the threads of the hosts did, but for what is too short to be seen.
  void add_host() {
    constexpr Nanos kPart = 10'000;
    std::map<std::uint32_t, std::vector<std::tuple<Nanos, Nanos, StringId>>> ranges;  // by track
    const auto take = [&](const auto& one) {
      if (trace_.tracks[one.track].gpu || one.end < begin_ || one.begin > end_ ||
          one.end - one.begin < (end_ - begin_) / kPart) {
        return;
      }
      ranges[one.track].emplace_back(one.begin, -one.end, one.name);  // the outer one first
    };
    for (const HostCall& call : trace_.host_calls) take(call);
    for (const Slice& slice : trace_.slices) take(slice);
    for (auto& [track, mine] : ranges) {
      Row& row = host_[track];
      row.label = "host · " + trace_.tracks[track].label;
      row.rank = trace_.tracks[track].rank;
      std::ranges::sort(mine);
      for (const auto& [begin, end, name] : mine) {
        put(row, begin - begin_, -end - begin, range, id_of(trace_.strings.text(name)));
      }
    }
  }

  void add(Row& row, Nanos begin, Nanos end, std::size_t colour, std::int64_t name) {
    if (!in_pieces_) return put(row, begin, end - begin, colour, name);
    const Nanos length = std::max<Nanos>(1, (end_ - begin_) / static_cast<Nanos>(kPagePieces));
    for (Nanos at = begin; at < end;) {
      const auto piece = static_cast<std::size_t>(at / length);
      if (piece != row.piece) flush(row);
      row.piece = piece;
      const Nanos until = std::min(end, static_cast<Nanos>(piece + 1) * length);
      row.of_piece[colour] += until - at;
      at = until;
    }
  }

  void add_waits(const Analysis& analysis, const CollectiveReport& collectives) {
    const auto wait = [&](const DeviceReport& device, Nanos begin, Nanos end, std::size_t lane) {
      if (begin < begin_ || end > end_) return;
      Row& row = waits_[{&device, lane}];
      row.label = device.label;
      row.rank = device.rank;
      const bool host = lane == static_cast<std::size_t>(IdleCause::host) || lane == kLoadingLane;
      const auto did = host && !in_pieces_ ? activity_.in(device.source, {begin, end}) : "";
      add(row, begin - begin_, end - begin_, kWaits + lane, did.empty() ? -1 : id_of(did));
    };
    std::map<std::int32_t, const DeviceReport*> by_rank;
    for (const DeviceReport& device : analysis.devices) {
      by_rank.emplace(device.rank, &device);
      for (const Wait& each : device.waits) wait(device, each.begin, each.end, each.lane);
    }
    for (const CollectiveCall& call : collectives.calls) {
      for (const CollectivePart& part : call.parts) {
        const auto device = by_rank.find(part.rank);
        if (part.waiting <= 0 || device == by_rank.end()) continue;
        wait(*device->second, part.begin, part.begin + part.waiting, kRanksLane);
      }
    }
  }

  // Writes the kinds of work within a piece of time, one after the other.
  void flush(Row& row) {
    const Nanos length = std::max<Nanos>(1, (end_ - begin_) / static_cast<Nanos>(kPagePieces));
    Nanos at = static_cast<Nanos>(row.piece) * length;
    for (std::size_t colour = 0; colour < row.of_piece.size(); ++colour) {
      const Nanos took = std::exchange(row.of_piece[colour], 0);
      if (took > 0) put(row, at, took, colour, -1);
      at += took;
    }
  }

  static void put(Row& row, Nanos begin, Nanos took, std::size_t colour, std::int64_t name) {
    row.flat.insert(row.flat.end(), {begin - row.last, took, static_cast<Nanos>(colour), name});
    row.last = begin;
  }

  std::int64_t name_of(const Slice& slice) {
    const Suffix suffix = suffix_of(slice);
    std::string text(trace_.strings.text(slice.name));
    constexpr std::size_t kMaxShown = 120;
    if (text.size() > kMaxShown) {
      text.resize(kMaxShown);
      text += "...";
    }
    if (suffix.mark != 0) text += fmt::format("{}{}", suffix.mark, suffix.number);
    return id_of(text);
  }

  std::int64_t id_of(std::string_view name) {
    const std::string text(name);
    const auto [entry, is_new] = ids_.try_emplace(text, static_cast<std::int64_t>(names_.size()));
    if (is_new) names_.push_back(text);
    return entry->second;
  }

  const Trace& trace_;
  HostActivity activity_;
  Nanos begin_;
  Nanos end_;
  bool in_pieces_ = false;
  std::map<std::uint32_t, Row> rows_;                                 // by track
  std::map<std::pair<const DeviceReport*, std::size_t>, Row> waits_;  // by device and lane
  std::map<std::uint32_t, Row> host_;                                 // by track
  std::map<std::size_t, std::size_t> call_of_;                        // by slice
  std::map<std::string, std::int64_t> ids_;
  std::vector<std::string> names_;
};

Span span_of(const Analysis& analysis, const Trace& trace) {
  Span span;
  for (const Step& step : analysis.steps) widen(span, step);
  for (const Slice& slice : trace.slices) {
    if (trace.tracks[slice.track].gpu && colour_of(trace, slice) >= 0) widen(span, slice);
  }
  return span;
}

// The drawing of one run.
json drawing(const Analysis& analysis, const Trace& trace, const CollectiveReport& collectives) {
  const Span span = span_of(analysis, trace);
  json run{{"span", 1},
           {"rows", json::array()},
           {"names", json::array()},
           {"calls", json::array()},
           {"steps", json::array()},
           {"files", json::array()},
           {"pieces_ns", 0}};
  for (const FileReport& file : trace.files) run["files"].push_back(file.path);
  if (span.begin >= span.end) return run;
  const Rows rows(trace, analysis, collectives, span);
  run["span"] = span.end - span.begin;
  run["rows"] = rows.by_rank();
  run["names"] = rows.names();
  if (rows.in_pieces()) run["pieces_ns"] = (span.end - span.begin) / Nanos{kPagePieces};
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    const Step& step = analysis.steps[i];
    run["steps"].push_back(
        {step.number, step.begin - span.begin, step.end - span.begin, analysis.lengths[i]});
  }
  for (const CollectiveCall& call : collectives.calls) {
    if (rows.in_pieces()) break;
    Nanos waited = 0;
    for (const CollectivePart& part : call.parts) waited = std::max(waited, part.waiting);
    run["calls"].push_back({call.name, call.group, call.bytes, call.last, waited});
  }
  return run;
}

std::string page_of(json data, const std::string& open) {
  data["version"] = kPageVersion;
  data["kinds"] = kKinds;
  const std::string text = dumped(data);
  // Only packing may fail.
  return pages::whole_page({.kind = pages::Kind::timeline,
                            .title = "assay timeline",
                            .data = text,
                            .packed = false,
                            .open = open})
      .value_or("");
}

}  // namespace

std::string analysis_html(const Analysis& analysis, const Trace& trace, const std::string& tables,
                          const std::string& members, const CollectiveReport& collectives) {
  return page_of({{"runs", json::array({drawing(analysis, trace, collectives)})},
                  {"report", analysis_table(analysis) + tables}},
                 analysis_json(analysis, members));
}

std::string comparison_html(const Comparison& comparison, const ComparedRun& before,
                            const ComparedRun& after) {
  json runs = json::array();
  for (const ComparedRun* run : {&before, &after}) {
    runs.push_back(drawing(run->analysis, run->trace, run->insights.collectives));
  }
  return page_of({{"runs", std::move(runs)}, {"report", comparison_text(comparison, "table")}},
                 comparison_text(comparison, "json"));
}

}  // namespace assay::timeline
