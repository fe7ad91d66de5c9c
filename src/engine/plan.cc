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
  Planner(const RunConfig& config, RunStore& store, Plan& plan)
      : config_(config), store_(store), plan_(plan) {}

  Status run() {
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
    ASSAY_CHECK(store_.commit());
    plan_.queue.sort();
    plan_.totals.planned = plan_.queue.size();
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
    QueuedCase queued;
    queued.id = id;
    queued.text = plan_.texts.keep(canonical_);
    queued.cost = estimate_cost(found);
    if (config_.timeout_ms) queued.cost.limit_ms = *config_.timeout_ms;
    plan_.queue.add(queued);
    return store_.add_case({id, queued.text});
  }

  const RunConfig& config_;
  RunStore& store_;
  Plan& plan_;
  Case scratch_;
  std::string canonical_;
  std::unordered_set<std::uint64_t> seen_;      // in this corpus
  std::unordered_set<std::uint64_t> finished_;  // in earlier sessions
};

}  // namespace

std::string_view TextPool::keep(std::string_view text) {
  if (text.size() > kBlock - used_) {
    blocks_.push_back(std::make_unique<char[]>(std::max(kBlock, text.size())));
    used_ = 0;
  }
  char* place = blocks_.back().get() + used_;
  std::memcpy(place, text.data(), text.size());
  used_ += text.size();
  return {place, text.size()};
}

Result<Plan> make_plan(const RunConfig& config, RunStore& store) {
  Plan plan{{}, Queue(config.memory_budget), {}, {}};
  ASSAY_CHECK(Planner(config, store, plan).run());
  return plan;
}

}  // namespace assay
