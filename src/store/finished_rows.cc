#include "store/finished_rows.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "store/fault_text.h"
#include "store/signed_bits.h"

namespace assay {
namespace {

// The failed outcomes as a list of SQL texts: "'timeout', 'crash'".
std::string failed_names() {
  std::string names;
  for (const OutcomeInfo& each : kOutcomes) {
    if (each.failed) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", each.name);
  }
  return names;
}

std::string of_outcome(Outcome outcome) {
  const std::string condition = fmt::format("outcome = '{}'", name(outcome));
  return info(outcome).failed ? fmt::format("{} AND {}", condition, is_listed()) : condition;
}

// One condition for each outcome that the query asks for.
std::vector<std::string> conditions_of(const RunQuery& query) {
  if (query.rows == RunQuery::Rows::outcome) return {of_outcome(query.outcome)};
  std::vector<std::string> conditions;
  for (const OutcomeInfo& each : kOutcomes) {
    if (each.failed) conditions.push_back(of_outcome(each.outcome));
  }
  if (query.rows == RunQuery::Rows::listed) {
    conditions.push_back(fmt::format("outcome = 'pass' AND flags <> 0 AND {}", is_listed()));
  }
  return conditions;
}

std::string condition_of(const RunQuery& query) {
  if (query.rows == RunQuery::Rows::all) {
    if (query.ids.empty()) return {};
    std::string ids;
    for (const std::uint64_t id : query.ids) {
      ids += fmt::format("{}{}", ids.empty() ? "" : ",", signed_bits(id));
    }
    return fmt::format("WHERE f.id IN ({})", ids);
  }
  std::string limit;
  if (query.most <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    limit = fmt::format(" ORDER BY sequence LIMIT {}", query.most);
  }
  std::string parts;
  for (const std::string& condition : conditions_of(query)) {
    parts +=
        fmt::format("{}SELECT sequence FROM (SELECT sequence FROM finished WHERE {}{}) AS part",
                    parts.empty() ? "" : " UNION ALL ", condition, limit);
  }
  return fmt::format("WHERE sequence IN ({})", parts);
}

}  // namespace

std::string is_listed() { return fmt::format("(flags <> 0 OR outcome IN ({}))", failed_names()); }

std::string finished_rows(const RunQuery& query) {
  return fmt::format(
      "SELECT f.id, p.text, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us, "
      "faults, {} FROM finished f JOIN planned p USING (id) {} ORDER BY sequence",
      query.records ? "record" : "NULL", condition_of(query));
}

std::string listed_index() {
  return fmt::format("CREATE INDEX finished_listed ON finished (outcome, sequence) WHERE {}",
                     is_listed());
}

std::string failures_to_note(std::string_view rows, std::string_view failed, std::string_view of) {
  return fmt::format(
      "INSERT INTO failed_before SELECT id, CASE WHEN {1} THEN outcome || ' (' || message || ')' "
      "ELSE message END FROM {0} WHERE outcome = {2} AND ({1} OR flags & {3} <> 0) "
      "ON CONFLICT (id) DO UPDATE SET ending = excluded.ending WHERE {1}",
      rows, failed, of, int{kFlaky});
}

Status FinishedRow::take(std::string_view faults, std::span<const std::uint8_t> record) {
  finished.verdict.faults.clear();
  if (!faults.empty()) {
    ASSAY_TRY(finished.verdict.faults, parse_faults(faults));
  }
  complete_faults(finished.verdict);
  return unpacker.unpack(record, finished.record);
}

}  // namespace assay
