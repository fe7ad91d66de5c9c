// Reports of runs in PostgreSQL, which look up: they say what reading every case says.

#include <nlohmann/json.hpp>

#include "../serve/page_data.h"
#include "../store/made_cases.h"
#include "../store/postgres_fixture.h"
#include "base/atomic_file.h"
#include "case/canonical.h"
#include "report/baseline.h"
#include "report/compare.h"
#include "report/findings.h"
#include "report/junit.h"
#include "report/load_past.h"
#include "report/run_report.h"
#include "serve/report_page.h"
#include "stored_run.h"

namespace assay::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Another reader of the same run, which knows nothing of looking up.
class CaseByCase final : public RunReader {
 public:
  explicit CaseByCase(RunReader& run) : run_(run) {}
  Result<std::map<std::string, std::string>> properties() override { return run_.properties(); }
  Status each_finished(const std::function<Status(const FinishedCase&)>& visit) override {
    return run_.each_finished(visit);
  }
  Status each_unfinished(const std::function<Status(const StoredCase&)>& visit) override {
    return run_.each_unfinished(visit);
  }
  Status each_invalid(const std::function<Status(const InvalidLine&)>& visit) override {
    return run_.each_invalid(visit);
  }
  Result<StoreCounts> counts() override { return run_.counts(); }

 private:
  RunReader& run_;
};

struct Came {
  std::string text;
  Outcome outcome = Outcome::pass;
  std::uint8_t flags = 0;
  std::uint64_t took_us = 7'000;
  std::vector<std::uint8_t> record = {};
};

// A test lane whose call took so many nanoseconds.
std::vector<std::uint8_t> called_for(std::uint64_t call_ns) {
  return record_of({0, call_ns, 0, 0}, {0, 0, 0, 0}, "", "");
}

