#include "report/performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/markup.h"
#include "base/statistics.h"
#include "report/run_report.h"
#include "report/speed_change.h"
#include "verdict/timings.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {
namespace {

using SpeedVisit = std::function<Status(std::string_view text, const SpeedRow& row)>;

Status each_row(RunReader& run, const SpeedVisit& visit) {
  ASSAY_TRY(const auto properties, run.properties());
  ASSAY_TRY(const wire::CaseSettingsT settings, wire::settings_of(properties));
  return run.each_finished([&](const FinishedCase& finished) -> Status {
    if (finished.record.empty()) return {};
    const auto record = wire::open<wire::Record>(finished.record);
    if (!record) return {};
    for (const SpeedRow& row : speed_rows(**record, settings.speed_margin)) {
      ASSAY_CHECK(visit(finished.text, row));
    }
    return {};
  });
}

bool has_both(const SpeedRow& row) { return !row.right.nanoseconds.empty(); }

std::string csv_line(std::string_view text, const SpeedRow& row) {
  const auto side = [](const TimeSeries& series) {
    if (series.nanoseconds.empty()) return std::string(",,");
    return fmt::format("{},{:.1f},{:.4f}", series.nanoseconds.size(), median_of(series.nanoseconds),
                       spread_of(series.nanoseconds));
  };
  std::string line =
      fmt::format("{},{},{},{},{},{},", csv_field(api_of(text)), csv_field(text),
                  csv_field(row.what), row.left.calls, side(row.left), side(row.right));
  if (!has_both(row)) return line + ",,,\n";
  return line + fmt::format("{:.5f},{:.5f},{:.5f},{}\n", row.ratio.middle, row.ratio.low,
                            row.ratio.high, name(row.speed));
}

nlohmann::json row_json(std::string_view text, const SpeedRow& row) {
  const auto side = [](const TimeSeries& series) {
    if (series.nanoseconds.empty()) return std::string();
    return fmt::format("{} ±{:.1f}%", time_text(median_of(series.nanoseconds)),
                       spread_of(series.nanoseconds) * 50);
  };
  nlohmann::json shown{{"case", text},
                       {"what", row.what},
                       {"test", side(row.left)},
                       {"reference", side(row.right)},
                       {"decides", row.decides && has_both(row)}};
  if (!has_both(row)) return shown;
  shown["ratio"] = interval_json(row.ratio);
  shown["told"] = ratio_text(row.ratio);
  shown["speed"] = name(row.speed);
  return shown;
}

}  // namespace

Status write_performance(RunReader& run, const std::filesystem::path& folder) {
  ASSAY_TRY(AtomicFile file, AtomicFile::create(folder / "performance.csv"));
  ASSAY_CHECK(
      file.write("API,config,what,calls,test_samples,test_ns,test_spread,reference_samples,"
                 "reference_ns,reference_spread,ratio,low,high,speed\n"));
  ASSAY_CHECK(each_row(run, [&](std::string_view text, const SpeedRow& row) {
    return file.write(csv_line(text, row));
  }));
  return file.commit();
}

Result<nlohmann::json> performance_json(RunReader& run) {
  std::vector<std::pair<double, nlohmann::json>> rows;
  ASSAY_CHECK(each_row(run, [&](std::string_view text, const SpeedRow& row) -> Status {
    rows.emplace_back(row.ratio.middle, row_json(text, row));
    return {};
  }));
  if (rows.empty()) return nlohmann::json();
  std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.first; });
  nlohmann::json shown = nlohmann::json::array();
  for (std::size_t i = 0; i < std::min(rows.size(), kTimesOfPage); ++i) {
    shown.push_back(std::move(rows[i].second));
  }
  return nlohmann::json{{"parts", rows.size()}, {"rows", std::move(shown)}};
}

}  // namespace assay
