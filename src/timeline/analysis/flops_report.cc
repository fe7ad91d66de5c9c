#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "timeline/analysis/report_text.h"
#include "timeline/analysis/reports.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

std::string rows_text(const FlopReport& report) {
  Table table({"operator (by its shapes)", ">calls", ">GFLOP/call:.4g", ">FLOP/byte:.1f",
               ">total ms", ">TFLOP/s:.4g", ">MFU %:.2f", ">roof %:.2f"});
  const auto above_zero = [](double value) { return if_known(value > 0, value); };
  for (const OperatorRow& row : report.rows) {
    const std::string name =
        row.name.substr(row.name.rfind(':') + 1) + " " + row.dtype + " " + row.shapes;
    table.row(short_name(name), row.calls, above_zero(row.flop / 1e9),
              above_zero(row.bytes > 0 ? row.flop / row.bytes : 0), millis(row.total),
              above_zero(row.tflops()), above_zero(100 * row.mfu()), above_zero(100 * row.roof()));
  }
  return section(table);
}

std::string peaks_text(const FlopReport& report) {
  if (report.given_peak > 0) return fmt::format("{:g} TFLOP/s, given", report.given_peak);
  std::map<std::string, double> peaks;
  for (const OperatorRow& row : report.rows) {
    if (row.peak.tflops > 0) peaks[row.dtype] = row.peak.tflops;
  }
  std::string text = report.device + ", dense";
  for (const auto& [dtype, tflops] : peaks) text += fmt::format(", {} {:g} TFLOP/s", dtype, tflops);
  return text;
}

// All steps together, and those with the lowest and highest MFU.
std::string steps_text(const FlopReport& report) {
  const StepFlops all = report.all_steps();
  if (all.flop <= 0 || all.time <= 0) return {};
  Nanos total = 0;
  for (const OperatorRow& row : report.rows) total += row.total;
  std::string text = fmt::format(
      "steps: {:.4g} TFLOP/s a device; operators with shapes take {:.1f}% of the kernels' time\n",
      all.tflops(), 100 * static_cast<double>(total) / static_cast<double>(report.kernel_time));
  if (all.mfu() <= 0) {
    return text + fmt::format("MFU: the peak of {} is not known for all types: give --peak\n",
                              report.device.empty() ? "the device" : report.device);
  }
  const auto [low, high] = std::ranges::minmax_element(
      report.steps, {}, [](const StepFlops& step) { return step.mfu(); });
  text +=
      fmt::format("MFU: {}{:.2f}%", report.without_shapes > 0 ? "at least " : "", 100 * all.mfu());
  if (report.steps.size() > 1) {
    text += fmt::format(", from {:.2f}% (step {}) to {:.2f}% (step {})", 100 * low->mfu(),
                        low->number, 100 * high->mfu(), high->number);
  }
  return text + fmt::format(" (peak: {})\n", peaks_text(report));
}

}  // namespace

std::string flop_table(const FlopReport& report) {
  std::string text = rows_text(report) + steps_text(report);
  if (report.without_shapes > 0) {
    text += fmt::format(
        "{}FLOPs without {} calls whose shapes or arguments are not recorded (record_shapes=True): "
        "{}\n",
        text.empty() ? "\n" : "", report.without_shapes,
        fmt::join(report.without_shapes_names, ", "));
  }
  if (report.without_kernels > 0) {
    text += fmt::format("FLOPs without {} calls that launched no kernel\n", report.without_kernels);
  }
  return text;
}

ordered_json flop_json(const FlopReport& report) {
  const auto known = [](double value) { return value > 0 ? ordered_json(value) : ordered_json(); };
  const StepFlops all = report.all_steps();
  ordered_json object{{"device", report.device},
                      {"flop", all.flop},
                      {"tflops_per_device", all.tflops()},
                      {"mfu", known(all.mfu())},
                      {"calls_without_shapes", report.without_shapes},
                      {"operators_without_shapes", report.without_shapes_names},
                      {"calls_without_kernels", report.without_kernels},
                      {"steps", ordered_json::array()},
                      {"operators", ordered_json::array()}};
  for (const StepFlops& step : report.steps) {
    object["steps"].push_back({{"number", step.number},
                               {"flop", step.flop},
                               {"tflops_per_device", step.tflops()},
                               {"mfu", known(step.mfu())}});
  }
  for (const OperatorRow& row : report.rows) {
    object["operators"].push_back({{"name", row.name},
                                   {"dtype", row.dtype},
                                   {"shapes", row.shapes},
                                   {"calls", row.calls},
                                   {"flop_per_call", row.flop},
                                   {"bytes_per_call", known(row.bytes)},
                                   {"total_ns", row.total},
                                   {"tflops", row.tflops()},
                                   {"peak_tflops", known(row.peak.tflops)},
                                   {"mfu", known(row.mfu())},
                                   {"roof", known(row.roof())}});
  }
  return object;
}

}  // namespace assay::timeline
