// Writes results to PostgreSQL: cases, their bundles and the run's sums in one transaction.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "store/fault_text.h"
#include "store/finished_rows.h"
#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

// Builds an SQL array of numbers or quoted texts.
class ArrayText {
 public:
  void add(std::int64_t number) {
    begin_entry();
    fmt::format_to(std::back_inserter(text_), "{}", number);
  }
  void add(const std::string& entry) {
    begin_entry();
    text_ += '"';
    for (const char c : entry) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }
  std::string take() { return std::move(text_) + "}"; }

 private:
  void begin_entry() {
    if (text_.size() > 1) text_ += ',';
  }
  std::string text_ = "{";
};

}  // namespace

Result<bool> PostgresStore::finish(const FinishedCase& finished) {
  const auto held = held_.find(finished.id);
  if (held == held_.end()) return false;
  const auto found = bundles_.find(held->second);
  if (found == bundles_.end() || found->second.epoch != finished.epoch) return false;
  Bundle& bundle = found->second;
  const std::int64_t work_us = bundle.work_us / bundle.left;
  bundle.work_us -= work_us;
  --bundle.left;
  done_us_ += work_us;
  ended_.emplace_back(held->second, finished);
  held_.erase(held);
  return true;
}

void PostgresStore::Sums::add(const FinishedCase& ended) {
  const CaseTraits traits = traits_of(ended.text);
  tally.add(traits, ended);
  costs.add(traits.api, traits.dtype, ended.elements, ended.took_us);
}

bool PostgresStore::has_results() const {
  return !ended_.empty() || std::any_of(bundles_.begin(), bundles_.end(),
                                        [](const auto& each) { return each.second.left == 0; });
}

// The parameters $1 to $16 of kRecord.
struct PostgresStore::Results {
  std::array<std::string, 12> of_cases;
  std::string records;
  std::array<std::string, 3> of_bundles;
  bool empty = true;  // there is nothing to write

  template <typename Transaction, typename... More>
  auto exec(const Transaction& transaction, const More&... more) const {
    return std::apply(
        [&](const auto&... column) {
          return std::apply(
              [&](const auto&... bundle) {
                return transaction(column..., pqxx::binarystring(records), bundle..., more...);
              },
              of_bundles);
        },
        of_cases);
  }
};

PostgresStore::Results PostgresStore::gathered() const {
  ArrayText ids, of, outcomes, mismatches, flags, lanes, messages, attempts, at_ms, took_us, faults,
      sizes;
  RecordPacker packer;
  Results results;
  // Epochs by bundle, ordered because all claimers lock bundles in this order.
  std::map<std::int64_t, std::uint64_t> touched;
  for (const auto& [number, each] : ended_) {
    touched[number] = each.epoch;
    ids.add(signed_bits(each.id));
    of.add(number);
    outcomes.add(std::string(name(each.verdict.outcome)));
    mismatches.add(std::int64_t{each.verdict.mismatch});
    flags.add(std::int64_t{each.verdict.flags});
    lanes.add(replace_bad_bytes(each.verdict.lane));
    messages.add(replace_bad_bytes(each.verdict.message));
    attempts.add(std::int64_t{each.attempts});
    at_ms.add(each.finished_ms);
    took_us.add(clamped(each.took_us));
    faults.add(replace_bad_bytes(faults_text(each.verdict.faults)));
    const std::vector<std::uint8_t> record = packer.pack(each.record);
    sizes.add(static_cast<std::int64_t>(record.size()));
    results.records.append(record.begin(), record.end());
  }
  for (const auto& [number, bundle] : bundles_) {
    if (bundle.left == 0) touched[number] = bundle.epoch;
  }
  ArrayText numbers, epochs, all_ended;
  for (const auto& [number, epoch] : touched) {
    const auto bundle = bundles_.find(number);
    numbers.add(number);
    epochs.add(signed_bits(epoch));
    all_ended.add(std::int64_t{bundle == bundles_.end() || bundle->second.left == 0});
  }
  results.of_cases = {ids.take(),   of.take(),      outcomes.take(), mismatches.take(),
                      flags.take(), lanes.take(),   messages.take(), attempts.take(),
                      at_ms.take(), took_us.take(), faults.take(),   sizes.take()};
  results.of_bundles = {numbers.take(), epochs.take(), all_ended.take()};
  results.empty = touched.empty();
  return results;
}

