#include "report/text_logs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/text.h"
#include "case/canonical.h"
#include "report/run_report.h"

namespace assay {
namespace {

constexpr std::string_view kCheckpoint = "checkpoint.txt";
constexpr std::string_view kInOrder = "log_inorder.log";

// Formats local time in seconds. Caches the last text, because many cases share a second.
class TimeText {
 public:
  const std::string& at(std::int64_t ms) {
    const auto second = static_cast<std::time_t>(ms / 1000);
    if (text_.empty() || second != second_) {
      text_ = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(second));
      second_ = second;
    }
    return text_;
  }

 private:
  std::time_t second_ = 0;
  std::string text_;
};

// A file that is created when something is added to it.
class LogFile {
 public:
  explicit LogFile(std::filesystem::path path) : path_(std::move(path)) {}

  // The buffer to append to. Call flush_if_long() after whole lines.
  std::string& text() { return text_; }
  Status flush_if_long() { return text_.size() < kFlushAt ? Status() : flush(); }

  // Replaces the old file, or removes it if nothing was added.
  Status commit() {
    ASSAY_CHECK(flush());
    if (file_) return file_->commit();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    return {};
  }

 private:
  static constexpr std::size_t kFlushAt = 1 << 16;

  Status flush() {
    if (text_.empty()) return {};
    if (!file_) {
      ASSAY_TRY(AtomicFile created, AtomicFile::create(path_));
      file_ = std::move(created);
    }
    ASSAY_CHECK(file_->write(text_));
    text_.clear();
    return {};
  }

  std::filesystem::path path_;
  std::string text_;
  std::optional<AtomicFile> file_;
};

void add_in_order(const FinishedCase& finished, const std::string& time,
                  const std::map<std::string, std::string>& properties, std::string& log) {
  const Verdict& verdict = finished.verdict;
  const auto to = std::back_inserter(log);
  fmt::format_to(to, "{} [{}] {}\n", time, name(verdict.outcome), one_line(finished.text));
  const auto detail = [&](std::string_view label, std::string_view text) {
    if (!text.empty()) fmt::format_to(to, "  {}: {}\n", label, one_line(text));
  };
  detail("id", format_case_id(finished.id));
  detail("kind", describe_mismatch(verdict.mismatch));
  detail("flags", describe_flags(verdict.flags));
  detail("lane", verdict.lane);
  detail("message", verdict.message);
  if (info(verdict.outcome).failed) detail("again", rerun_command(finished.text, properties));
}

}  // namespace

Status export_text_logs(RunReader& run, const std::filesystem::path& folder) {
  std::map<std::string_view, LogFile> files;
  const auto file = [&](std::string_view name) -> LogFile& {
    return files.try_emplace(name, folder / name).first->second;
  };
  LogFile& checkpoint = file(kCheckpoint);
  LogFile& in_order = file(kInOrder);
  std::array<LogFile*, kOutcomes.size()> of_outcome{};
  for (const OutcomeInfo& outcome : kOutcomes) {
    of_outcome.at(static_cast<std::size_t>(outcome.outcome)) = &file(outcome.log);
  }
  ASSAY_TRY(const auto properties, run.properties());
  TimeText time;
  const auto add = [&](const FinishedCase& finished) -> Status {
    const auto outcome = static_cast<std::size_t>(finished.verdict.outcome);
    const std::string line = one_line(finished.text);
    for (LogFile* log : {&checkpoint, of_outcome.at(outcome)}) {
      log->text().append(line).push_back('\n');
      ASSAY_CHECK(log->flush_if_long());
    }
    add_in_order(finished, time.at(finished.finished_ms), properties, in_order.text());
    return in_order.flush_if_long();
  };
  LogFile& invalid = *of_outcome.at(static_cast<std::size_t>(Outcome::invalid));
  const auto add_invalid = [&](const InvalidLine& line) -> Status {
    invalid.text() += one_line(line.text) + "\n";
    fmt::format_to(std::back_inserter(in_order.text()), "{} [invalid] {}\n  message: {}\n",
                   one_line(line.where), one_line(line.text), one_line(line.message));
    ASSAY_CHECK(invalid.flush_if_long());
    return in_order.flush_if_long();
  };
  ASSAY_CHECK(run.each_finished(add));
  ASSAY_CHECK(run.each_invalid(add_invalid));
  for (auto& [name, log] : files) ASSAY_CHECK(log.commit());
  return {};
}

}  // namespace assay
