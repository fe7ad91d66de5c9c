#include "chain/results/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "base/markup.h"

namespace assay::chain::results {
namespace {

constexpr double kWidth = 360;
constexpr double kHeight = 110;
constexpr double kLeft = 64;  // width of the axis labels

constexpr std::string_view kStyle =
    "body{font:15px/1.4 system-ui,sans-serif;color:#222;max-width:72em;margin:2em auto;padding:0 "
    "1em}h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.05em;margin:2em 0 .3em;border-top:1px "
    "solid #ddd;padding-top:1em}table{border-collapse:collapse;margin:.6em 0}td,th{padding:.2em "
    "1em .2em 0;text-align:left;vertical-align:top;border-bottom:1px solid "
    "#eee}td:first-child{overflow-wrap:anywhere}.n{text-align:"
    "right;font-variant-numeric:tabular-nums}.passed{color:#070}.bad{color:#b00}.all{font-weight:"
    "600}figure{display:inline-block;margin:.4em 1.4em .4em 0}figcaption{font-size:.9em;"
    "font-weight:600}svg text{font-size:11px;fill:#555}details{margin:.4em 0}";

struct Series {
  std::string_view name;
  std::string_view title;
};
constexpr std::array kSeries{Series{"loss", "loss"},
                             Series{"eval_loss", "loss of the evaluation"},
                             Series{"ips", "ips"},
                             Series{"batch_cost", "batch cost (s)"},
                             Series{"reader_cost", "reader cost (s)"},
                             Series{"rss_mb", "memory (MB)"},
                             Series{"gpu_memory_mb", "GPU memory by the log (MB)"},
                             Series{"gpu_used_mb", "GPU memory (MB)"},
                             Series{"accuracy", "accuracy"}};

// Draws a line through the finite values; "" if there are none.
std::string plot(std::string_view title, const std::vector<double>& values) {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return {};
  const double span = high > low ? high - low : 1;
  const double step = values.size() > 1 ? kWidth / static_cast<double>(values.size() - 1) : 0;
  std::string points;
  std::string last;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double x = kLeft + step * static_cast<double>(i);
    const double y = kHeight - (values[i] - low) / span * kHeight;
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    last = fmt::format("cx=\"{:.1f}\" cy=\"{:.1f}\"", x, y);
  }
  const std::string bottom =
      high > low ? fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.3g}</text>",
                               kLeft - 8, kHeight + 4, low)
                 : "";
  return fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 -8 {} {}\" width=\"{}\" role=\"img\" "
      "aria-label=\"{}: {:.5g} to {:.5g}, {} values\"><path d=\"M{} 0V{}H{}\" fill=\"none\" "
      "stroke=\"#bbb\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.3g}</text>{}"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} value{}</text>"
      "<polyline fill=\"none\" stroke=\"#27c\" stroke-width=\"1.5\" points=\"{}\"/>"
      "<circle {} r=\"2.5\" fill=\"#27c\"/></svg></figure>\n",
      escape_markup(title), kLeft + kWidth + 8, kHeight + 28, kLeft + kWidth + 8,
      escape_markup(title), low, high, values.size(), kLeft, kHeight, kLeft + kWidth, kLeft - 8,
      high > low ? 4 : kHeight + 4, high, bottom, kLeft + kWidth, kHeight + 15, values.size(),
      values.size() == 1 ? "" : "s", points, last);
}

std::string node_table(const std::vector<NodeRecord>& nodes) {
  std::string html =
      "<table><tr><th>machine<th>device<th>framework<th>batch<th>state<th class=\"n\">ips</tr>\n";
  for (const NodeRecord& node : nodes) {
    html += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td class=\"n\">{}</tr>\n",
                        escape_markup(node.host), escape_markup(node.gpu_model),
                        escape_markup(node.framework.empty() ? "unknown" : node.framework),
                        escape_markup(node.batch_size), escape_markup(node.state),
                        node.ips > 0 ? fmt::format("{:.4g}", node.ips) : "");
  }
  return nodes.empty() ? std::string() : html + "</table>\n";
}

