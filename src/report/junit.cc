#include "report/junit.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/markup.h"
#include "report/run_report.h"

namespace assay {
namespace {

bool is_skipped(Outcome outcome) {
  return outcome == Outcome::unsupported || outcome == Outcome::skip ||
         outcome == Outcome::no_kernel;
}

class JunitWriter {
 public:
  explicit JunitWriter(const JunitOptions& options) : options_(options) {
    if (options.comparison == nullptr) return;
    for (const ChangedCase& changed : options.comparison->changes) {
      if (changed.change == Change::new_failure) new_.insert(changed.id);
      if (changed.change == Change::lost) lost_.insert(changed.id);
    }
  }

  // `again` is the text of a failure: what shows it again.
  void add(std::uint64_t id, std::string_view api, std::string_view text, const Verdict& verdict,
           const std::string& again) {
    ++tests_;
    body_ += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", escape_markup(api),
                         escape_markup(text));
    const bool flaky = (verdict.flags & kFlaky) != 0 && !info(verdict.outcome).failed;
    const std::string_view type = flaky ? "flaky" : name(verdict.outcome);
    if (counts_as_failure(verdict, options_.strict) && is_known(id)) {
      skip(fmt::format("known {}: {}", type, verdict.message));
    } else if (counts_as_failure(verdict, options_.strict)) {
      fail(type, verdict.message, again);
    } else if (lost_.contains(id)) {
      fail("lost", fmt::format("no longer tested: {} {}", type, verdict.message), again);
    } else if (is_skipped(verdict.outcome)) {
      skip(fmt::format("{}: {}", type, verdict.message));
    } else if (flaky) {
      body_ += fmt::format(">\n    <flakyFailure type=\"flaky\" message=\"{}\"/>\n  </testcase>\n",
                           escape_markup(verdict.message));
    } else {
      body_ += "/>\n";
    }
  }

  std::string document() const {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"assay\" tests=\"{}\" "
        "failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
        tests_, failures_, skipped_, body_);
  }

 private:
  bool is_known(std::uint64_t id) const {
    return options_.comparison != nullptr && !new_.contains(id);
  }

  void fail(std::string_view type, std::string_view message, std::string_view again) {
    ++failures_;
    body_ += fmt::format(">\n    <failure type=\"{}\" message=\"{}\">{}</failure>\n  </testcase>\n",
                         type, escape_markup(message), escape_markup(again));
  }

  void skip(std::string_view message) {
    ++skipped_;
    body_ +=
        fmt::format(">\n    <skipped message=\"{}\"/>\n  </testcase>\n", escape_markup(message));
  }

  const JunitOptions& options_;
  std::unordered_set<std::uint64_t> new_;
  std::unordered_set<std::uint64_t> lost_;
  std::string body_;
  std::uint64_t tests_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace

Status write_junit(RunReader& run, const JunitOptions& options, const std::filesystem::path& file) {
  JunitWriter writer(options);
  ASSAY_TRY(const auto properties, run.properties());
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    writer.add(finished.id, api_of(finished.text), finished.text, finished.verdict,
               rerun_command(finished.text, properties));
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    Verdict verdict;
    verdict.outcome = Outcome::invalid;
    verdict.message = line.message;
    writer.add(invalid_line_id(line), name(verdict.outcome), line.where, verdict, line.text);
    return {};
  }));
  return write_file(file, writer.document());
}

}  // namespace assay
