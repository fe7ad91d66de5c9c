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

// "48 s", "3 min 20 s", "2 h 5 min".
std::string duration_text(double seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < kMinute) return fmt::format("{} s", whole);
  if (whole < kHour) return fmt::format("{} min {} s", whole / kMinute, whole % kMinute);
  return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
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

// A case with a new fault, else one with a fault that grew; empty: neither.
std::string worse_case(const RunComparison& compared) {
  for (const FaultState state : {FaultState::added, FaultState::grown}) {
    for (const auto& [key, fault] : compared.faults) {
      if (fault.state == state && !fault.example.text.empty()) return fault.example.text;
    }
  }
  return {};
}

}  // namespace

ApiProgress::ApiProgress(const RunConfig& config, bool quiet, bool with_status, bool verbose)
    : config_(config),
      quiet_(quiet),
      with_status_(with_status),
      verbose_(verbose),
      terminal_(Terminal::of(STDOUT_FILENO)),
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
  if (!quiet_) print_line(terminal_.wrap("note: " + line));
}

void ApiProgress::planned(const Totals& totals) {
  planned_ns_ = monotonic_ns();
  if (quiet_ || !with_status_) return;
  std::string line =
      fmt::format("{} to run in {}", count_of(totals.planned, "case"), seats(config_, totals));
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) line += fmt::format("; {} {}", count, what);
  };
  add(totals.earlier, "finished in earlier sessions");
  add(totals.duplicates, "given more than once");
  add(totals.invalid_lines, totals.invalid_lines == 1 ? "invalid line" : "invalid lines");
  add(totals.other_apis, "of other APIs (--apis-from, -k)");
  print_line(terminal_.wrap(line));
}

void ApiProgress::finished(const FinishedCase& finished, const Totals& totals) {
  const Verdict& verdict = finished.verdict;
  if (verdict.outcome == Outcome::rejected && first_rejected_.empty()) {
    first_rejected_ = fmt::format("{}: {}", finished.text, verdict.message);
  }
  if (quiet_) return;
  const bool worth_showing =
      info(verdict.outcome).failed || (verdict.flags & (kFlaky | kContaminated)) != 0;
  const bool again =
      verdict.outcome == Outcome::invalid && !invalid_.insert(verdict.message).second;
  if (worth_showing && !again && shown_failures_++ < kShownFailures) {
    const std::string kinds = describe_mismatch(verdict.mismatch);
    const std::string flags = describe_flags(verdict.flags);
    const std::string outcome =
        terminal_.paint(paint_of(info(verdict.outcome)), name(verdict.outcome));
    print_line(
        terminal_.wrap(fmt::format("{}{}{}  {}", outcome, kinds.empty() ? "" : " (" + kinds + ")",
                                   flags.empty() ? "" : " [" + flags + "]", finished.text)));
    print_line(terminal_.wrap("    " + verdict.message));
    if (first_failure_.empty() && info(verdict.outcome).failed) first_failure_ = finished.text;
    if (shown_failures_ == kShownFailures) print_line("(the report has all further failures)");
  } else if (verbose_ && !worth_showing) {
    print_line(fmt::format("{}  {}", name(verdict.outcome), finished.text));
  }
  status(totals);
}

void ApiProgress::status(const Totals& totals) {
  if (!with_status_) return;
  const std::int64_t now = monotonic_ns();
  const bool last = totals.finished == totals.planned;
  if (!last && now - status_ns_ < (terminal_.is_tty ? kTerminalNs : kLogNs)) return;
  status_ns_ = now;
  // Rounded down, so that 100% means the end.
  const std::uint64_t percent = totals.planned == 0 ? 100 : 100 * totals.finished / totals.planned;
  const double running = seconds_since(planned_ns_);
  const double rate = running > 0 ? static_cast<double>(totals.finished) / running : 0;
  std::string fails = fmt::format("{} failed", failed(totals));
  if (failed(totals) > 0) fails = terminal_.paint(Paint::red, fails);
  std::string line = fmt::format("[{:>3}%] {} of {}, {}, {:.0f} cases/s, {} elapsed", percent,
                                 totals.finished, count_of(totals.planned, "case"), fails, rate,
                                 duration_text(seconds_since(started_ns_)));
  if (!last && rate > 0) {
    line +=
        fmt::format(", about {} remaining",
                    duration_text(static_cast<double>(totals.planned - totals.finished) / rate));
  }
  if (terminal_.is_tty) {
    std::fputs(kEraseLine, stdout);
    show_painted(stdout, terminal_.cut(line));
    std::fflush(stdout);
  } else {
    print_line(line);
  }
}

void ApiProgress::print_line(const std::string& line) {
  if (terminal_.is_tty) std::fputs(kEraseLine, stdout);
  show_painted(stdout, line + "\n");
  std::fflush(stdout);
}

void ApiProgress::finish(const RunSummary& summary, const RunReport& report,
                         const RunComparison* compared) {
  print_line(fmt::format(
      "\n{}",
      outcome_table(report, config_.store.empty() ? config_.folder.string() : "", terminal_)));
  if (!first_rejected_.empty()) {
    print_line(terminal_.wrap("rejected, for example: " + first_rejected_));
  }
  std::string where = seats(config_, summary.totals);
  for (const ServerInfo& framework : summary.frameworks) {
    where += fmt::format(", {} {}", framework.framework, framework.version);
  }
  print_line(fmt::format("{} in {:.1f} s: {}", count_of(summary.totals.finished, "case"),
                         seconds_since(started_ns_), where));
  print_line(
      fmt::format("results: {} (report.html, run.db, api_config_*.txt)", config_.folder.string()));
  const std::string again = compared == nullptr ? first_failure_ : worse_case(*compared);
  if (!again.empty()) print_line("one case again: " + rerun_command(again, settings_));
  if (summary.ending == RunEnding::interrupted) {
    print_line(fmt::format("interrupted; continue with the same command and --log_dir={}",
                           config_.folder.string()));
  }
}

}  // namespace assay
