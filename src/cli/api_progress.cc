#include "cli/api_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/terminal.h"
#include "base/text.h"
#include "engine/lane_plan.h"
#include "engine/run_properties.h"

namespace assay {
namespace {

constexpr std::int64_t kTerminalNs = 100'000'000;  // between status lines on a terminal
constexpr std::int64_t kLogNs = 10'000'000'000;    // between status lines in a file
constexpr std::uint64_t kShownFailures = 200;      // the report has all
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

// The device of a lane, in words.
std::string place_of(const std::string& device, const RunConfig& config) {
  if (device == "cpu") return "the CPU";
  if (device != kAnyGpu && device != kNextGpu) return device;
  return config.gpus.size() == 1 ? "a GPU" : count_of(config.gpus.size(), "GPU");
}

// How many slots have work, and on which devices their lanes run.
std::string seats(const RunConfig& config, const Totals& totals) {
  // Another process may add cases to a database.
  const bool all_known = config.store.empty() && totals.planned > 0;
  const auto slots =
      all_known ? std::min<std::uint64_t>(config.slots, totals.planned) : config.slots;
  const std::vector<PlannedLane> lanes = plan_lanes(config);
  const std::string test = place_of(lanes.front().spec.device, config);
  const std::string reference = place_of(lanes.back().spec.device, config);
  const std::string where =
      test == reference ? " on " + test
                        : fmt::format(", test lane on {}, reference lane on {}", test, reference);
  return count_of(slots, "slot") + where;
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
  std::string line =
      fmt::format("{} to run in {}", count_of(totals.planned, "case"), seats(config_, totals));
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) line += fmt::format("; {} {}", count, what);
  };
  add(totals.earlier, "finished in earlier sessions");
  add(totals.duplicates, "given more than once");
  add(totals.invalid_lines, "invalid lines");
  add(totals.other_apis, "of other APIs (--apis-from, -k)");
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
    if (shown_failures_ == kShownFailures) print_line("(the report has all further failures)");
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
  // Rounded down, so that 100% means the end.
  const std::uint64_t percent = totals.planned == 0 ? 100 : 100 * totals.finished / totals.planned;
  const std::string line =
      fmt::format("[{:>3}%] {} of {}, {} failed, {:.0f} cases/s, {:.0f} s", percent,
                  totals.finished, count_of(totals.planned, "case"), failed(totals),
                  static_cast<double>(totals.finished) / seconds, seconds);
  if (terminal_) {
    std::fputs(kEraseLine, stdout);
    show_text(stdout, line);
    std::fflush(stdout);
  } else {
    print_line(line);
  }
}

void ApiProgress::print_line(const std::string& line) {
  if (terminal_) std::fputs(kEraseLine, stdout);
  show_line(stdout, line);
}

void ApiProgress::finish(const RunSummary& summary, const RunReport& report) {
  if (terminal_) std::fputs(kEraseLine, stdout);
  show(stdout, "\n{}\n",
       outcome_table(report, config_.store.empty() ? config_.folder.string() : ""));
  std::string where = seats(config_, summary.totals);
  for (const ServerInfo& framework : summary.frameworks) {
    where += fmt::format(", {} {}", framework.framework, framework.version);
  }
  print_line(fmt::format("{} in {:.1f} s: {}", count_of(summary.totals.finished, "case"),
                         seconds_since(started_ns_), where));
  print_line(
      fmt::format("results: {} (report.html, run.db, api_config_*.txt)", config_.folder.string()));
  if (summary.ending == RunEnding::interrupted) {
    print_line(fmt::format("interrupted; continue with the same command and --log_dir={}",
                           config_.folder.string()));
  }
}

}  // namespace assay
