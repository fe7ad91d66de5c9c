// The share of the killed mutants of `assay mutate` that the gate would stop: each mutant alone, as
// a build that breaks one case, against a baseline of the build without faults.
//
//   build/release/bin/assay mutate --api_config_file=cases.txt --log_dir=out
//   build/release/bench/report/mutants_gate out

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "engine/engine.h"
#include "report/baseline.h"
#include "report/compare.h"
#include "report/past.h"
#include "store/open_store.h"
#include "verdict/endings.h"
#include "verdict/messages.h"
#include "verdict/mutants.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {
namespace {

using Properties = std::map<std::string, std::string>;

struct OneCase {
  std::uint64_t id = 0;
  std::string text;
  Verdict verdict;
};

struct KilledMutant {
  std::size_t of = 0;  // index of its case
  std::string fault;
  Verdict verdict;
};

// A run in memory. The verdict of one case can be replaced.
class RunInMemory final : public RunReader {
 public:
  explicit RunInMemory(Properties properties) : properties_(std::move(properties)) {}

  std::vector<OneCase>& cases() { return cases_; }

  Result<Properties> properties() override { return properties_; }
  Status each(const RunQuery& query, const VisitFinished& visit) override {
    for (const OneCase& each : cases_) {
      if (query.rows == RunQuery::Rows::failed && !info(each.verdict.outcome).failed) continue;
      FinishedCase finished;
      finished.id = each.id;
      finished.text = each.text;
      finished.verdict = each.verdict;
      ASSAY_CHECK(visit(finished));
    }
    return {};
  }
  Status each_unfinished(const VisitPlanned&) override { return {}; }
  Status each_invalid(const VisitInvalid&) override { return {}; }
  Result<StoreCounts> counts() override { return StoreCounts{cases_.size(), cases_.size()}; }

 private:
  Properties properties_;
  std::vector<OneCase> cases_;
};

// The verdict of a case with a planted fault: of its mutants, and of the trials without one.
Verdict verdict_with(const std::string& fault, const wire::Record& record, const Policy& policy,
                     const Rules& rules) {
  std::map<std::string, const wire::Trial*> of_values;
  for (const wire::Trial* trial : *record.trials()) {
    const bool real = !is_mutant(*trial);
    const bool planted = text(trial->mutant()) == fault && text(trial->skipped()).empty();
    if (real || planted) of_values[text(trial->values())] = trial;  // mutants come after their case
  }
  Verdict all;
  for (const auto& [values, trial] : of_values) {
    const auto verdict = judge_trial(*trial, policy, record, rules);
    if (!verdict || verdict->outcome == Outcome::pass) continue;
    if (all.outcome == Outcome::pass || info(verdict->outcome).failed) {
      all.outcome = verdict->outcome;
    }
    all.faults.insert(all.faults.end(), verdict->faults.begin(), verdict->faults.end());
  }
  return all;
}

// Whether a verdict has a fault that the baseline does not have at all.
bool has_unknown_fault(const OneCase& of, const Verdict& verdict, const PastRun& past) {
  const auto faults = faults_of_case(traits_of(of.text), verdict);
  return info(verdict.outcome).failed && std::ranges::any_of(faults, [&](const auto& each) {
           return info(each.first.outcome).failed && !past.faults.contains(each.first);
         });
}

Result<bool> is_stopped(RunInMemory& run, const KilledMutant& mutant, const PastRun& past) {
  OneCase& of = run.cases()[mutant.of];
  if (has_unknown_fault(of, mutant.verdict, past)) return true;
  const Verdict healthy = std::exchange(of.verdict, mutant.verdict);
  const auto comparison = compare_runs(run, past, false);
  of.verdict = healthy;
  if (!comparison) return tl::unexpected(comparison.error());
  return comparison->worse() || !comparison->lost.empty();
}

struct Counts {
  int killed = 0;
  int stopped = 0;
};

Result<int> measure(const std::filesystem::path& folder) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(folder, StoreMode::read));
  ASSAY_TRY(const Properties properties, store->properties());
  ASSAY_TRY(wire::CaseSettingsT settings, wire::settings_of(properties));
  ASSAY_TRY(const Policies policies, load_policies(settings));
  ASSAY_TRY(const Rules rules, Rules::of(std::move(settings)));
  RunInMemory run(properties);
  std::vector<KilledMutant> killed;
  ASSAY_CHECK(store->each_finished([&](const FinishedCase& finished) -> Status {
    run.cases().push_back({finished.id, std::string(finished.text), finished.verdict});
    const auto record = wire::open<wire::Record>(finished.record);
    if (!record) return {};
    const Policy& policy = policies.find(api_of(finished.text));
    std::vector<std::string> faults;
    for (const Mutant& each : judge_mutants(**record, policy, rules)) {
      if (each.fate == Fate::killed && std::ranges::count(faults, each.fault) == 0) {
        faults.push_back(each.fault);
      }
    }
    for (const std::string& fault : faults) {
      killed.push_back(
          {run.cases().size() - 1, fault, verdict_with(fault, **record, policy, rules)});
    }
    return {};
  }));
  const std::filesystem::path file = folder / "mutants_gate.toml";
  std::filesystem::remove(file);
  ASSAY_CHECK(write_baseline(*store, file));
  ASSAY_TRY(const PastRun past, load_past(file.string()));

  std::map<std::string, Counts> counts;
  for (const KilledMutant& mutant : killed) {
    ASSAY_TRY(const bool stopped, is_stopped(run, mutant, past));
    for (const std::string& of : {mutant.fault, std::string("all")}) {
      ++counts[of].killed;
      counts[of].stopped += stopped ? 1 : 0;
    }
    if (!stopped) {
      fmt::print("not stopped: {} {}\n", mutant.fault, run.cases()[mutant.of].text);
      for (const Fault& each : mutant.verdict.faults) {
        fmt::print("    {} {} {}: {}; {}\n", name(each.outcome), each.values, location_of(each),
                   manifestation_of(each), each.message);
      }
    }
  }
  fmt::print("{} cases, {} faults in the baseline\n", run.cases().size(), past.faults.size());
  for (const auto& [fault, count] : counts) {
    fmt::print("{:<24} {:>6} of {:>6} killed mutants are stopped: {:.2f}%\n", fault, count.stopped,
               count.killed, 100.0 * count.stopped / count.killed);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: mutants_gate DIR, the folder of a run of assay mutate\n");
    return 2;
  }
  const auto code = assay::measure(argv[1]);
  if (!code) fmt::print(stderr, "mutants_gate: {}\n", code.error().message);
  return code ? *code : 3;
}