// Records all results with one statement. False if not every case can be recorded; then none was.
bool PostgresStore::write_all(pqxx::transaction_base& transaction, const Results& results) {
  Sums sums;
  for (const auto& [number, each] : ended_) sums.add(each);
  const std::string changes = sums.tally.text();
  const std::string costs = sums.costs.text();
  try {
    results.exec(
        [&](const auto&... values) {
          return transaction.exec_prepared1("assay_record", values...);
        },
        changes, costs, static_cast<std::int64_t>(ended_.size()));
  } catch (const pqxx::sql_error& error) {
    if (error.sqlstate() == kNotAllRecorded) return false;
    throw;
  }
  return true;
}

// Records the results that can be recorded, then adds their sums.
void PostgresStore::write_some(pqxx::transaction_base& transaction, const Results& results) {
  const auto row = results.exec([&](const auto&... values) {
    return transaction.exec_params1(fmt::format(kRecord, "", kWhichRecorded), values...);
  });
  std::set<std::uint64_t> recorded;
  auto ids = row[0].as_array();
  for (auto [what, text] = ids.get_next(); what != pqxx::array_parser::juncture::done;
       std::tie(what, text) = ids.get_next()) {
    if (what == pqxx::array_parser::juncture::string_value) {
      recorded.insert(unsigned_bits(std::stoll(text)));
    }
  }
  Sums sums;
  for (const auto& [number, each] : ended_) {
    if (recorded.contains(each.id)) sums.add(each);
  }
  if (!recorded.empty()) {
    transaction.exec_params0(kWriteTally, sums.tally.text(), sums.costs.text());
  }
  fenced_ += ended_.size() - recorded.size();
}

void PostgresStore::forget_mine(pqxx::transaction_base& transaction) {
  if (mine_.empty() || !connection_->knows_mine) return;
  std::vector<std::int64_t> ended;
  for (const auto& [number, bundle] : bundles_) {
    if (bundle.left == 0) ended.push_back(number);
  }
  transaction.exec_params0(kMineAreLeft, as_array(ended));
}

Status PostgresStore::write_results() {
  const Results results = gathered();
  if (results.empty) return {};
  bool written = false;
  if (mine_.empty()) {
    ASSAY_CHECK(
        in_timed([&](pqxx::transaction_base& work) { written = write_all(work, results); }));
  }
  if (written) return {};
  const std::uint64_t fenced_before = fenced_;
  return patiently([&]() -> Status {
    fenced_ = fenced_before;
    pqxx::work transaction(connection_->session);
    write_some(transaction, results);
    forget_mine(transaction);
    transaction.commit();
    return {};
  });
}

// Replaces the rows of `tally` by their sum, at random: about once for every `tally_characters`
// that all claimers together write. Rows that others write meanwhile stay as they are. If it fails,
// another claimer will do it.
void PostgresStore::add_up_tally() {
  std::size_t written = 0;
  for (const auto& [number, each] : ended_) written += 100 + each.text.size();
  if (std::uniform_int_distribution<std::size_t>(0, options_.tally_characters)(random_) > written)
    return;
  (void)within(options_.answer_limit, [&]() -> Status {
    pqxx::work work(connection_->session);
    if (!work.exec1(kTallyIsFree)[0].as<bool>()) return {};
    Sums all;
    for (const auto& row : work.exec(kTakeTally)) {
      ASSAY_CHECK(all.tally.add_text({row[0].c_str(), row[0].size()}));
      ASSAY_CHECK(all.costs.add_text({row[1].c_str(), row[1].size()}));
    }
    work.exec_params0(kWriteTally, all.tally.text(), all.costs.text());
    work.commit();
    return {};
  });
}

// A plan that is lost with its connection is an error, because its cases were already dropped here.
// Results are kept until they are written. A result that was written although the answer got lost
// is dropped when it is written again.
Status PostgresStore::commit() {
  ASSAY_CHECK(place_added());
  const bool plans = connection_ && connection_->plan;
  if (!plans && !has_results()) return {};
  if (plans) {
    const Status written = within(options_.whole_table_limit, [&]() -> Status {
      const Results results = gathered();
      if (!results.empty) {
        write_some(*connection_->plan, results);
        forget_mine(*connection_->plan);
      }
      connection_->plan->commit();
      return {};
    });
    connection_->drop_plan();
    ASSAY_CHECK(written);
  } else {
    ASSAY_CHECK(write_results());
    add_up_tally();
  }
  ended_.clear();
  std::erase_if(bundles_, [](const auto& each) { return each.second.left == 0; });
  return {};
}

}  // namespace assay
