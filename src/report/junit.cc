#include "report/junit.h"

#include <fmt/format.h>

#include "base/fd.h"
#include "base/markup.h"
#include "report/run_report.h"

namespace assay {
namespace {

bool is_skipped(Outcome outcome) {
  return outcome == Outcome::unsupported || outcome == Outcome::skip ||
         outcome == Outcome::no_kernel;
}

}  // namespace

Status write_junit(Store& store, const std::filesystem::path& file) {
  std::string body;
  std::uint64_t tests = 0;
  std::uint64_t failures = 0;
  std::uint64_t skipped = 0;
  ASSAY_TRY(const auto properties, store.properties());
  ASSAY_CHECK(store.each_finished([&](const FinishedCase& finished) -> Status {
    const Verdict& verdict = finished.verdict;
    ++tests;
    body += fmt::format("  <testcase classname=\"{}\" name=\"{}\"",
                        escape_markup(api_of(finished.text)), escape_markup(finished.text));
    if (info(verdict.outcome).failed) {
      ++failures;
      body +=
          fmt::format(">\n    <failure type=\"{}\" message=\"{}\">{}</failure>\n  </testcase>\n",
                      name(verdict.outcome), escape_markup(verdict.message),
                      escape_markup(rerun_command(finished.text, properties)));
    } else if (is_skipped(verdict.outcome)) {
      ++skipped;
      body += fmt::format(">\n    <skipped message=\"{}: {}\"/>\n  </testcase>\n",
                          name(verdict.outcome), escape_markup(verdict.message));
    } else {
      body += "/>\n";
    }
    return {};
  }));
  ASSAY_CHECK(store.each_invalid([&](const InvalidLine& line) -> Status {
    ++tests;
    ++failures;
    body += fmt::format(
        "  <testcase classname=\"invalid\" name=\"{}\">\n    <failure "
        "type=\"invalid\" message=\"{}\">{}</failure>\n  </testcase>\n",
        escape_markup(line.where), escape_markup(line.message), escape_markup(line.text));
    return {};
  }));
  return write_file(file, fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                      "<testsuite name=\"assay\" tests=\"{}\" failures=\"{}\" "
                                      "skipped=\"{}\">\n{}</testsuite>\n",
                                      tests, failures, skipped, body));
}

}  // namespace assay
