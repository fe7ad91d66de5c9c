#include "report/junit.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "base/atomic_file.h"
#include "base/markup.h"
#include "report/run_report.h"
#include "store/case_traits.h"
#include "store/quick_reader.h"

namespace assay {
namespace {

bool is_skipped(Outcome outcome) {
  return outcome == Outcome::unsupported || outcome == Outcome::skip ||
         outcome == Outcome::no_kernel;
}

bool is_flaky(const Verdict& verdict) {
  return (verdict.flags & kFlaky) != 0 && !info(verdict.outcome).failed;
}

struct Shown {
  std::uint64_t id = 0;
  std::string_view api;
  std::string_view name;
  Verdict verdict;
  std::string again;  // what shows a failure again
};

struct Suite {
  std::string cases;
  std::int64_t tests = 0;
  std::int64_t failures = 0;
  std::int64_t skipped = 0;
  std::map<std::string, std::int64_t> others;  // that are not in `cases`, by what they came to
};

class JunitWriter {
 public:
  JunitWriter(const JunitOptions& options, bool each_case)
      : options_(options), each_case_(each_case) {
    if (options.comparison == nullptr) return;
    for (const ChangedCase& changed : options.comparison->changes) {
      if (changed.change == Change::new_failure || changed.change == Change::lost) {
        changes_[changed.id] = changed.change;
      }
    }
  }

  // A case, listed or counted.
  void add(const Shown& shown) {
    Suite& suite = suites_[std::string(shown.api)];
    const Kind kind = kind_of(shown);
    count(suite, kind, 1);
    if (!each_case_ && !is_failure(kind)) {
      suite.others[word(kind, shown.verdict)] += 1;
    } else if (!each_case_ && listed_[word(kind, shown.verdict)] == options_.most_failures) {
      suite.others[word(kind, shown.verdict)] += 1;
    } else {
      list(suite, kind, shown);
    }
  }

  // Cases of which nobody knows yet whether they will be listed: with a comparison none of them
  // fails in a new way.
  void count(std::string_view api, const Verdict& verdict, std::int64_t cases) {
    Suite& suite = suites_[std::string(api)];
    const Kind kind = usual_kind(verdict);
    count(suite, kind, cases);
    suite.others[word(kind, verdict)] += cases;
  }
  // One of them: it is listed, where it fails and there is room.
  void list_counted(const Shown& shown) {
    Suite& suite = suites_[std::string(shown.api)];
    const Kind was = usual_kind(shown.verdict);
    const Kind kind = kind_of(shown);
    if (!is_failure(kind)) return;
    count(suite, was, -1);
    suite.others[word(was, shown.verdict)] -= 1;
    add(shown);
  }

  std::string document() {
    Suite all;
    std::string text;
    for (const auto& [api, suite] : suites_) {
      all.tests += suite.tests;
      all.failures += suite.failures;
      all.skipped += suite.skipped;
      text += fmt::format("  <testsuite name=\"{}\" {}>\n{}{}  </testsuite>\n", escape_markup(api),
                          numbers(suite), suite.cases, others(api, suite));
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
    if (is_skipped(verdict.outcome)) return Kind::skipped;
    return is_flaky(verdict) ? Kind::flaky : Kind::passes;
  }

  Kind kind_of(const Shown& shown) const {
    const auto changed = changes_.find(shown.id);
    if (changed == changes_.end()) return usual_kind(shown.verdict);
    return changed->second == Change::lost ? Kind::lost : Kind::fails;
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
    suite.cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                               escape_markup(shown.api), escape_markup(shown.name));
    if (is_failure(kind)) {
      const std::string why = kind == Kind::lost ? fmt::format("no longer tested: {} {}",
                                                               name(shown.verdict.outcome), message)
                                                 : message;
      suite.cases += fmt::format(
          ">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n", type,
          escape_markup(why), escape_markup(shown.again));
    } else if (kind == Kind::known || kind == Kind::skipped) {
      suite.cases += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                                 escape_markup(fmt::format("{}: {}", type, message)));
    } else if (kind == Kind::flaky) {
      suite.cases +=
          fmt::format(">\n      <flakyFailure type=\"flaky\" message=\"{}\"/>\n    </testcase>\n",
                      escape_markup(message));
    } else {
      suite.cases += "/>\n";
    }
  }

  static std::string numbers(const Suite& suite) {
    return fmt::format("tests=\"{}\" failures=\"{}\" skipped=\"{}\"", suite.tests, suite.failures,
                       suite.skipped);
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
        "    <testcase classname=\"{}\" name=\"all other cases\">\n"
        "      <system-out>{}</system-out>\n    </testcase>\n",
        escape_markup(api), escape_markup(words.empty() ? "none" : words));
  }

  const JunitOptions& options_;
  bool each_case_;
  std::unordered_map<std::uint64_t, Change> changes_;
  std::map<std::string, Suite> suites_;
  std::map<std::string, std::uint64_t> listed_;  // by what they came to
};

// Of a store that looks up: sums, and then what fails.
Status write_looked_up(RunReader& run, QuickReader& quick, const Tally& tally,
                       const JunitOptions& options,
                       const std::function<Status(const FinishedCase&)>& list,
                       JunitWriter& writer) {
  for (const auto& [key, sums] : tally.cases()) {
    Verdict verdict;
    verdict.outcome = key.outcome;
    verdict.flags = key.flags;
    writer.count(key.traits.api, verdict, sums.cases);
  }
  if (options.comparison != nullptr) {
    return quick.each_with_id(worse_cases(*options.comparison, options.most_failures), list);
  }
  ASSAY_CHECK(run.each_failed(options.most_failures, list));
  return options.strict ? quick.each_flagged_pass(options.most_failures, list) : Status();
}

}  // namespace

Status write_junit(RunReader& run, const JunitOptions& options, const std::filesystem::path& file) {
  ASSAY_TRY(const auto properties, run.properties());
  const auto shown = [&](const FinishedCase& finished) {
    return Shown{finished.id, api_of(finished.text), finished.text, finished.verdict,
                 rerun_command(finished.text, properties)};
  };
  QuickReader* quick = run.quick();
  Tally tally;
  std::uint64_t cases = 0;
  if (quick != nullptr) {
    ASSAY_TRY(tally, run.tally());
    cases = static_cast<std::uint64_t>(tally.finished());
  } else {
    ASSAY_TRY(const StoreCounts counts, run.counts());
    cases = counts.finished;
  }
  const bool each_case = cases <= options.each_case_up_to;
  JunitWriter writer(options, each_case);
  if (quick != nullptr && !each_case) {
    const auto list = [&](const FinishedCase& finished) -> Status {
      writer.list_counted(shown(finished));
      return {};
    };
    ASSAY_CHECK(write_looked_up(run, *quick, tally, options, list, writer));
  } else {
    ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
      writer.add(shown(finished));
      return {};
    }));
  }
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    Verdict verdict;
    verdict.outcome = Outcome::invalid;
    verdict.message = line.message;
    writer.add({invalid_line_id(line), name(verdict.outcome), line.where, verdict, line.text});
    return {};
  }));
  return write_file(file, writer.document());
}

}  // namespace assay
