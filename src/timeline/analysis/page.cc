#include "timeline/analysis/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "pages/page.h"
#include "timeline/analysis/analysis_report.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

constexpr int kPageVersion = 1;

// Kinds of work and pipeline jobs, each of which has a colour.
enum Colour : std::uint8_t { compute, communication, memory, forward, backward, weight, optimizer };
constexpr std::array<const char*, 7> kKinds{"compute",  "communication", "memory",   "forward",
                                            "backward", "weight",        "optimizer"};

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
  Rows(const Trace& trace, Nanos begin, Nanos end) : trace_(trace), begin_(begin), end_(end) {
    for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
      if (trace.tracks[i].gpu) rows_[static_cast<std::uint32_t>(i)];
    }
    std::size_t count = 0;
    for (const Slice& slice : trace.slices) count += rows_.contains(slice.track) ? 1 : 0;
    in_pieces_ = count > kMaxPageSlices;
    for (const Slice& slice : trace.slices) add(slice);
    for (auto& [track, row] : rows_) flush(row);
  }

  // By rank, then by label.
  json by_rank() const {
    std::vector<std::pair<const Track*, const Row*>> sorted;
    for (const auto& [track, row] : rows_) {
      if (!row.flat.empty()) sorted.emplace_back(&trace_.tracks[track], &row);
    }
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
      return std::tuple(a.first->rank, a.first->label.size(), a.first->label) <
             std::tuple(b.first->rank, b.first->label.size(), b.first->label);
    });
    json rows = json::array();
    for (const auto& [track, row] : sorted) {
      rows.push_back({{"l", track->label}, {"rank", track->rank}, {"s", row->flat}});
    }
    return rows;
  }
  const std::vector<std::string>& names() const { return names_; }
  bool in_pieces() const { return in_pieces_; }

 private:
  struct Row {
    std::vector<std::int64_t> flat;
    Nanos last = 0;
    std::size_t piece = 0;
    std::array<Nanos, kKinds.size()> of_piece{};
  };

  void add(const Slice& slice) {
    const auto row = rows_.find(slice.track);
    const int colour = colour_of(trace_, slice);
    if (row == rows_.end() || colour < 0 || slice.end < begin_ || slice.begin > end_) return;
    const Nanos begin = slice.begin - begin_;
    if (!in_pieces_) {
      put(row->second, begin, slice.end - slice.begin, colour, name_of(slice));
      return;
    }
    const Nanos length = std::max<Nanos>(1, (end_ - begin_) / static_cast<Nanos>(kPagePieces));
    for (Nanos at = begin; at < slice.end - begin_;) {
      const auto piece = static_cast<std::size_t>(at / length);
      if (piece != row->second.piece) flush(row->second);
      row->second.piece = piece;
      const Nanos until = std::min(slice.end - begin_, static_cast<Nanos>(piece + 1) * length);
      row->second.of_piece[static_cast<std::size_t>(colour)] += until - at;
      at = until;
    }
  }

  // Writes the kinds of work within a piece of time, one after the other.
  void flush(Row& row) {
    const Nanos length = std::max<Nanos>(1, (end_ - begin_) / static_cast<Nanos>(kPagePieces));
    Nanos at = static_cast<Nanos>(row.piece) * length;
    for (std::size_t colour = 0; colour < row.of_piece.size(); ++colour) {
      const Nanos took = std::exchange(row.of_piece[colour], 0);
      if (took > 0) put(row, at, took, static_cast<int>(colour), -1);
      at += took;
    }
  }

  static void put(Row& row, Nanos begin, Nanos took, int colour, std::int64_t name) {
    row.flat.insert(row.flat.end(), {begin - row.last, took, colour, name});
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
    const auto [entry, is_new] = ids_.try_emplace(text, static_cast<std::int64_t>(names_.size()));
    if (is_new) names_.push_back(text);
    return entry->second;
  }

  const Trace& trace_;
  Nanos begin_;
  Nanos end_;
  bool in_pieces_ = false;
  std::map<std::uint32_t, Row> rows_;  // by track
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

}  // namespace

std::string analysis_html(const Analysis& analysis, const Trace& trace, const std::string& tables,
                          const std::string& members) {
  const Span span = span_of(analysis, trace);
  json data{{"version", kPageVersion}, {"span", 1},
            {"rows", json::array()},   {"names", json::array()},
            {"steps", json::array()},  {"files", json::array()},
            {"pieces_ns", 0}};
  if (span.begin < span.end) {
    const Rows rows(trace, span.begin, span.end);
    data["span"] = span.end - span.begin;
    data["rows"] = rows.by_rank();
    data["names"] = rows.names();
    if (rows.in_pieces()) data["pieces_ns"] = (span.end - span.begin) / Nanos{kPagePieces};
  }
  data["kinds"] = kKinds;
  for (const Step& step : analysis.steps) {
    data["steps"].push_back({step.number, step.begin - span.begin, step.end - span.begin});
  }
  for (const FileReport& file : trace.files) data["files"].push_back(file.path);
  data["report"] = analysis_table(analysis) + tables;
  const std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  // Only packing may fail.
  return pages::whole_page({.kind = pages::Kind::timeline,
                            .title = "assay timeline",
                            .data = text,
                            .packed = false,
                            .open = analysis_json(analysis, members)})
      .value_or("");
}

}  // namespace assay::timeline
