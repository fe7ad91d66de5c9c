#include "report/text_logs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <ctime>
#include <map>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "case/canonical.h"
#include "report/run_report.h"

namespace assay {
namespace {

constexpr std::string_view kCheckpoint = "checkpoint.txt";
constexpr std::string_view kInOrder = "log_inorder.log";

std::string in_order_entry(const FinishedCase& finished,
                           const std::map<std::string, std::string>& properties) {
  const Verdict& verdict = finished.verdict;
  const auto seconds = static_cast<std::time_t>(finished.finished_ms / 1000);
  std::string entry = fmt::format("{:%Y-%m-%d %H:%M:%S} [{}] {}\n", fmt::localtime(seconds),
                                  name(verdict.outcome), finished.text);
  const auto detail = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) entry += fmt::format("  {}: {}\n", label, text);
  };
  detail("id", format_case_id(finished.id));
  detail("kind", describe_mismatch(verdict.mismatch));
  detail("flags", describe_flags(verdict.flags));
  detail("lane", verdict.lane);
  detail("message", verdict.message);
  if (info(verdict.outcome).failed) detail("again", rerun_command(finished.text, properties));
  return entry;
}

}  // namespace

Status export_text_logs(RunReader& run, const std::filesystem::path& folder) {
  std::map<std::string_view, std::string> files;
  files[kCheckpoint];
  files[kInOrder];
  for (const OutcomeInfo& outcome : kOutcomes) files[outcome.log];
  ASSAY_TRY(const auto properties, run.properties());
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    const std::string line = std::string(finished.text) + "\n";
    files[kCheckpoint] += line;
    files[info(finished.verdict.outcome).log] += line;
    files[kInOrder] += in_order_entry(finished, properties);
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    files[info(Outcome::invalid).log] += line.text + "\n";
    files[kInOrder] +=
        fmt::format("{} [invalid] {}\n  message: {}\n", line.where, line.text, line.message);
    return {};
  }));
  for (const auto& [file, text] : files) {
    std::error_code ignored;
    if (text.empty()) {
      std::filesystem::remove(folder / file, ignored);  // of an earlier session
      continue;
    }
    ASSAY_CHECK(write_file(folder / file, text));
  }
  return {};
}

}  // namespace assay
