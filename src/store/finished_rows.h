#pragma once

// The SQL query for finished cases that both stores use, and one row of its answer.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/finished_case.h"
#include "store/record_packer.h"
#include "store/store.h"

namespace assay {

// A SELECT statement for the cases that `query` asks for, in the order in which they finished. Its
// columns: id, text, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us, faults,
// record. SQLite and PostgreSQL both accept it.
std::string finished_rows(const RunQuery& query);

// The condition of listed_index(). A query must repeat it literally, or the database does not use
// the index.
std::string is_listed();

// A CREATE INDEX statement for the rows that reports list: failures, and passes with a flag.
std::string listed_index();

// An INSERT statement that keeps how these cases of the table `rows` failed, before a retest: those
// of the outcome `of` if `failed` is true, and flaky ones. The arguments are SQL.
std::string failures_to_note(std::string_view rows, std::string_view failed, std::string_view of);

// A row of finished_rows(). Its case owns its faults and record.
struct FinishedRow {
  FinishedCase finished;
  RecordUnpacker unpacker;

  // Parses the faults and unpacks the record into `finished`. An error if either is damaged.
  Status take(std::string_view faults, std::span<const std::uint8_t> record);
};

}  // namespace assay