Result<std::string> stage_details(ChainStore& store, const StoredStage& stage) {
  ASSAY_TRY(const std::vector<StoredReading> readings, store.readings(stage.id));
  ASSAY_TRY(const stage::AutoLog fields, store.autolog(stage.id));
  ASSAY_TRY(const std::vector<NodeRecord> nodes, store.nodes(stage.id));
  std::map<std::string, std::vector<double>, std::less<>> series;
  for (const StoredReading& reading : readings) series[reading.name].push_back(reading.value);
  std::string html;
  for (const Series& one : kSeries) {
    const auto found = series.find(one.name);
    if (found != series.end()) html += plot(one.title, found->second);
  }
  for (const auto& [name, values] : series) {
    const bool total = name == "loss" || name == "eval_loss";
    if (stage::is_loss(name) && !total) html += plot(name, values);
  }
  html += node_table(nodes);
  if (!fields.empty()) html += "<details><summary>AutoLog</summary><table>\n";
  for (const auto& [field, value] : fields) {
    html += fmt::format("<tr><td>{}<td>{}</tr>\n", escape_markup(field), escape_markup(value));
  }
  if (!fields.empty()) html += "</table></details>\n";
  return html.empty() ? html : "<h2>" + escape_markup(stage.name) + "</h2>\n" + html;
}

std::string rounded(double value, int digits = 0) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : "";
}

// Why a stage failed, and where its log is.
std::string detail_of(const StoredStage& stage) {
  if (stage.state == "passed" || stage.log.empty()) return escape_markup(stage.detail);
  return fmt::format("{}{}log: <code>{}</code>", escape_markup(stage.detail),
                     stage.detail.empty() ? "" : "<br>", escape_markup(stage.log));
}

std::string stage_table(const std::vector<StoredStage>& stages, double budget) {
  std::string html =
      "<table><tr><th>stage<th>state<th class=\"n\">seconds<th class=\"n\">of the budget<th "
      "class=\"n\">MB<th class=\"n\">GPU MB<th>detail</tr>\n";
  double seconds = 0;
  for (const StoredStage& stage : stages) {
    seconds += stage.seconds;
    html += fmt::format(
        "<tr><td>{}<td class=\"{}\">{}<td class=\"n\">{}<td class=\"n\">{:.1f}%<td "
        "class=\"n\">{}<td class=\"n\">{}<td>{}</tr>\n",
        escape_markup(stage.name), stage.state == "passed" ? "passed" : "bad",
        escape_markup(stage.state), rounded(stage.seconds, 1), 100 * stage.seconds / budget,
        rounded(stage.peak_rss_mb), rounded(stage.gpu_memory_mb), detail_of(stage));
  }
  return html + fmt::format(
                    "<tr class=\"all\"><td>all<td><td class=\"n\">{:.1f}<td class=\"n\">{:.1f}%"
                    "<td><td><td class=\"bad\">{}</tr></table>\n",
                    seconds, 100 * seconds / budget, seconds > budget ? "over budget" : "");
}

}  // namespace

std::string_view page_style() { return kStyle; }

Result<std::string> chain_report(ChainStore& store, double budget_seconds) {
  ASSAY_TRY(const std::vector<StoredRun> runs, store.runs());
  if (runs.empty()) return usage_error("no run in this store");
  const StoredRun& run = runs.back();
  ASSAY_TRY(const std::vector<StoredStage> stages, store.stages(run.id));
  const bool goes_on = run.exit_code < 0;  // also true for a run that was killed
  std::string html = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">{6}<title>{0} {1}</title><style>{5}"
      "</style>\n<h1>{0} {1}</h1><p>{2}, started {3}, {4}</p>\n",
      escape_markup(run.model), escape_markup(run.mode), escape_markup(run.file),
      escape_markup(run.started),
      goes_on ? "not finished" : fmt::format("exit code {}", run.exit_code), kStyle,
      goes_on ? "<meta http-equiv=\"refresh\" content=\"5\">" : "");
  std::vector<double> memory;
  memory.reserve(stages.size());
  for (const StoredStage& stage : stages)
    memory.push_back(stage.peak_rss_mb > 0 ? stage.peak_rss_mb : NAN);
  html += stage_table(stages, std::max(budget_seconds, 1e-9));
  html += plot("peak memory (MB), stage by stage", memory);
  for (const StoredStage& stage : stages) {
    ASSAY_TRY(const std::string details, stage_details(store, stage));
    html += details;
  }
  return html + "</html>\n";
}

}  // namespace assay::chain::results
