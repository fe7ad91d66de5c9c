#pragma once

// The database of one API run: what was planned, what was started, what came of it.
//
// Started and finished are recorded apart: what was started and not finished runs again. Writes
// gather in one transaction until commit(), so a crash loses at most what was not yet committed,
// and never half of it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.h"
#include "verdict/judge.h"

namespace assay {

// Properties of this beginning are flags of the command line that a rerun of a case repeats.
inline constexpr std::string_view kRerunFlag = "flag.";

struct StoredCase {
  std::uint64_t id = 0;
  std::string_view text;  // canonical
};

// A case that has come to something. Views hold as long as the caller's data, or until the next row
// when they are read.
struct FinishedCase {
  std::uint64_t id = 0;
  std::string_view text;  // canonical; only read
  Verdict verdict;
  std::uint32_t attempts = 1;
  std::int64_t finished_ms = 0;          // since 1970
  std::span<const std::uint8_t> record;  // wire::Record; empty for lines that never ran
};

struct InvalidLine {
  std::string where;  // "FILE:LINE"
  std::string text;   // cut to what a person can look at
  std::string message;
};

class RunStore {
 public:
  static constexpr std::string_view kFileName = "run.db";

  // Opens the run in `folder`, or begins one there. A folder whose run.db is no run of assay, or of
  // a newer assay, is refused untouched.
  static Result<RunStore> open(const std::filesystem::path& folder, OpenMode mode);

  // What the run was begun with (mode, seed, versions …).
  Result<std::map<std::string, std::string>> properties();
  Status set_property(std::string_view key, std::string_view value);

  // Cases that are already there stay as they are.
  Status add_case(const StoredCase& added);
  Status add_invalid(const InvalidLine& line);
  // So that a resumed run does not count the same bad lines again.
  Status forget_invalid();

  Status record_started(std::uint64_t id, std::uint32_t attempt, std::uint32_t slot);
  Status record_finished(const FinishedCase& finished);
  // Makes finished cases of these outcomes unfinished, for a retest.
  Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes);
  // Makes what was written so far durable against the death of any process.
  Status commit();

  // Calls `visit` with the id of each finished case.
  Status each_finished_id(const std::function<void(std::uint64_t)>& visit);
  // In the order in which they finished.
  Status each_finished(const std::function<Status(const FinishedCase&)>& visit);
  Status each_unfinished(const std::function<Status(const StoredCase&)>& visit);
  Status each_invalid(const std::function<Status(const InvalidLine&)>& visit);
  // nullopt: no such case. The visitor is given the case whether it has finished or not.
  Result<std::optional<std::string>> case_text(std::uint64_t id);

 private:
  explicit RunStore(Database database) : database_(std::move(database)) {}
  Status prepare_statements();
  Status write(Statement& statement);

  Database database_;
  std::optional<Transaction> transaction_;
  Statement insert_case_;
  Statement insert_started_;
  Statement insert_finished_;
};

}  // namespace assay
