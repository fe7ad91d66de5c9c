#include "report/junit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/markup.h"
#include "case/case_traits.h"
#include "report/fault_element.h"
#include "report/inputs.h"
#include "report/run_report.h"

namespace assay {
namespace {

bool is_flaky(const Verdict& verdict) {
  return (verdict.flags & kFlaky) != 0 && !info(verdict.outcome).failed;
}

struct Shown {
  std::string_view api;
  std::string_view name;
  std::uint64_t id = 0;  // of the case; 0: no case
  Verdict verdict;
  std::string again;                     // the command that repeats a failure
  FaultState state = FaultState::added;  // of its faults, where the run is compared
  std::int64_t us = 0;                   // in its slot
};

std::string seconds_text(std::int64_t us) {
  return fmt::format("{:.6f}", static_cast<double>(us) / 1e6);
}

struct Suite {
  std::vector<std::string> cases;
  std::int64_t tests = 0;
  std::int64_t failures = 0;
  std::int64_t skipped = 0;
  std::int64_t us = 0;                         // of all its cases
  std::int64_t listed_us = 0;                  // of those in `cases`
  std::map<std::string, std::int64_t> others;  // that are not in `cases`, by what they came to
};

class JunitWriter {
 public:
  JunitWriter(const JunitOptions& options, bool each_case)
      : options_(options), each_case_(each_case) {}

  // Counts cases that are not listed one by one.
  void count(std::string_view api, const Verdict& verdict, const TallySums& sums) {
    Suite& suite = suites_[std::string(api)];
    const Kind kind = usual_kind(verdict);
    count(suite, kind, sums.cases);
    suite.us += sums.took_us;
    suite.others[word(kind, verdict)] += sums.cases;
  }
  // One of the counted cases: it is listed where it fails and there is room.
  void list_counted(const Shown& shown) {
    const Kind kind = kind_of(shown);
    if (!is_failure(kind) || listed_[word(kind, shown.verdict)] == options_.most_failures) return;
    Suite& suite = suites_[std::string(shown.api)];
    const Kind was = usual_kind(shown.verdict);
    count(suite, was, -1);
    suite.us -= shown.us;
    suite.others[word(was, shown.verdict)] -= 1;
    add(shown);
  }
  // Lists a case.
  void add(const Shown& shown) {
    Suite& suite = suites_[std::string(shown.api)];
    const Kind kind = kind_of(shown);
    count(suite, kind, 1);
    suite.us += shown.us;
    list(suite, kind, shown);
  }
  // Coverage that was lost is a failure of its API.
  void add(const LostCoverage& lost) {
    Suite& suite = suites_[lost.api];
    count(suite, Kind::lost, 1);
    Shown shown;
    shown.api = lost.api;
    const std::string name = "coverage " + lost.dtype;
    shown.name = name;
    shown.verdict.outcome = lost.rejected ? Outcome::rejected : Outcome::skip;
    shown.verdict.message = lost.text();
    list(suite, Kind::lost, shown);
  }

  // Adds the elements of listed failures to their test cases.
  Status add_elements(RunReader& run, std::uint64_t seed) {
    std::vector<std::uint64_t> ids;
    ids.reserve(failures_.size());
    for (const auto& [id, testcase] : failures_) ids.push_back(id);
    return each_with_lanes(run, ids, [&](const FinishedCase& each, const wire::Record& record) {
      auto element = element_of(each.text, each.id, seed, record, each.verdict.fault());
      const auto at = failures_.find(each.id);
      if (!element || at == failures_.end()) return;
      std::string& text = at->second.first->cases[at->second.second];
      text.insert(text.rfind("</failure>"), escape_markup("\n" + element->lines()));
    });
  }

  std::string document() {
    Suite all;
    std::string text;
    for (const auto& [api, suite] : suites_) {
      all.tests += suite.tests;
      all.failures += suite.failures;
      all.skipped += suite.skipped;
      all.us += suite.us;
      text += fmt::format("  <testsuite name=\"{}\" {}>\n{}{}  </testsuite>\n", escape_markup(api),
                          numbers(suite), fmt::join(suite.cases, ""), others(api, suite));
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\" {}>\n{}"
        "</testsuites>\n",
        numbers(all), text);
  }

 private:
  enum class Kind { fails, lost, known, skipped, flaky, passes };

  static bool is_failure(Kind kind) { return kind == Kind::fails || kind == Kind::lost; }

  // Of a case that is no change.
  Kind usual_kind(const Verdict& verdict) const {
    if (counts_as_failure(verdict, options_.strict)) {
      return options_.comparison != nullptr ? Kind::known : Kind::fails;
    }
    if (is_untested(verdict.outcome)) return Kind::skipped;
    return is_flaky(verdict) ? Kind::flaky : Kind::passes;
  }

  Kind kind_of(const Shown& shown) const {
    const Kind kind = usual_kind(shown.verdict);
    return kind == Kind::known && shown.state != FaultState::known ? Kind::fails : kind;
  }

