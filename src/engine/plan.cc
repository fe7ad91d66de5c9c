#include "engine/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "case/canonical.h"
#include "case/corpus.h"

namespace assay {
namespace {

constexpr std::size_t kShownInvalid = 5;  // lines; all are in the store
constexpr std::size_t kShownText = 400;   // of an invalid line

class Planner {
 public:
  Planner(const RunConfig& config, Store& store, Plan& plan)
      : config_(config), store_(store), plan_(plan) {}

  Status run() {
    ASSAY_TRY([[maybe_unused]] const std::int64_t forgotten,
              store_.forget_finished(config_.retest));
    ASSAY_CHECK(store_.forget_invalid());
    ASSAY_CHECK(store_.each_finished_id([&](std::uint64_t id) { finished_.insert(id); }));
    plan_.totals.earlier = finished_.size();
    for (const std::string& config : config_.sources.configs) {
      ASSAY_CHECK(take("--api_config", config));
    }
    for (const std::string& pattern : config_.sources.patterns) ASSAY_CHECK(take_files(pattern));
    if (config_.sources.configs.empty() && config_.sources.patterns.empty()) {
      // A retest or a plain resume: what the run already knows.
      ASSAY_CHECK(store_.each_unfinished(
          [&](const StoredCase& stored) { return take("run.db", stored.text); }));
    }
    const Totals& totals = plan_.totals;
    if (totals.planned + totals.earlier + totals.invalid_lines == 0) {
      return usage_error("there is not a single case in what was given");
    }
    return {};
  }

 private:
  Status take_files(const std::string& pattern) {
    ASSAY_TRY(const auto files, expand_corpus_pattern(pattern));
    for (const std::filesystem::path& file : files) {
      ASSAY_TRY(CorpusReader reader, CorpusReader::open(file));
      CorpusLine line;
      while (true) {
        ASSAY_TRY(const bool more, reader.next(line));
        if (!more) break;
        ASSAY_CHECK(take(fmt::format("{}:{}", file.string(), line.number), line.text));
      }
    }
    return {};
  }

  Status take(const std::string& where, std::string_view text) {
    Status status;
    const ParseStatus parsed = parse_line(text, scratch_, [&](const Case& found) {
      if (status) status = plan_case(found);
    });
    if (!status || parsed) return status;
    ++plan_.totals.invalid_lines;
    const InvalidLine line{
        where, std::string(text.substr(0, kShownText)),
        fmt::format("column {}: {}", parsed.error().column, parsed.error().message)};
    if (plan_.first_invalid.size() < kShownInvalid) plan_.first_invalid.push_back(line);
    return store_.add_invalid(line);
  }

  Status plan_case(const Case& found) {
    canonical_.clear();
    append_canonical(found, canonical_);
    const std::uint64_t id = case_id(canonical_);
    if (!seen_.insert(id).second) {
      ++plan_.totals.duplicates;
      return {};
    }
    if (finished_.contains(id)) return {};
    const Cost cost = estimate_cost(found);
    ++plan_.totals.planned;
    return store_.add_case({id, canonical_, cost.elements, cost.bytes});
  }

  const RunConfig& config_;
  Store& store_;
  Plan& plan_;
  Case scratch_;
  std::string canonical_;
  std::unordered_set<std::uint64_t> seen_;      // in this corpus
  std::unordered_set<std::uint64_t> finished_;  // in earlier sessions
};

}  // namespace

std::string_view TextPool::keep(std::string_view text) {
  if (text.size() > left_) {
    left_ = std::max(kBlock, text.size());
    blocks_.push_back(std::make_unique<char[]>(left_));
    next_ = blocks_.back().get();
  }
  char* const place = next_;
  std::memcpy(place, text.data(), text.size());
  next_ += text.size();
  left_ -= text.size();
  return {place, text.size()};
}

Result<Plan> make_plan(const RunConfig& config, Store& store) {
  Plan plan{{}, Queue(config.memory_budget), {}, {}};
  ASSAY_CHECK(Planner(config, store, plan).run());
  return plan;
}

Result<Supply> claim_cases(const RunConfig& config, std::size_t most, Store& store, Plan& plan) {
  ASSAY_TRY(const Supply supply, store.claim(most, [&](const ClaimedCase& claimed) -> Status {
    QueuedCase queued;
    queued.id = claimed.lease.id;
    queued.epoch = claimed.lease.epoch;
    queued.text = plan.texts.keep(claimed.planned.text);
    queued.cost = {claimed.planned.elements, claimed.planned.bytes,
                   config.timeout_ms.value_or(time_limit_ms(claimed.planned.elements))};
    plan.queue.add(queued);
    return {};
  }));
  plan.queue.sort();
  return supply;
}

}  // namespace assay
