// Writes the cases of a plan to PostgreSQL.
//
// Cases are cut into bundles here and sent while the corpus is still being parsed. A plan of up to
// kSorted cases is sorted first; the cases of a larger one are cut by cost as they come. Only one
// claimer plans at a time, so the existing cases are read once.

#include <algorithm>
#include <tuple>

#include "store/bundles.h"
#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace postgres {

struct Estimates {
  std::int64_t id = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

struct Took {
  std::int64_t id = 0;
  std::int64_t us = 0;
};

template <typename Entry>
const Entry* find_id(const std::vector<Entry>& sorted, std::int64_t id) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), id,
                       [](const Entry& entry, std::int64_t wanted) { return entry.id < wanted; });
  return found != sorted.end() && found->id == id ? &*found : nullptr;
}

// Times of cases in earlier runs: of single cases, and of kinds of cases.
struct Learned {
  std::vector<Took> cases;  // by id
  LearnedCosts kinds;

  std::optional<std::int64_t> expected_us(std::int64_t id, std::string_view text,
                                          std::uint64_t elements) const {
    if (const Took* took = find_id(cases, id)) return took->us;
    return kinds.expected_us(text, elements);
  }
};

}  // namespace postgres

namespace {

using namespace postgres;

constexpr std::size_t kSorted = 100'000;
constexpr std::size_t kAtOnce = 1'000;  // cases of a larger plan that are sent together
constexpr std::size_t kInvalidAtOnce = 10'000;
constexpr int kReadAtOnce = 50'000;

template <typename Entry>
void sort_by_id(std::vector<Entry>& entries) {
  std::ranges::sort(entries, {}, &Entry::id);
}

void each_read(pqxx::work& work, const std::string& query,
               const std::function<void(const pqxx::row&)>& visit) {
  pqxx::icursorstream rows(work, query, "assay_plan", kReadAtOnce);
  pqxx::result part;
  while (rows.get(part)) {
    for (const auto& row : part) visit(row);
  }
}

std::vector<Estimates> read_known(pqxx::work& work) {
  std::vector<Estimates> known;
  each_read(work, "SELECT id, elements, bytes FROM planned", [&](const pqxx::row& row) {
    known.push_back(
        {row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), row[2].as<std::int64_t>()});
  });
  sort_by_id(known);
  return known;
}

Status read_learned(pqxx::work& work, Learned& learned) {
  const auto earlier = work.exec1(fmt::format(kEarlierRuns, kExpensiveUs));
  if (!earlier[0].is_null()) {
    work.exec0("SET LOCAL work_mem = '256MB'");
    const std::string of_each = fmt::format(kLearnedOfEach, earlier[0].c_str());
    each_read(work, of_each, [&](const pqxx::row& row) {
      learned.cases.push_back({row[0].as<std::int64_t>(), row[1].as<std::int64_t>()});
    });
    sort_by_id(learned.cases);
  }
  if (earlier[1].is_null()) return {};
  return each_row(work, earlier[1].c_str(), [&](const pqxx::row& row) {
    return learned.kinds.add_text({row[0].c_str(), row[0].size()});
  });
}

// Drops the indexes of `planned`. False, and nothing is changed, if the table has cases, is in use,
// or belongs to another user.
bool bare_planned(pqxx::work& work) {
  if (!work.exec1(kMayBeBare)[0].as<bool>()) return false;
  try {
    pqxx::subtransaction part(work, "bare");
    part.exec0("LOCK TABLE planned IN ACCESS EXCLUSIVE MODE NOWAIT");
    part.exec0(kNoPlannedIndexes);
    part.commit();
    return true;
  } catch (const pqxx::sql_error&) {
    return false;
  }
}

}  // namespace

struct PostgresStore::Planning {
  std::vector<Estimates> known;  // cases that are planned already, by id
  Learned learned;
  std::vector<Estimates> changed;  // known cases whose estimates have changed
  std::int64_t first_bundle = 0;
  bool bare = false;                   // the table has no indexes until the plan is written
  std::optional<BundleCutter> cutter;  // for a plan that is too large to sort
};

void PostgresStore::PlanningDeleter::operator()(Planning* planning) const {
  std::default_delete<Planning>()(planning);
}