  static std::string word(Kind kind, const Verdict& verdict) {
    const std::string_view type = is_flaky(verdict) ? "flaky" : name(verdict.outcome);
    if (kind == Kind::known) return fmt::format("known {}", type);
    return kind == Kind::lost ? "lost" : std::string(type);
  }

  static void count(Suite& suite, Kind kind, std::int64_t cases) {
    suite.tests += cases;
    if (is_failure(kind)) suite.failures += cases;
    if (kind == Kind::known || kind == Kind::skipped) suite.skipped += cases;
  }

  void list(Suite& suite, Kind kind, const Shown& shown) {
    const std::string type = word(kind, shown.verdict);
    ++listed_[type];
    const std::string& message = shown.verdict.message;
    suite.listed_us += shown.us;
    std::string testcase =
        fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
                    escape_markup(shown.api), escape_markup(shown.name), seconds_text(shown.us));
    if (is_failure(kind)) {
      const std::string why =
          kind == Kind::lost ? fmt::format("coverage lost: {}", message) : message;
      testcase += fmt::format(
          ">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n", type,
          escape_markup(why), escape_markup(shown.again));
      if (shown.id != 0) failures_[shown.id] = {&suite, suite.cases.size()};
    } else if (kind == Kind::known || kind == Kind::skipped) {
      testcase += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                              escape_markup(fmt::format("{}: {}", type, message)));
    } else if (kind == Kind::flaky) {
      testcase +=
          fmt::format(">\n      <flakyFailure type=\"flaky\" message=\"{}\"/>\n    </testcase>\n",
                      escape_markup(message));
    } else {
      testcase += "/>\n";
    }
    suite.cases.push_back(std::move(testcase));
  }

  static std::string numbers(const Suite& suite) {
    return fmt::format("tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{}\"", suite.tests,
                       suite.failures, suite.skipped, seconds_text(suite.us));
  }

  // The test case that stands for those that are not listed; it is there also where none is left,
  // so that a CI server knows it from one run to the next.
  std::string others(std::string_view api, const Suite& suite) const {
    if (each_case_) return {};
    std::string words;
    for (const auto& [type, cases] : suite.others) {
      if (cases > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", cases, type);
    }
    return fmt::format(
        "    <testcase classname=\"{}\" name=\"all other cases\" time=\"{}\">\n"
        "      <system-out>{}</system-out>\n    </testcase>\n",
        escape_markup(api), seconds_text(suite.us - suite.listed_us),
        escape_markup(words.empty() ? "none" : words));
  }

  const JunitOptions& options_;
  bool each_case_;
  std::map<std::string, Suite> suites_;
  std::map<std::string, std::uint64_t> listed_;  // by what they came to
  // Where the test case of a failed case is: its suite, and its index there.
  std::map<std::uint64_t, std::pair<Suite*, std::size_t>> failures_;
};

}  // namespace

Status write_junit(RunReader& run, const JunitOptions& options, const std::filesystem::path& file) {
  ASSAY_TRY(const auto properties, run.properties());
  ASSAY_TRY(const Tally tally, run.tally());
  const bool each_case = static_cast<std::uint64_t>(tally.finished()) <= options.each_case_up_to;
  const auto shown = [&](const FinishedCase& finished) {
    const bool compared = options.comparison != nullptr;
    return Shown{api_of(finished.text),
                 finished.text,
                 finished.id,
                 finished.verdict,
                 rerun_command(finished.text, properties),
                 compared ? options.comparison->state_of(finished) : FaultState::added,
                 static_cast<std::int64_t>(finished.took_us)};
  };
  JunitWriter writer(options, each_case);
  RunQuery query;
  query.records = false;
  if (!each_case) {
    for (const auto& [key, sums] : tally.cases()) {
      Verdict verdict;
      verdict.outcome = key.outcome;
      verdict.flags = key.flags;
      writer.count(key.traits.api, verdict, sums);
    }
    query.rows = options.strict ? RunQuery::Rows::listed : RunQuery::Rows::failed;
    // With a comparison any of them may be new.
    if (options.comparison == nullptr) query.most = options.most_failures;
  }
  ASSAY_CHECK(run.each(query, [&](const FinishedCase& finished) -> Status {
    each_case ? writer.add(shown(finished)) : writer.list_counted(shown(finished));
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    Shown invalid{name(Outcome::invalid), line.where, 0, {}, line.text};
    invalid.verdict.outcome = Outcome::invalid;
    invalid.verdict.message = line.message;
    if (options.comparison != nullptr) {
      const auto found = options.comparison->faults.find(key_of(line));
      if (found != options.comparison->faults.end()) invalid.state = found->second.state;
    }
    writer.add(invalid);
    return {};
  }));
  if (options.comparison != nullptr) {
    for (const LostCoverage& lost : options.comparison->lost) writer.add(lost);
  }
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  ASSAY_CHECK(writer.add_elements(run, seed));
  return write_file(file, writer.document());
}

}  // namespace assay
