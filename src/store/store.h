#pragma once

// The store of a run: its plan (properties and cases), the claims of those who run the cases, and a
// reader of everything.
//
// One or more supervisors (claimers) work on a run. A claimer takes cases with claim(), extends its
// leases with renew(), records each result with finish(), and returns unfinished cases with
// release_all(). Each claim of a case has a higher epoch than the one before, and a result with an
// older epoch changes nothing. So a case finishes once, however often it ran.
//
// commit() writes everything since the last commit atomically. A claimer that dies, and a store
// that is destroyed, lose only what was not committed.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/finished_case.h"
#include "store/run_totals.h"
#include "store/tally.h"
#include "wire/job.h"

namespace assay {

// Prefix of the properties that keep command-line flags which a rerun of a case must repeat.
inline constexpr std::string_view kRerunFlag = "flag.";
// Property of a run of a part of a corpus: the part, such as "3/8".
inline constexpr std::string_view kShardProperty = "shard";

// What this claimer can claim next.
enum class Supply {
  more,            // more cases may be free: claim again
  held_elsewhere,  // nothing now; other claimers may return cases
  none,            // nothing: each case has finished or is held by this claimer
};

// A line of the corpus that is no valid case.
struct InvalidLine {
  std::string where;  // "FILE:LINE"
  std::string text;   // shortened for display
  std::string message;
};

// Numbers of cases in a run.
struct StoreCounts {
  std::uint64_t planned = 0;
  std::uint64_t finished = 0;
};

inline constexpr std::uint64_t kAllOfThem = std::numeric_limits<std::uint64_t>::max();

// Which finished cases a reader asks for. A store needs one query for it.
struct RunQuery {
  enum class Rows {
    all,
    failed,   // outcomes that count as failures
    listed,   // failed, and passes with a flag
    outcome,  // one outcome
  };
  Rows rows = Rows::all;
  Outcome outcome = Outcome::pass;          // for Rows::outcome
  std::span<const std::uint64_t> ids = {};  // with Rows::all: only these cases; empty: all cases
  std::uint64_t most = kAllOfThem;          // rows of each outcome; not with Rows::all
  bool records = true;                      // false: FinishedCase::record stays empty
};

// A visitor that returns an error ends the visit with that error.
using VisitPlanned = std::function<Status(const wire::CaseT&)>;
using VisitJob = std::function<Status(wire::JobT)>;
using VisitFinished = std::function<Status(const FinishedCase&)>;
using VisitInvalid = std::function<Status(const InvalidLine&)>;

class RunReader {
 public:
  RunReader() = default;
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;
  virtual ~RunReader() = default;

  // Settings and versions of the run (mode, seed, …).
  virtual Result<std::map<std::string, std::string>> properties() = 0;
  // Visits finished cases in the order in which they finished.
  virtual Status each(const RunQuery& query, const VisitFinished& visit) = 0;
  // Visits planned cases that have not finished, in the order of their texts.
  virtual Status each_unfinished(const VisitPlanned& visit) = 0;
  // Visits the invalid lines of the corpus.
  virtual Status each_invalid(const VisitInvalid& visit) = 0;
  // The numbers of planned and finished cases.
  virtual Result<StoreCounts> counts() = 0;
  // The run's sums. A store keeps them; other readers add up all cases.
  virtual Result<Tally> tally();
  // The number of planned cases that have not finished.
  virtual Result<std::uint64_t> unfinished();
  // The runs beside this one: in the same parent folder or database.
  virtual Result<std::vector<RunTotals>> other_runs() { return std::vector<RunTotals>(); }
  // The name of this run: its folder or schema.
  virtual Result<std::string> run_name() { return std::string(); }

  // Visits all finished cases with their records.
  Status each_finished(const VisitFinished& visit) { return each({}, visit); }
};

class RunPlan {
 public:
  RunPlan() = default;
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;
  virtual ~RunPlan() = default;

  // Sets a property, whatever it was before.
  virtual Status set_property(std::string_view key, std::string_view value) = 0;
  // Sets a property unless it is set, and gives its value. Supervisors that start the same run at
  // once get the same value.
  virtual Result<std::string> agree_on(std::string_view key, std::string_view value) = 0;

  // Adds a case. A case that is already planned keeps its text and result, and gets the new
  // estimates.
  virtual Status add_case(const wire::CaseT& added) = 0;
  // Adds an invalid line.
  virtual Status add_invalid(const InvalidLine& line) = 0;
  // Removes all invalid lines, so that a resumed run does not count them twice.
  virtual Status forget_invalid() = 0;
  // Makes finished cases with these outcomes unfinished, for a retest. Gives their number. The jobs
  // of those that had failed say so from then on, unless all outcomes are retested.
  virtual Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes) = 0;
  // Calls `visit` with the id of each finished case.
  virtual Status each_finished_id(const std::function<void(std::uint64_t)>& visit) = 0;
  // How many of the added cases were new to the run, as of the last commit().
  virtual std::uint64_t added() const = 0;

  // Makes everything that was written so far durable. The data survive the death of any process.
  virtual Status commit() = 0;
};

// The defaults are those of a run with one claimer, which keeps nothing.
class RunClaims {
 public:
  static constexpr std::chrono::milliseconds kUsualPace{1'000};

  RunClaims() = default;
  RunClaims(const RunClaims&) = delete;
  RunClaims& operator=(const RunClaims&) = delete;
  virtual ~RunClaims() = default;

  // Claims up to `bundles` bundles of unfinished cases that no claimer holds, and visits each case
  // with its epoch. A bundle is one case or a few seconds of work, as the store decides. A claimer
  // that has added cases gets only these; another one gets any case of the run. A case that this
  // claimer holds is not claimed again, even if its lease has expired: renew() makes the lease
  // valid again unless another claimer has taken the case.
  virtual Result<Supply> claim(std::size_t bundles, const VisitJob& visit) = 0;
  // How long a lease is valid without renew(); nullopt: as long as the store is open.
  virtual std::optional<std::chrono::milliseconds> lease_time() const { return std::nullopt; }
  // Extends all leases of this claimer.
  virtual Status renew() { return {}; }
  // Returns the unfinished cases of this claimer, so that others can claim them. Call it after
  // commit().
  virtual Status release_all() { return {}; }
  // Records the result of a case. False, and nothing is written, if the lease of its epoch is no
  // longer valid: the case has finished, or another claimer holds it.
  virtual Result<bool> finish(const FinishedCase& finished) = 0;
  // A case has failed and runs again; `how` is told to whoever claims it later, should this run end
  // before the retry does.
  virtual Status note_failure(std::uint64_t /*id*/, const std::string& /*how*/) { return {}; }
  // As RunPlan::commit().
  virtual Status commit() { return {}; }
  // How long a claimer should wait between two visits. Longer if visits are slow because many
  // claimers share the store.
  virtual std::chrono::milliseconds pace() const { return kUsualPace; }
};

class Store : public RunReader, public RunPlan, public RunClaims {
 public:
  Status commit() override = 0;
};

// How a store is opened.
enum class StoreMode {
  create,    // create a missing run
  existing,  // a missing run is an error
  read,      // likewise; a PostgreSQL store does not write, and does not upgrade its tables
};

}  // namespace assay
