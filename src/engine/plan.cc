#include "engine/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "case/canonical.h"
#include "case/corpus.h"
#include "engine/earlier_costs.h"
#include "schedule/cost.h"

namespace assay {
namespace {

constexpr std::size_t kShownInvalid = 5;  // lines; the store has all
constexpr std::size_t kShownText = 400;   // characters of an invalid line

// Expected time of a case: from an earlier run, or else estimated.
std::uint64_t planned_work_us(const RunConfig& config, std::uint64_t id, std::string_view text,
                              const Cost& estimate) {
  if (config.earlier == nullptr) return estimate.work_us;
  return config.earlier->expected_us(id, text, estimate.elements).value_or(estimate.work_us);
}

class Planner {
 public:
  Planner(const RunConfig& config, Store& store, Plan& plan, std::function<Status()> has_work)
      : config_(config), store_(store), plan_(plan), has_work_(std::move(has_work)) {}

  Status run() {
    const bool no_sources = config_.sources.configs.empty() && config_.sources.patterns.empty();
    if (no_sources && !config_.store.empty()) return take_all();
    ASSAY_TRY([[maybe_unused]] const std::int64_t forgotten,
              store_.forget_finished(config_.retest));
    ASSAY_CHECK(store_.forget_invalid());
    ASSAY_CHECK(store_.each_finished_id([&](std::uint64_t id) { finished_.insert(id); }));
    plan_.totals.earlier = finished_.size();
    if (!finished_.empty()) ASSAY_CHECK(tell_of_work());
    if (config_.shard) ASSAY_CHECK(choose_shard());
    ASSAY_CHECK(take_sources());
    if (no_sources) {
      // A retest or a plain resume: the cases that the run has.
      ASSAY_CHECK(store_.each_unfinished(
          [&](const wire::CaseT& stored) { return take("run.db", stored.text); }));
    }
    const Totals& totals = plan_.totals;
    if (totals.planned + totals.earlier + totals.invalid_lines + totals.other_apis == 0 &&
        seen_.empty()) {
      return usage_error("no cases: the given files and configs have none");
    }
    if (config_.sources.filter && !config_.sources.only && totals.planned + totals.earlier == 0) {
      return usage_error("no case matches -k: `-k EXPR` takes parts of API names");
    }
    return {};
  }

 private:
  // The unfinished cases of a database stay there: they may be too many for one process.
  Status take_all() {
    ASSAY_TRY([[maybe_unused]] const std::int64_t forgotten,
              store_.forget_finished(config_.retest));
    ASSAY_TRY(const StoreCounts counts, store_.counts());
    if (counts.planned == 0) {
      return usage_error("the run in this database has no cases yet; load some with `assay plan`");
    }
    plan_.totals.earlier = counts.finished;
    plan_.totals.planned = counts.planned - counts.finished;
    return tell_of_work();
  }

  Status tell_of_work() {
    const auto tell = std::exchange(has_work_, {});
    return tell ? tell() : Status();
  }

  Status take_sources() {
    for (const std::string& config : config_.sources.configs) {
      ASSAY_CHECK(take("--api_config", config));
    }
    return each_corpus_line(
        config_.sources.patterns, [&](const auto& file, const CorpusLine& line) {
          return take(fmt::format("{}:{}", file.string(), line.number), line.text);
        });
  }

  // Reads the corpus once before planning, because a case's shard depends on all others.
  Status choose_shard() {
    choosing_ = true;
    ASSAY_CHECK(take_sources());
    choosing_ = false;
    shard_ = cases_of(*config_.shard, std::exchange(expected_, {}));
    seen_.clear();
    return {};
  }

  Status take(const std::string& where, std::string_view text) {
    Status status;
    const ParseStatus parsed = parse_line(text, scratch_, [&](const Case& found) {
      if (status) status = plan_case(where, text, found);
    });
    if (!status || parsed) return status;
    return refuse(where, text,
                  fmt::format("column {}: {}", parsed.error().column, parsed.error().message));
  }