Status PostgresStore::begin_planning() {
  return in_plan([](pqxx::work& work) { work.exec(kPlanAlone); });
}

Status PostgresStore::add_case(const wire::CaseT& added) {
  mine_.push_back(signed_bits(added.id));
  added_.push_back(added);
  added_.back().work_us = std::max<std::uint64_t>(added.work_us, 1);
  const bool streams = planning_ != nullptr && planning_->cutter.has_value();
  return added_.size() < (streams ? kAtOnce : kSorted) ? Status() : stream_added();
}

// Reads what a plan must know, once in its transaction.
Status PostgresStore::prepare_planning() {
  if (planning_) return {};
  ASSAY_CHECK(begin_planning());
  std::unique_ptr<Planning, PlanningDeleter> made(new Planning);
  Status learned;
  ASSAY_CHECK(in_plan([&](pqxx::work& work) {
    made->known = read_known(work);
    learned = read_learned(work, made->learned);
    made->first_bundle =
        work.exec1("SELECT coalesce(max(number), 0) + 1 FROM bundle")[0].as<std::int64_t>();
    if (added_.size() >= kSorted) made->bare = bare_planned(work);
  }));
  ASSAY_CHECK(learned);
  planning_ = std::move(made);
  return {};
}

// Removes known cases from `added_`, and sets the expected work of the others.
void PostgresStore::keep_new() {
  std::erase_if(added_, [this](const wire::CaseT& each) {
    const Estimates now{signed_bits(each.id), clamped(each.elements), clamped(each.bytes)};
    const Estimates* known = find_id(planning_->known, now.id);
    if (known == nullptr) return false;
    if (std::tie(known->elements, known->bytes) != std::tie(now.elements, now.bytes)) {
      planning_->changed.push_back(now);
    }
    return true;
  });
  for (wire::CaseT& each : added_) {
    const auto us = planning_->learned.expected_us(signed_bits(each.id), each.text, each.elements);
    if (us) each.work_us = unsigned_bits(*us);
  }
}

// The expected work of `added_`.
std::int64_t PostgresStore::work_us() const {
  std::int64_t all = 0;
  for (const wire::CaseT& each : added_) all += clamped(each.work_us);
  return all;
}

// The work of a bundle in µs: less for a small plan, so that it has bundles for many workers.
std::int64_t PostgresStore::bundle_us() const {
  return std::min(std::int64_t{options_.bundle.count()},
                  (work_us() + options_.least_bundles - 1) / options_.least_bundles);
}

Status PostgresStore::write_added(const std::function<std::int64_t(std::int64_t)>& place) {
  new_cases_ += added_.size();
  return within(options_.whole_table_limit, [&]() -> Status {
    if (!connection_->rows) {
      connection_->rows.emplace(
          *connection_->plan, "planned",
          std::vector<std::string>{"id", "bundle", "text", "elements", "bytes", "work_us"});
    }
    for (const wire::CaseT& each : added_) {
      const std::int64_t work_us = clamped(each.work_us);
      *connection_->rows << std::make_tuple(signed_bits(each.id), place(work_us),
                                            std::cref(each.text), clamped(each.elements),
                                            clamped(each.bytes), work_us);
    }
    added_.clear();
    return {};
  });
}

// Sends `added_` without sorting. The stream of rows stays open for more cases.
Status PostgresStore::stream_added() {
  ASSAY_CHECK(prepare_planning());
  keep_new();
  if (!planning_->cutter) planning_->cutter.emplace(planning_->first_bundle, bundle_us());
  return write_added([this](std::int64_t us) { return planning_->cutter->place(us); });
}