class DatabaseReport : public Postgres {
 protected:
  // A run in a schema of its own.
  std::unique_ptr<PostgresStore> run_of(const std::string& schema, const std::vector<Came>& cases) {
    auto store = StoredRun::must(PostgresStore::open(server_->address(schema), StoreMode::create));
    std::map<std::uint64_t, const Came*> by_id;
    for (const Came& each : cases) {
      by_id[case_id(each.text)] = &each;
      StoredRun::must(store->add_case({case_id(each.text), each.text, 1, 1, 7'000}));
    }
    StoredRun::must(store->commit());
    while (true) {
      const std::vector<Lease> leases = claim(*store, 100);
      if (leases.empty()) break;
      for (const Lease& lease : leases) {
        const Came& each = *by_id.at(lease.id);
        FinishedCase finished;
        finished.id = lease.id;
        finished.verdict = {each.outcome, 0, each.flags, "", "m"};
        finished.finished_ms = 1'700'000'000'000;
        finished.took_us = each.took_us;
        finished.record = each.record;
        EXPECT_TRUE(StoredRun::must(store->finish(lease, finished)));
      }
    }
    StoredRun::must(store->commit());
    return store;
  }
  std::string place(const std::string& name) { return server_->address(name); }
};

// All that a case can come to, before and after.
std::vector<Came> all_pairs(bool now) {
  struct Way {
    std::string word;
    std::optional<Outcome> outcome;
    std::uint8_t flags;
  };
  std::vector<Way> ways{{"nothing", {}, 0}, {"flaky", Outcome::pass, kFlaky}};
  for (const Outcome each :
       {Outcome::pass, Outcome::mismatch, Outcome::crash, Outcome::no_kernel, Outcome::rejected}) {
    ways.push_back({std::string(name(each)), each, 0});
  }
  ways.push_back({"weak", Outcome::pass, kWeak});
  ways.push_back({"mismatch again", Outcome::mismatch, kFlaky});
  std::vector<Came> cases;
  for (const Way& before : ways) {
    for (const Way& after : ways) {
      const Way& own = now ? after : before;
      if (!own.outcome) continue;
      const std::string text = "paddle.f(\"" + before.word + "\", \"" + after.word + "\")";
      cases.push_back({text, *own.outcome, own.flags});
    }
  }
  return cases;
}

nlohmann::json told(RunReader& now, const PastRun& past, bool strict) {
  return comparison_json(StoredRun::must(compare_runs(now, past, strict)));
}

nlohmann::json without_limits(nlohmann::json told) {
  told.erase("slower_from_seconds");
  return told;
}

TEST_F(DatabaseReport, ComparesTwoRunsAsReadingEveryCaseDoes) {
  const auto then = run_of("pairs_then", all_pairs(false));
  const auto now = run_of("pairs_now", all_pairs(true));
  StoredRun::must(then->add_invalid({"a.txt:1", "paddle.(", "m"}));
  StoredRun::must(then->add_invalid({"a.txt:3", "paddle.only.then(", "m"}));
  StoredRun::must(now->add_invalid({"a.txt:1", "paddle.(", "m"}));
  StoredRun::must(now->add_invalid({"a.txt:2", "paddle.only.now(", "m"}));
  StoredRun::must(then->commit());
  StoredRun::must(now->commit());
  const PastRun past = StoredRun::must(load_past(place("pairs_then")));
  CaseByCase slowly(*now);
  for (const bool strict : {false, true}) {
    const nlohmann::json quick = told(*now, past, strict);
    EXPECT_EQ(quick["slower_from_seconds"], 1);  // it was looked up
    EXPECT_EQ(without_limits(quick), told(slowly, past, strict));
    EXPECT_GT(quick["lost"].size(), 5U);
  }
}

TEST_F(DatabaseReport, ComparesWithABaselineAsReadingEveryCaseDoes) {
  const auto then = run_of("base_then", all_pairs(false));
  const auto now = run_of("base_now", all_pairs(true));
  StoredRun::must(then->add_invalid({"a.txt:1", "paddle.(", "m"}));
  StoredRun::must(then->commit());
  const Folder folder;
  StoredRun::must(write_baseline(*then, folder / "baseline.txt"));
  const PastRun past = StoredRun::must(load_past((folder / "baseline.txt").string()));
  CaseByCase slowly(*now);
  for (const bool strict : {false, true}) {
    const nlohmann::json quick = told(*now, past, strict);
    EXPECT_EQ(quick, told(slowly, past, strict));
    EXPECT_GT(quick["mended"].size(), 5U);
  }
}

TEST_F(DatabaseReport, TellsOfExpensiveCasesThatBecameSlower) {
  const auto then =
      run_of("slow_then", {{"paddle.f(1)", Outcome::pass, 0, 2'000'000, called_for(2'000'000'000)},
                           {"paddle.f(2)", Outcome::pass, 0, 300'000, called_for(300'000'000)}});
  const auto now =
      run_of("slow_now", {{"paddle.f(1)", Outcome::pass, 0, 5'000'000, called_for(5'000'000'000)},
                          {"paddle.f(2)", Outcome::pass, 0, 900'000, called_for(900'000'000)}});
  const PastRun past = StoredRun::must(load_past(place("slow_then")));
  const RunComparison quick = StoredRun::must(compare_runs(*now, past, false));
  ASSERT_EQ(quick.changes.size(), 1U);  // the other one took less than a second
  EXPECT_EQ(quick.changes[0].text, "paddle.f(1)");
  EXPECT_DOUBLE_EQ(quick.changes[0].seconds_before, 2);
  EXPECT_DOUBLE_EQ(quick.changes[0].seconds_now, 5);
  EXPECT_THAT(comparison_table(quick),
              HasSubstr("1  slower in the test lane (of cases that took 1 s and more)"));
  CaseByCase slowly(*now);
  EXPECT_EQ(StoredRun::must(compare_runs(slowly, past, false)).changes.size(), 2U);
}

TEST_F(DatabaseReport, ARunOfAnotherDatabaseIsReadCaseByCase) {
  const auto now = run_of("far_now", {{"paddle.f(1)", Outcome::mismatch}, {"paddle.g(1)"}});
  const PostgresServer other;
  {
    PostgresServer& server = const_cast<PostgresServer&>(other);
    auto store =
        StoredRun::must(PostgresStore::open(server.address("far_then"), StoreMode::create));
    StoredRun::must(store->add_case({case_id("paddle.f(1)"), "paddle.f(1)", 1, 1, 1}));
    StoredRun::must(store->commit());
    const auto leases = claim(*store, 1);
    ASSERT_TRUE(finish(*store, leases.at(0)));
    StoredRun::must(store->commit());
    const PastRun past = StoredRun::must(load_past(server.address("far_then")));
    const RunComparison compared = StoredRun::must(compare_runs(*now, past, false));
    EXPECT_EQ(compared.slower_from_s, 0);
    EXPECT_EQ(compared.count(Change::new_failure), 1U);
    EXPECT_EQ(compared.only_now, 1U);
  }
}

TEST_F(DatabaseReport, FindingsHaveWhatIsNewAlsoWhereFewAreRead) {
  std::vector<Came> then, now;
  for (int i = 0; i < 30; ++i) {
    const std::string text = "paddle.f(" + std::to_string(i) + ")";
    now.push_back({text, Outcome::mismatch});
    then.push_back({text, i < 28 ? Outcome::mismatch : Outcome::pass});
  }
  now.push_back({"paddle.g(1)", Outcome::no_kernel});
  then.push_back({"paddle.g(1)", Outcome::pass});
  const auto before = run_of("found_then", then);
  const auto after = run_of("found_now", now);
  const RunComparison compared =
      StoredRun::must(compare_runs(*after, StoredRun::must(load_past(place("found_then"))), false));
  const auto findings = StoredRun::must(findings_of(*after, &compared, 5));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].new_cases + findings[1].new_cases, 3U);
  CaseByCase slowly(*after);
  const auto all = StoredRun::must(findings_of(slowly, &compared));
  EXPECT_EQ(findings_json(StoredRun::must(findings_of(*after, &compared))), findings_json(all));
}

// ---- JUnit ----

std::string junit_of(RunReader& run, const JunitOptions& options,
                     const std::filesystem::path& file) {
  StoredRun::must(write_junit(run, options, file));
  return StoredRun::must(read_file(file));
}

std::vector<Came> many() {
  std::vector<Came> cases{{"paddle.f(1)", Outcome::mismatch},
                          {"paddle.f(2)", Outcome::mismatch},
                          {"paddle.f(3)", Outcome::mismatch},
                          {"paddle.f(4)", Outcome::no_kernel},
                          {"paddle.f(5)"},
                          {"paddle.g(1)", Outcome::pass, kFlaky},
                          {"paddle.g(2)", Outcome::rejected}};
  return cases;
}

TEST_F(DatabaseReport, JunitOfManyCasesListsFailuresAndCountsTheRest) {
  const auto run = run_of("junit_now", many());
  StoredRun::must(run->add_invalid({"a.txt:7", "paddle.(", "m"}));
  StoredRun::must(run->commit());
  const Folder folder;
  const JunitOptions options{.each_case_up_to = 6, .most_failures = 2};
  const std::string xml = junit_of(*run, options, folder / "junit.xml");
  EXPECT_THAT(xml,
              HasSubstr("<testsuites name=\"assay\" tests=\"8\" failures=\"4\" skipped=\"1\">"));
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"paddle.f\" tests=\"5\" failures=\"3\" skipped=\"1\">"));
  EXPECT_THAT(xml, HasSubstr("<system-out>1 mismatch, 1 no_kernel, 1 pass</system-out>"));
  EXPECT_THAT(xml, HasSubstr("<system-out>1 flaky, 1 rejected</system-out>"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"invalid\" name=\"a.txt:7\">"));
  EXPECT_THAT(xml, Not(HasSubstr("paddle.f(5)")));
  CaseByCase slowly(*run);
  EXPECT_EQ(xml, junit_of(slowly, options, folder / "slow.xml"));
  JunitOptions strict = options;
  strict.strict = true;
  EXPECT_EQ(junit_of(*run, strict, folder / "junit.xml"),
            junit_of(slowly, strict, folder / "slow.xml"));
  EXPECT_EQ(junit_of(*run, {}, folder / "junit.xml"), junit_of(slowly, {}, folder / "slow.xml"));
}

TEST_F(DatabaseReport, JunitOfManyCasesListsOnlyWhatIsNewOrLost) {
  const auto then = run_of("junit_past", {{"paddle.f(1)", Outcome::mismatch},
                                          {"paddle.f(2)"},
                                          {"paddle.f(3)", Outcome::mismatch},
                                          {"paddle.f(4)"}});
  const auto run = run_of("junit_after", many());
  const RunComparison compared =
      StoredRun::must(compare_runs(*run, StoredRun::must(load_past(place("junit_past"))), false));
  const Folder folder;
  const JunitOptions options{.comparison = &compared, .each_case_up_to = 6};
  const std::string xml = junit_of(*run, options, folder / "junit.xml");
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"paddle.f\" tests=\"5\" failures=\"2\" skipped=\"2\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"paddle.f(2)\">\n      <failure type=\"mismatch\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"lost\" message=\"no longer tested: no_kernel m\">"));
  EXPECT_THAT(xml, HasSubstr("<system-out>2 known mismatch, 1 pass</system-out>"));
  EXPECT_THAT(xml, Not(HasSubstr("paddle.f(1)")));
  CaseByCase slowly(*run);
  EXPECT_EQ(xml, junit_of(slowly, options, folder / "slow.xml"));
}

// ---- the page in a file ----

TEST_F(DatabaseReport, ThePageHasSumsAndTheFirstFailures) {
  const auto run = run_of("page_now", many());
  const Folder folder;
  const auto page = [&](std::uint64_t most) {
    StoredRun::must(
        write_report_page(*run, place("page_now"), folder / "report.html", nullptr, most));
    return page_data(folder / "report.html");
  };
  const nlohmann::json all = page(100);
  const nlohmann::json some = page(2);
  for (const nlohmann::json& each : {all, some}) {
    EXPECT_EQ(each["data"]["outcomes"],
              (nlohmann::json{{"pass", 2}, {"mismatch", 3}, {"no_kernel", 1}, {"rejected", 1}}));
    EXPECT_EQ(each["data"]["failed"], 3);
    EXPECT_EQ(each["data"]["planned"], 7);
    EXPECT_FALSE(each["data"]["runs"].empty());  // those of the database
  }
  EXPECT_EQ(all["data"]["listed"], 4);  // three failures and a flaky one
  EXPECT_EQ(all["data"]["left_out"], 0);
  EXPECT_EQ(some["data"]["listed"], 3);
  EXPECT_EQ(some["data"]["left_out"], 1);
}

}  // namespace
}  // namespace assay::testing
