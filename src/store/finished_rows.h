#pragma once

// The query of finished cases that both stores answer, and what a row holds.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/finished_case.h"
#include "store/record_packer.h"
#include "store/store.h"

namespace assay {

// SELECT of a finished case's columns (id, text, outcome, mismatch, flags, lane, message, attempts,
// at_ms, took_us, faults, record; in this order both stores read them) for the cases that `query`
// wants, in the order in which they finished. The text suits SQLite and PostgreSQL.
std::string finished_rows(const RunQuery& query);

// The failed outcomes as a list of SQL texts: "'timeout', 'crash'".
std::string failed_names();
// The condition of listed_index(), which a query must repeat word for word.
std::string is_listed();

// CREATE INDEX for the rows that reports list: failures, and passes with a flag.
std::string listed_index();

// A row of that query; its case owns its faults and record.
struct FinishedRow {
  FinishedCase finished;
  RecordUnpacker unpacker;

  // Parses the faults and unpacks the record of the row into `finished`.
  Status take(std::string_view faults, std::span<const std::uint8_t> record);
};

}  // namespace assay
