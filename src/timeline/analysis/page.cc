#include "timeline/analysis/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/markup.h"
#include "timeline/analysis/analysis_report.h"

namespace assay::timeline {
namespace {

// Colours of kinds of work and pipeline jobs.
enum Colour : std::uint8_t { compute, communication, memory, forward, backward, weight, optimizer };
constexpr std::array<const char*, 7> kColours{"#5b9bd5", "#d9534f", "#c9a227", "#7ec894",
                                              "#ee8e00", "#8fb4e8", "#b07cc6"};

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

// JSON that is safe within a <script>.
std::string in_script(const std::string& document) {
  std::string text;
  for (const char c : document) {
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
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

  nlohmann::json json() const {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& [track, row] : rows_) {
      if (!row.flat.empty()) rows.push_back({{"l", trace_.tracks[track].label}, {"s", row.flat}});
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
    std::array<Nanos, kColours.size()> of_piece{};
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

constexpr const char* kScript = R"js(
const D = JSON.parse(document.getElementById('data').textContent);
const c = document.getElementById('c'), t = document.getElementById('t'), g = c.getContext('2d');
const H = 22, L = 210, T = 18;
let from = 0, to = D.span, W = 0;
for (const r of D.rows) {
  const n = r.s.length / 4;
  r.b = new Float64Array(n); r.e = new Float64Array(n); r.m = new Float64Array(n);
  let at = 0, most = 0;
  for (let i = 0; i < n; i++) {
    at += r.s[4 * i]; r.b[i] = at; r.e[i] = at + r.s[4 * i + 1];
    most = Math.max(most, r.e[i]); r.m[i] = most;
  }
}
const first = (r, time) => {  // the first slice that may reach `time`: no earlier one ends behind it
  let a = 0, b = r.m.length;
  while (a < b) { const m = (a + b) >> 1; if (r.m[m] <= time) a = m + 1; else b = m; }
  return a;
};
const show = ns => ns >= 1e6 ? (ns / 1e6).toFixed(3) + ' ms' : (ns / 1e3).toFixed(3) + ' us';
function draw() {
  const ratio = window.devicePixelRatio || 1;
  W = Math.max(300, c.parentNode.clientWidth);
  const height = T + D.rows.length * H + 4;
  c.width = W * ratio; c.height = height * ratio; c.style.width = W + 'px'; c.style.height = height + 'px';
  g.scale(ratio, ratio); g.clearRect(0, 0, W, height); g.font = '12px sans-serif';
  const P = W - L, per = (to - from) / P;
  D.rows.forEach((r, k) => {
    const y = T + k * H;
    g.fillStyle = '#000'; g.fillText(r.l, 2, y + 14, L - 6);
    const sums = D.colours.map(() => new Float64Array(P + 1));
    for (let i = first(r, from); i < r.b.length && r.b[i] < to; i++) {
      const b = Math.max(r.b[i], from), e = Math.min(r.e[i], to), s = sums[r.s[4 * i + 2]];
      const pb = (b - from) / per, pe = (e - from) / per;
      if (pe <= pb) { continue; }
      const last = Math.min(P, Math.ceil(pe));
      for (let p = Math.floor(pb); p < last; p++) s[p] += Math.min(pe, p + 1) - Math.max(pb, p);
    }
    for (let p = 0; p < P; p++) {  // a pixel is filled as far as its time was
      let bottom = y + 18;
      for (let q = 0; q < sums.length; q++) {
        const h = Math.min(1, sums[q][p]) * 18;
        if (h <= 0) continue;
        g.fillStyle = D.colours[q];
        const top = Math.max(y, bottom - h);
        g.fillRect(L + p, top, 1, bottom - top);
        bottom = top;
      }
    }
  });
  g.strokeStyle = '#999'; g.fillStyle = '#000'; g.setLineDash([3, 3]);
  for (const s of D.steps) {
    const x = L + (s[1] - from) / per;
    if (x < L || x > W) continue;
    g.beginPath(); g.moveTo(x, 0); g.lineTo(x, height); g.stroke(); g.fillText('step ' + s[0], x + 3, 12);
  }
}
const timeAt = x => from + (x - L) / (W - L) * (to - from);
c.addEventListener('wheel', e => {
  e.preventDefault();
  const x = timeAt(e.offsetX), f = e.deltaY > 0 ? 1.25 : 0.8;
  const width = Math.min(D.span, Math.max(100, (to - from) * f));
  from = Math.min(Math.max(0, x - (x - from) * width / (to - from)), D.span - width);
  to = from + width; draw();
}, { passive: false });
let held = null;
c.addEventListener('mousedown', e => { held = [e.offsetX, from, to]; });
window.addEventListener('mouseup', () => { held = null; });
c.addEventListener('mousemove', e => {
  if (held) {
    const d = (held[0] - e.offsetX) / (W - L) * (held[2] - held[1]);
    from = Math.min(Math.max(0, held[1] + d), D.span - (held[2] - held[1]));
    to = from + (held[2] - held[1]); draw(); return;
  }
  const r = D.rows[Math.floor((e.offsetY - T) / H)], time = timeAt(e.offsetX);
  let text = '';
  if (r && e.offsetX > L) {
    const slack = (to - from) / (W - L);
    for (let i = first(r, time - slack); i < r.b.length && r.b[i] <= time + slack; i++) {
      if (r.e[i] < time - slack) continue;
      const name = r.s[4 * i + 3] < 0 ? D.kinds[r.s[4 * i + 2]] : D.names[r.s[4 * i + 3]];
      text = name + ', ' + show(r.e[i] - r.b[i]) + ' from ' + show(r.b[i]) + ' on';
    }
  }
  t.textContent = text || 'Wheel: zoom. Drag: pan. Double click: whole trace.';
});
c.addEventListener('dblclick', () => { from = 0; to = D.span; draw(); });
window.addEventListener('resize', draw);
draw();
)js";

}  // namespace

std::string analysis_html(const Analysis& analysis, const Trace& trace, const std::string& tables,
                          const std::string& members) {
  const Span span = span_of(analysis, trace);
  nlohmann::json data{{"span", 1}, {"rows", nlohmann::json::array()}};
  std::string pieces;
  if (span.begin < span.end) {
    const Rows rows(trace, span.begin, span.end);
    data = {{"span", span.end - span.begin}, {"rows", rows.json()}, {"names", rows.names()}};
    if (rows.in_pieces()) {
      pieces = fmt::format(
          "<p>The trace has more than {} slices: the drawing shows sums over intervals of {:.3f} "
          "ms.</p>\n",
          kMaxPageSlices,
          static_cast<double>(span.end - span.begin) / 1e6 / static_cast<double>(kPagePieces));
    }
  }
  data["colours"] = kColours;
  data["kinds"] = {"compute",  "communication", "memory",   "forward",
                   "backward", "weight",        "optimizer"};
  data["steps"] = nlohmann::json::array();
  for (const Step& step : analysis.steps) {
    data["steps"].push_back({step.number, step.begin - span.begin});
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>assay "
      "timeline</title>\n<style>body{{font-family:sans-serif;margin:1em}}pre{{overflow-x:auto}}"
      "canvas{{cursor:grab}}#t{{height:1.4em;overflow:hidden}}</style></head><body>\n"
      "<h1>Timeline</h1>\n<div><canvas id=\"c\"></canvas></div>\n"
      "<div id=\"t\">Wheel: zoom. Drag: pan. Double click: whole trace.</div>\n{}<pre>{}</pre>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script type=\"application/json\" id=\"analysis\">{}</script>\n<script>{}</script>\n"
      "</body></html>\n",
      pieces, escape_markup(analysis_table(analysis) + tables),
      in_script(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)),
      in_script(analysis_json(analysis, members)), kScript);
}

}  // namespace assay::timeline
