#include "chain/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/markup.h"

namespace assay {
namespace {

constexpr double kWidth = 420;
constexpr double kHeight = 120;

// A line through the finite values, from the smallest to the largest of them.
std::string plot(const std::string& title, const std::vector<double>& values) {
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
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    points += fmt::format("{:.1f},{:.1f} ", step * static_cast<double>(i),
                          kHeight - (values[i] - low) / span * kHeight);
  }
  return fmt::format(
      "<figure><figcaption>{}: {:.5g} to {:.5g}, {} values</figcaption><svg viewBox=\"-4 -4 {} "
      "{}\" width=\"{}\">"
      "<polyline fill=\"none\" stroke=\"#27c\" stroke-width=\"1.5\" "
      "points=\"{}\"/></svg></figure>\n",
      escape_markup(title), low, high, values.size(), kWidth + 8, kHeight + 8, kWidth, points);
}

Result<std::string> stage_details(ChainStore& store, const StoredStage& stage) {
  std::string html;
  ASSAY_TRY(const std::vector<StoredReading> readings, store.readings(stage.id));
  std::map<std::string, std::vector<double>> series;
  for (const StoredReading& reading : readings) series[reading.name].push_back(reading.value);
  for (const char* name : {"loss", "ips", "batch_cost", "reader_cost", "rss_mb", "gpu_memory_mb",
                           "gpu_used_mb", "accuracy"}) {
    if (series.contains(name)) html += plot(name, series[name]);
  }
  ASSAY_TRY(const AutoLog fields, store.autolog(stage.id));
  for (const auto& [field, value] : fields) {
    html += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape_markup(field),
                        escape_markup(value));
  }
  ASSAY_TRY(const std::vector<NodeRecord> nodes, store.nodes(stage.id));
  for (const NodeRecord& node : nodes) {
    html +=
        fmt::format("<p>node {}: {}, {}, batch {}, {}, {:.4g} ips</p>\n", escape_markup(node.host),
                    escape_markup(node.gpu_model),
                    escape_markup(node.framework.empty() ? "framework unknown" : node.framework),
                    escape_markup(node.batch_size), escape_markup(node.state), node.ips);
  }
  if (!fields.empty()) html = "<table>" + html + "</table>";
  return html.empty() ? html : "<h3>" + escape_markup(stage.name) + "</h3>\n" + html;
}

}  // namespace

Result<std::string> chain_report(ChainStore& store, double budget_seconds) {
  ASSAY_TRY(const std::vector<StoredRun> runs, store.runs());
  if (runs.empty()) return usage_error("no run in this store");
  const StoredRun& run = runs.back();
  ASSAY_TRY(const std::vector<StoredStage> stages, store.stages(run.id));
  std::string html = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0} {1}</title><style>"
      "body{{font:15px sans-serif;max-width:70em;margin:2em auto}}table{{border-collapse:collapse}}"
      "td,th{{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}}.passed{{color:#080}}"
      "figure{{display:inline-block;margin:.5em}}</style>\n<h1>{0} {1}</h1><p>{2}, started {3}, "
      "exit code {4}</p>\n"
      "<table><tr><th>stage<th>state<th>seconds<th>of the budget<th>MB<th>GPU MB<th>detail</tr>\n",
      escape_markup(run.model), escape_markup(run.mode), escape_markup(run.file),
      escape_markup(run.started), run.exit_code);
  const double budget = std::max(budget_seconds, 1e-9);
  double seconds = 0;
  std::vector<double> memory;
  for (const StoredStage& stage : stages) {
    memory.push_back(stage.peak_rss_mb);
    seconds += stage.seconds;
    html += fmt::format(
        "<tr><td>{}<td class=\"{}\">{}<td>{:.1f}<td>{:.1f}%<td>{:.0f}<td>{:.0f}<td>{}</tr>\n",
        escape_markup(stage.name), escape_markup(stage.state), escape_markup(stage.state),
        stage.seconds, 100 * stage.seconds / budget, stage.peak_rss_mb, stage.gpu_memory_mb,
        escape_markup(stage.detail));
  }
  html += fmt::format("<tr><td>all<td><td>{:.1f}<td>{:.1f}%{}<td><td><td></tr>\n", seconds,
                      100 * seconds / budget, seconds > budget ? " over budget" : "");
  html += "</table>\n" + plot("peak memory (MB), stage by stage", memory);
  for (const StoredStage& stage : stages) {
    ASSAY_TRY(const std::string details, stage_details(store, stage));
    html += details;
  }
  return html + "</html>\n";
}

}  // namespace assay
