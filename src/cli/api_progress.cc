#include "cli/api_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "engine/run_properties.h"

namespace assay {
namespace {

constexpr std::int64_t kTerminalNs = 100'000'000;  // between status lines
constexpr std::int64_t kLogNs = 10'000'000'000;    // where output goes to a file
constexpr std::uint64_t kShownFailures = 200;      // all are in the report
constexpr const char* kEraseLine = "\r\x1b[K";

double seconds_since(std::int64_t started_ns) {
  return static_cast<double>(monotonic_ns() - started_ns) / 1e9;
}

std::uint64_t failed(const Totals& totals) {
  std::uint64_t sum = 0;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed) sum += totals.outcomes[static_cast<std::size_t>(outcome.outcome)];
  }
  return sum;
}

}  // namespace

ApiProgress::ApiProgress(const RunConfig& config, bool quiet, bool with_status)
    : config_(config),
      quiet_(quiet),
      with_status_(with_status),
      terminal_(::isatty(STDOUT_FILENO) == 1),
      settings_(verdict_settings(config)),
      started_ns_(monotonic_ns()) {
  settings_.insert(config.rerun_flags.begin(), config.rerun_flags.end());
}

RunObserver ApiProgress::observer() {
  RunObserver observer;
  observer.planned = [this](const Totals& totals) { planned(totals); };
  observer.finished = [this](const FinishedCase& done, const Totals& totals) {
    finished(done, totals);
  };
  observer.note = [this](const std::string& line) { note(line); };
  return observer;
}

void ApiProgress::note(const std::string& line) {
  if (!quiet_) print_line("note: " + line);
}

void ApiProgress::planned(const Totals& totals) {
  if (quiet_ || !with_status_) return;
  std::string line = fmt::format("{} cases to run in {} slots on {}", totals.planned, config_.slots,
                                 config_.test.device);
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) line += fmt::format("; {} {}", count, what);
  };
  add(totals.earlier, "finished in earlier sessions");
  add(totals.duplicates, "given more than once");
  add(totals.invalid_lines, "invalid lines");
  add(totals.other_apis, "of APIs that the diff does not name");
  print_line(line);
}

void ApiProgress::finished(const FinishedCase& finished, const Totals& totals) {
  if (quiet_) return;
  const Verdict& verdict = finished.verdict;
  const bool worth_showing =
      info(verdict.outcome).failed || (verdict.flags & (kFlaky | kContaminated)) != 0;
  if (worth_showing && shown_failures_++ < kShownFailures) {
    const std::string kinds = describe_mismatch(verdict.mismatch);
    const std::string flags = describe_flags(verdict.flags);
    print_line(fmt::format("{}{}{}  {}", name(verdict.outcome),
                           kinds.empty() ? "" : " (" + kinds + ")",
                           flags.empty() ? "" : " [" + flags + "]", finished.text));
    print_line("    " + verdict.message);
    print_line("    again: " + rerun_command(finished.text, settings_));
    if (shown_failures_ == kShownFailures) print_line("(more failures are in the report)");
  }
  status(totals);
}

void ApiProgress::status(const Totals& totals) {
  if (!with_status_) return;
  const std::int64_t now = monotonic_ns();
  const bool last = totals.finished == totals.planned;
  if (!last && now - status_ns_ < (terminal_ ? kTerminalNs : kLogNs)) return;
  status_ns_ = now;
  const double seconds = seconds_since(started_ns_);
  const std::string line = fmt::format(
      "[{:>3.0f}%] {} of {} cases, {} failed, {:.0f} cases/s, {:.0f} s",
      totals.planned == 0
          ? 100.0
          : 100.0 * static_cast<double>(totals.finished) / static_cast<double>(totals.planned),
      totals.finished, totals.planned, failed(totals),
      static_cast<double>(totals.finished) / seconds, seconds);
  if (terminal_) {
    std::fputs((kEraseLine + line).c_str(), stdout);
    std::fflush(stdout);
  } else {
    print_line(line);
  }
}

void ApiProgress::print_line(const std::string& line) {
  if (terminal_) std::fputs(kEraseLine, stdout);
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void ApiProgress::finish(const RunSummary& summary, const RunReport& report) {
  print_line(fmt::format("\n{}", outcome_table(report)));
  std::string where = config_.slots == 1 ? "1 slot" : fmt::format("{} slots", config_.slots);
  where += config_.gpus.empty()       ? " on the CPU"
           : config_.gpus.size() == 1 ? " on a GPU"
                                      : fmt::format(" on {} GPUs", config_.gpus.size());
  for (const ServerInfo& framework : summary.frameworks) {
    where += fmt::format(", {} {}", framework.framework, framework.version);
  }
  print_line(fmt::format("{} cases in {:.1f} s: {}", summary.totals.finished,
                         seconds_since(started_ns_), where));
  print_line(
      fmt::format("results: {} (report.html, run.db, api_config_*.txt)", config_.folder.string()));
  if (summary.ending == RunEnding::interrupted) {
    print_line(fmt::format("interrupted; go on with the same command and --log_dir={}",
                           config_.folder.string()));
  }
}

}  // namespace assay