  Status refuse(const std::string& where, std::string_view text, std::string why) {
    if (choosing_) return {};
    if (!config_.sources.selects(text.substr(0, text.find('(')))) {
      ++plan_.totals.other_apis;
      return {};
    }
    ++plan_.totals.invalid_lines;
    const InvalidLine line{where, std::string(text.substr(0, kShownText)), std::move(why)};
    if (plan_.first_invalid.size() < kShownInvalid) plan_.first_invalid.push_back(line);
    return store_.add_invalid(line);
  }

  Status plan_case(const std::string& where, std::string_view line, const Case& found) {
    if (!config_.sources.selects(found.api())) {
      ++plan_.totals.other_apis;
      return {};
    }
    canonical_.clear();
    append_canonical(found, canonical_);
    // A lane parses the canonical text, which has spaces that the line lacks.
    if (canonical_.size() > kMaxLineBytes) {
      return refuse(where, line,
                    fmt::format("the case is longer than {} MiB when it is written out",
                                kMaxLineBytes >> 20U));
    }
    const std::uint64_t id = case_id(canonical_);
    const bool is_new = seen_.insert(id).second;
    if (choosing_) {
      if (is_new) {
        expected_.push_back({id, planned_work_us(config_, id, canonical_, estimate_cost(found))});
      }
      return {};
    }
    if (!is_new) {
      ++plan_.totals.duplicates;
      return {};
    }
    if (finished_.contains(id)) return {};
    if (config_.shard && !std::binary_search(shard_.begin(), shard_.end(), id)) return {};
    const Cost cost = estimate_cost(found);
    if (plan_.totals.planned++ == 0) ASSAY_CHECK(tell_of_work());
    return store_.add_case(wire::planned_case(id, canonical_, cost.elements, cost.bytes,
                                              planned_work_us(config_, id, canonical_, cost)));
  }

  const RunConfig& config_;
  Store& store_;
  Plan& plan_;
  std::function<Status()> has_work_;  // empty: it was called
  Case scratch_;
  std::string canonical_;
  std::unordered_set<std::uint64_t> seen_;      // in this corpus
  std::unordered_set<std::uint64_t> finished_;  // in earlier sessions
  bool choosing_ = false;                       // first pass: chooses the cases of the shard
  std::vector<ExpectedCase> expected_;          // of the whole corpus, during the first pass
  std::vector<std::uint64_t> shard_;            // ids, sorted
};

// Expected time of a case that the store does not have. `parsed` is memory to reuse.
std::uint64_t work_us_of(const RunConfig& config, const wire::CaseT& planned, Case& parsed) {
  if (!parse_case(planned.text, parsed)) return expected_work_us(planned.elements);
  return planned_work_us(config, planned.id, planned.text, estimate_cost(parsed));
}

}  // namespace

Result<Plan> make_plan(const RunConfig& config, Store& store,
                       const std::function<Status()>& has_work) {
  Plan plan;
  ASSAY_CHECK(Planner(config, store, plan, has_work).run());
  return plan;
}

Result<Supply> claim_cases(const RunConfig& config, std::size_t bundles, RunClaims& claims,
                           const std::function<void(wire::JobT)>& take) {
  Case parsed;
  return claims.claim(bundles, [&](wire::JobT job) -> Status {
    wire::CaseT& planned = job.test_case;
    job.attempt.limit_ms = config.timeout_ms.value_or(time_limit_ms(planned.elements));
    if (!config.timeout_ms && config.sanitizer.empty()) job.attempt.hang_from_ms = kHangFromMs;
    if (planned.work_us == 0) planned.work_us = work_us_of(config, planned, parsed);
    // No case takes longer than its limit.
    planned.work_us = std::min(planned.work_us, job.attempt.limit_ms * 1000);
    take(std::move(job));
    return {};
  });
}

}  // namespace assay
