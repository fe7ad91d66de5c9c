#pragma once
// Runs that were judged before and after a change, and what a comparison says of them.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "report/compare.h"
#include "report/past.h"
#include "stored_run.h"

namespace assay::testing {

inline Verdict came_to(Outcome outcome, std::uint8_t flags = 0, std::string message = "m") {
  return {outcome, 0, flags, "", std::move(message)};
}

// A wrong value in float32.
inline Fault wrong(std::string values = "usual", double error = 20) {
  Fault fault;
  fault.values = std::move(values);
  fault.leaf = "";
  fault.kinds = kValue;
  fault.dtype = "float32";
  fault.error = error;
  fault.message = "off by " + std::to_string(error);
  return fault;
}

inline Fault not_finite(std::string values = "nan") {
  Fault fault = wrong(std::move(values), 0);
  fault.special = true;
  fault.message = "NaN where 0 is right";
  return fault;
}

inline Verdict mismatch(std::vector<Fault> faults) {
  return {Outcome::mismatch, kValue, 0, "", faults.front().message, std::move(faults)};
}

struct Standing {
  const char* text;
  Verdict verdict;
};

inline std::unique_ptr<StoredRun> run_of(
    const std::vector<Standing>& cases, const std::map<std::string, std::string>& properties = {}) {
  auto run = std::make_unique<StoredRun>();
  for (const Standing& each : cases) run->add(each.text, each.verdict);
  for (const auto& [key, value] : properties) {
    StoredRun::must(run->store().set_property(key, value));
  }
  StoredRun::must(run->store().commit());
  return run;
}

// The run's folder, with its store closed: SQLite lets one process and one opener at it.
inline PastRun past_of(const std::vector<Standing>& cases,
                       const std::map<std::string, std::string>& properties = {}) {
  const Folder folder;
  {
    const auto store = StoredRun::must(open_store(folder.path(), StoreMode::create));
    for (const Standing& each : cases) {
      const std::uint64_t id = case_id(each.text);
      StoredRun::must(store->add_case(wire::planned_case(id, each.text)));
      FinishedCase finished;
      finished.id = id;
      finished.text = each.text;
      finished.verdict = each.verdict;
      StoredRun::must(store->finish(finished));
    }
    for (const auto& [key, value] : properties) StoredRun::must(store->set_property(key, value));
    StoredRun::must(store->commit());
  }
  return StoredRun::must(load_past(folder.path().string()));
}

// "new paddle.a: value", "lost paddle.b", …
inline std::vector<std::string> said(const RunComparison& comparison) {
  std::vector<std::string> lines;
  for (const auto& [key, compared] : comparison.faults) {
    if (compared.state == FaultState::known) continue;
    lines.push_back(fmt::format("{} {} {}: {}{}{}", word(compared.state), name(key.outcome),
                                key.api, key.how, compared.why.empty() ? "" : "; ", compared.why));
  }
  for (const LostCoverage& lost : comparison.lost) {
    lines.push_back(fmt::format("{} {}", lost.rejected ? "rejected" : "lost", lost.api));
  }
  for (const auto& [key, known] : comparison.fixed) {
    lines.push_back(fmt::format("fixed {} {}", name(key.outcome), key.api));
  }
  return lines;
}

inline const std::vector<Standing>& before() {
  static const std::vector<Standing> all{
      {"paddle.broke(1)", came_to(Outcome::pass)},
      {"paddle.crashes(1)", came_to(Outcome::mismatch)},
      {"paddle.gone(1)", came_to(Outcome::mismatch)},
      {"paddle.known(1)", came_to(Outcome::mismatch)},
      {"paddle.lost(1)", came_to(Outcome::pass)},
      {"paddle.mended(1)", came_to(Outcome::test_error)},
      {"paddle.never(1)", came_to(Outcome::no_kernel)},
      {"paddle.refused(1)", came_to(Outcome::pass)},
  };
  return all;
}

inline const std::vector<Standing>& after() {
  static const std::vector<Standing> all{
      {"paddle.broke(1)", came_to(Outcome::mismatch)},
      {"paddle.crashes(1)", came_to(Outcome::crash)},
      {"paddle.fresh(1)", came_to(Outcome::timeout)},
      {"paddle.known(1)", came_to(Outcome::mismatch)},
      {"paddle.lost(1)", came_to(Outcome::no_kernel)},
      {"paddle.mended(1)", came_to(Outcome::pass)},
      {"paddle.never(1)", came_to(Outcome::no_kernel)},
      {"paddle.refused(1)", came_to(Outcome::rejected)},
  };
  return all;
}
}  // namespace assay::testing