// Sends all added cases, their bundles and the invalid lines. Ends the planning.
Status PostgresStore::place_added() {
  ASSAY_CHECK(flush_invalid());
  if (added_.empty() && !planning_) return {};
  std::optional<BundleCutter> sorted;
  if (planning_ != nullptr && planning_->cutter) {
    ASSAY_CHECK(stream_added());
  } else {
    ASSAY_CHECK(prepare_planning());
    keep_new();
    std::sort(added_.begin(), added_.end(), [](const wire::CaseT& a, const wire::CaseT& b) {
      return std::tie(b.work_us, a.id) < std::tie(a.work_us, b.id);
    });
    sorted.emplace(planning_->first_bundle, bundle_us(), work_us());
    ASSAY_CHECK(write_added([&](std::int64_t us) { return sorted->place_sorted(us); }));
  }
  const std::vector<CutBundle> bundles =
      sorted ? sorted->in_order() : planning_->cutter->in_order();
  ASSAY_CHECK(in_plan([&](pqxx::work& work) {
    pqxx::stream_to rows(
        work, "bundle",
        std::vector<std::string>{"number", "rank", "left_over", "work_us", "left_us"});
    for (const CutBundle& each : bundles) {
      rows << std::tie(each.number, each.rank, each.cases, each.work_us, each.left_us);
    }
    rows.complete();
  }));
  ASSAY_CHECK(write_changed());
  ASSAY_CHECK(in_plan([this](pqxx::work& work) {
    work.exec0("SET LOCAL maintenance_work_mem = '256MB'");
    if (planning_->bare) work.exec0(kPlannedIndexes);
    work.exec0("ANALYZE planned, bundle");
  }));
  connection_->knows_mine = false;
  planning_.reset();
  return {};
}

Status PostgresStore::write_changed() {
  if (planning_->changed.empty()) return {};
  return in_plan([this](pqxx::work& work) {
    work.exec0(
        "CREATE TEMPORARY TABLE changed (id bigint, elements bigint, bytes bigint) ON COMMIT DROP");
    pqxx::stream_to rows(work, "changed");
    for (const Estimates& each : planning_->changed) {
      rows << std::tie(each.id, each.elements, each.bytes);
    }
    rows.complete();
    work.exec0("ANALYZE changed");
    work.exec0(kNewEstimates);
    work.exec0("DROP TABLE changed");
  });
}

Status PostgresStore::add_invalid(const InvalidLine& line) {
  invalid_.push_back(line);
  return invalid_.size() < kInvalidAtOnce ? Status() : flush_invalid();
}

Status PostgresStore::flush_invalid() {
  if (invalid_.empty()) return {};
  ASSAY_CHECK(in_plan([this](pqxx::work& work) {
    pqxx::stream_to rows(work, "invalid", std::vector<std::string>{"place", "text", "message"});
    for (const InvalidLine& line : invalid_) {
      rows << std::make_tuple(replace_bad_bytes(line.where), replace_bad_bytes(line.text),
                              replace_bad_bytes(line.message));
    }
    rows.complete();
  }));
  invalid_.clear();
  return {};
}

// A plan calls this first. From here on it holds the lock of kPlanAlone.
Status PostgresStore::forget_invalid() {
  invalid_.clear();
  ASSAY_CHECK(begin_planning());
  return in_plan([](pqxx::work& work) { work.exec0("DELETE FROM invalid"); });
}

Result<std::int64_t> PostgresStore::forget_finished(std::span<const Outcome> outcomes) {
  if (outcomes.empty()) return 0;
  ASSAY_CHECK(begin_planning());
  std::int64_t forgotten = 0;
  const bool anew = outcomes.size() == kOutcomes.size();
  if (anew) {
    ASSAY_CHECK(in_plan([](pqxx::work& work) { work.exec0("DELETE FROM failed_before"); }));
  }
  for (const Outcome outcome : outcomes) {
    const std::string failed = info(outcome).failed ? "true" : "false";
    const std::string forget =
        fmt::format(kForget, anew ? "SELECT" : failures_to_note("gone", failed, "$1"));
    Status read_all;
    ASSAY_CHECK(in_plan([&](pqxx::work& work) {
      Tally changes;
      FinishedRow read;
      for (const auto& row : work.exec_params(forget, std::string(name(outcome)))) {
        read_all = show_finished(row, 0, read, [&](const FinishedCase& finished) -> Status {
          changes.take_back(traits_of(finished.text), finished);
          return {};
        });
        if (!read_all) return;
        ++forgotten;
      }
      // The learned costs of these cases stay true.
      if (!changes.empty()) work.exec_params0(kWriteTally, changes.text(), "");
    }));
    ASSAY_CHECK(read_all);
  }
  return forgotten;
}

}  // namespace assay
