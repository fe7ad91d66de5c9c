#include "report/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fd.h"
#include "case/utf8.h"
#include "report/run_report.h"

namespace assay {
namespace {

// Text for XML 1.0: markup is escaped; what XML has no way to write (control characters, bytes that
// are no UTF-8, as invalid lines may hold) becomes '?'.
std::string escaped(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t good = find_bad_byte(text);
    for (const char c : text.substr(0, good)) {
      switch (c) {
        case '<':
          safe += "&lt;";
          break;
        case '>':
          safe += "&gt;";
          break;
        case '&':
          safe += "&amp;";
          break;
        case '"':
          safe += "&quot;";
          break;
        case '\n':
          safe += "&#10;";
          break;  // a bare one is a blank in an attribute
        default:
          safe += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
      }
    }
    if (good < text.size()) safe += '?';
    text.remove_prefix(std::min(good + 1, text.size()));
  }
  return safe;
}

bool is_skipped(Outcome outcome) {
  return outcome == Outcome::unsupported || outcome == Outcome::skip ||
         outcome == Outcome::no_kernel;
}

}  // namespace

Status write_junit(RunStore& store, const std::filesystem::path& file) {
  std::string body;
  std::uint64_t tests = 0;
  std::uint64_t failures = 0;
  std::uint64_t skipped = 0;
  ASSAY_TRY(const auto properties, store.properties());
  ASSAY_CHECK(store.each_finished([&](const FinishedCase& finished) -> Status {
    const Verdict& verdict = finished.verdict;
    ++tests;
    body += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", escaped(api_of(finished.text)),
                        escaped(finished.text));
    if (info(verdict.outcome).failed) {
      ++failures;
      body +=
          fmt::format(">\n    <failure type=\"{}\" message=\"{}\">{}</failure>\n  </testcase>\n",
                      name(verdict.outcome), escaped(verdict.message),
                      escaped(rerun_command(finished.text, properties)));
    } else if (is_skipped(verdict.outcome)) {
      ++skipped;
      body += fmt::format(">\n    <skipped message=\"{}: {}\"/>\n  </testcase>\n",
                          name(verdict.outcome), escaped(verdict.message));
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
        escaped(line.where), escaped(line.message), escaped(line.text));
    return {};
  }));
  return write_file(file, fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                      "<testsuite name=\"assay\" tests=\"{}\" failures=\"{}\" "
                                      "skipped=\"{}\">\n{}</testsuite>\n",
                                      tests, failures, skipped, body));
}

}  // namespace assay
