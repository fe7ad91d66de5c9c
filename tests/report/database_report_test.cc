// Reports of runs in PostgreSQL say what reports of the same runs in a folder say.

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
#include "report/past.h"
#include "report/run_report.h"
#include "serve/report_page.h"
#include "stored_run.h"

namespace assay::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

FinishedCase finished_of(const Came& each) {
  FinishedCase finished;
  finished.id = case_id(each.text);
  finished.text = each.text;
  finished.verdict = {each.outcome, 0, each.flags, "", "m"};
  finished.finished_ms = 1'700'000'000'000;
  finished.took_us = each.took_us;
  finished.record = each.record;
  return finished;
}

// The same run in a folder.
std::unique_ptr<StoredRun> in_folder(const std::vector<Came>& cases) {
  auto run = std::make_unique<StoredRun>();
  for (const Came& each : cases) {
    run->plan(each.text);
    StoredRun::must(run->store().finish(finished_of(each)));
  }
  StoredRun::must(run->store().commit());
  return run;
}

class DatabaseReport : public Postgres {
 protected:
  // A run in a schema of its own.
  std::unique_ptr<PostgresStore> run_of(const std::string& schema, const std::vector<Came>& cases) {
    auto store = StoredRun::must(PostgresStore::open(server_->address(schema), StoreMode::create));
    std::map<std::uint64_t, const Came*> by_id;
    for (const Came& each : cases) {
      by_id[case_id(each.text)] = &each;
      StoredRun::must(
          store->add_case(wire::planned_case(case_id(each.text), each.text, 1, 1, 7'000)));
    }
    StoredRun::must(store->commit());
    while (true) {
      const std::vector<wire::JobT> leases = claim(*store, 100);
      if (leases.empty()) break;
      for (const wire::JobT& job : leases) {
        FinishedCase finished = finished_of(*by_id.at(job.test_case.id));
        finished.epoch = job.attempt.epoch;
        EXPECT_TRUE(StoredRun::must(store->finish(finished)));
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

TEST_F(DatabaseReport, ComparesTwoRunsAsInFolders) {
  const auto then = run_of("pairs_then", all_pairs(false));
  const auto now = run_of("pairs_now", all_pairs(true));
  const auto twin = in_folder(all_pairs(true));
  StoredRun::must(then->add_invalid({"a.txt:1", "paddle.(", "m"}));
  StoredRun::must(then->commit());
  for (Store* store : {static_cast<Store*>(now.get()), &twin->store()}) {
    StoredRun::must(store->add_invalid({"a.txt:1", "paddle.(", "m"}));
    StoredRun::must(store->add_invalid({"a.txt:2", "paddle.only.now(", "m"}));
    StoredRun::must(store->commit());
  }
  const PastRun past = StoredRun::must(load_past(place("pairs_then")));
  for (const bool strict : {false, true}) {
    const nlohmann::json said = told(*now, past, strict);
    EXPECT_EQ(said, told(twin->store(), past, strict));
    EXPECT_GE(said["new"].size(), 1U);
  }
}

TEST_F(DatabaseReport, ComparesWithABaselineAsInFolders) {
  const auto then = run_of("base_then", all_pairs(false));
  const auto now = run_of("base_now", all_pairs(true));
  const auto twin = in_folder(all_pairs(true));
  const Folder folder;
  StoredRun::must(write_baseline(*then, folder / "baseline.toml"));
  StoredRun::must(write_baseline(in_folder(all_pairs(false))->store(), folder / "twin.toml"));
  EXPECT_EQ(StoredRun::must(read_file(folder / "baseline.toml")),
            StoredRun::must(read_file(folder / "twin.toml")));
  const PastRun past = StoredRun::must(load_past((folder / "baseline.toml").string()));
  for (const bool strict : {false, true}) {
    EXPECT_EQ(told(*now, past, strict), told(twin->store(), past, strict));
  }
}

TEST_F(DatabaseReport, TellsOfApisThatBecameSlower) {
  const auto then =
      run_of("slow_then", {{"paddle.f(1)", Outcome::pass, 0, 2'000'000, called_for(2'000'000'000)},
                           {"paddle.g(2)", Outcome::pass, 0, 30'000, called_for(30'000'000)}});
  const auto now =
      run_of("slow_now", {{"paddle.f(1)", Outcome::pass, 0, 5'000'000, called_for(5'000'000'000)},
                          {"paddle.g(2)", Outcome::pass, 0, 90'000, called_for(90'000'000)}});
  const PastRun past = StoredRun::must(load_past(place("slow_then")));
  const RunComparison compared = StoredRun::must(compare_runs(*now, past, false));
  ASSERT_EQ(compared.slower.size(), 1U);  // the other one differs by 0.06 s
  EXPECT_EQ(compared.slower[0].api, "paddle.f");
  EXPECT_THAT(comparison_table(compared),
              HasSubstr("slower paddle.f: 5.00 s per case in the test lane, 2.00 s before"));
}

TEST_F(DatabaseReport, FindingsAreThoseOfTheFolder) {
  std::vector<Came> cases;
  for (int i = 0; i < 30; ++i) {
    cases.push_back({"paddle.f(" + std::to_string(i) + ")", Outcome::mismatch});
  }
  cases.push_back({"paddle.g(1)", Outcome::crash});
  const auto run = run_of("found_now", cases);
  const auto twin = in_folder(cases);
  EXPECT_EQ(findings_json(StoredRun::must(findings_of(*run, nullptr))),
            findings_json(StoredRun::must(findings_of(twin->store(), nullptr))));
  const auto few = StoredRun::must(findings_of(*run, nullptr, 5));
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[0].key.outcome, Outcome::crash);
  EXPECT_EQ(few[1].cases, 5U);
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
              HasSubstr("<testsuites name=\"assay\" tests=\"8\" failures=\"4\" skipped=\"1\" "));
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"paddle.f\" tests=\"5\" failures=\"3\" skipped=\"1\" "));
  EXPECT_THAT(xml, HasSubstr("<system-out>1 mismatch, 1 no_kernel, 1 pass</system-out>"));
  EXPECT_THAT(xml, HasSubstr("<system-out>1 flaky, 1 rejected</system-out>"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"invalid\" name=\"a.txt:7\" "));
  EXPECT_THAT(xml, Not(HasSubstr("paddle.f(5)")));
  JunitOptions strict = options;
  strict.strict = true;
  EXPECT_THAT(junit_of(*run, strict, folder / "junit.xml"), HasSubstr("failures=\"5\""));
}

TEST_F(DatabaseReport, JunitOfManyCasesListsOnlyWhatIsNewOrLost) {
  const auto then = run_of("junit_past", {{"paddle.f(1)"}, {"paddle.f(4)"}});
  const auto run = run_of("junit_after", many());
  const RunComparison compared =
      StoredRun::must(compare_runs(*run, StoredRun::must(load_past(place("junit_past"))), false));
  const Folder folder;
  const JunitOptions options{.comparison = &compared, .each_case_up_to = 6};
  const std::string xml = junit_of(*run, options, folder / "junit.xml");
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"paddle.f\" tests=\"6\" failures=\"4\" skipped=\"1\" "));
  EXPECT_THAT(xml,
              ::testing::ContainsRegex("name=\"paddle.f\\(2\\)\" time=\"[0-9.]+\">\n      <failure "
                                       "type=\"mismatch\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"lost\" message=\"coverage lost: 1 of 5 cases"));
}

// ---- the page in a file ----

TEST_F(DatabaseReport, ThePageHasSumsAndTheFirstFailures) {
  const auto run = run_of("page_now", many());
  const Folder folder;
  const auto page = [&](std::uint64_t most) {
    StoredRun::must(write_report_page(*run, {.file = folder / "report.html", .most = most}));
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
