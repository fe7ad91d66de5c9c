#pragma once

// What a run keeps: its properties, what was planned, who works on what, what came of it.
//
// One or many supervisors (claimers) work on a run. A claimer takes cases with claim(), extends its
// hold with renew() while it works, ends each with finish(), and gives back with release_all() what
// it has not ended. The store decides who holds what: every claim of a case carries a higher epoch
// than the one before, and what comes with an older epoch changes nothing. So a case ends once,
// however often it ran.
//
// Writes gather until commit(): a claimer that dies loses at most what it had not committed, and
// never half of it. What was written and not committed is dropped with the store.

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

namespace assay {

// Properties of this beginning are flags of the command line that a rerun of a case repeats.
inline constexpr std::string_view kRerunFlag = "flag.";
// The part of a corpus that a run is, where it is one: "3/8".
inline constexpr std::string_view kShardProperty = "shard";

// A case as it is planned. Elements and bytes are estimates of what it needs (schedule/cost.h): a
// store may hand out cases in their order.
struct StoredCase {
  std::uint64_t id = 0;
  std::string_view text;  // canonical
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t work_us = 0;  // expected time in a slot; 0: not known
};

// The hold of one claimer on one case.
struct Lease {
  std::uint64_t id = 0;     // of the case
  std::uint64_t epoch = 0;  // rises with every claim of that case
};

struct ClaimedCase {
  Lease lease;
  StoredCase planned;
};

// What is left for this claimer after a claim.
enum class Supply {
  more,            // claim again
  held_elsewhere,  // nothing now; cases of other claimers may come back
  none,            // every case has finished or is this claimer's
};

struct InvalidLine {
  std::string where;  // "FILE:LINE"
  std::string text;   // cut to what a person can look at
  std::string message;
};

struct StoreCounts {
  std::uint64_t planned = 0;
  std::uint64_t finished = 0;
};

inline constexpr std::uint64_t kAllOfThem = std::numeric_limits<std::uint64_t>::max();

// Which finished cases a reader wants. Every store answers it with one query.
struct RunQuery {
  enum class Rows {
    all,
    failed,   // outcomes that count as failures
    listed,   // failed, and passes with a flag
    outcome,  // one outcome
  };
  Rows rows = Rows::all;
  Outcome outcome = Outcome::pass;          // of Rows::outcome
  std::span<const std::uint64_t> ids = {};  // with Rows::all: only these cases; empty: every case
  std::uint64_t most = kAllOfThem;          // the first rows of each outcome; not with Rows::all
  bool records = true;                      // false: FinishedCase::record stays empty
};

using VisitFinished = std::function<Status(const FinishedCase&)>;

// A run as reports read it.
class RunReader {
 public:
  RunReader() = default;
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;
  virtual ~RunReader() = default;

  // What the run was begun with (mode, seed, versions …).
  virtual Result<std::map<std::string, std::string>> properties() = 0;
  // Visits finished cases in the order in which they finished.
  virtual Status each(const RunQuery& query, const VisitFinished& visit) = 0;
  virtual Status each_unfinished(const std::function<Status(const StoredCase&)>& visit) = 0;
  virtual Status each_invalid(const std::function<Status(const InvalidLine&)>& visit) = 0;
  virtual Result<StoreCounts> counts() = 0;
  // The run in sums, without reading its cases.
  virtual Result<Tally> tally() = 0;
  // The number of planned cases that have not finished.
  virtual Result<std::uint64_t> unfinished();
  // Other runs that are kept beside this one, and this run's name among them.
  virtual Result<std::vector<RunTotals>> other_runs() { return std::vector<RunTotals>(); }
  virtual Result<std::string> run_name() { return std::string(); }

  // Every finished case with its record.
  Status each_finished(const VisitFinished& visit) { return each({}, visit); }
};

class Store : public RunReader {
 public:
  static constexpr std::chrono::milliseconds kUsualPace{1'000};

  virtual Status set_property(std::string_view key, std::string_view value) = 0;
  // Sets it where it is not there yet, and gives what stands now: all who begin a run at once get
  // the same.
  virtual Result<std::string> agree_on(std::string_view key, std::string_view value) = 0;

  // ---- planning ----

  // A case that is already there keeps its text and what came of it; its estimates are the newest.
  virtual Status add_case(const StoredCase& added) = 0;
  virtual Status add_invalid(const InvalidLine& line) = 0;
  // So that a resumed run does not count the same bad lines again.
  virtual Status forget_invalid() = 0;
  // Makes finished cases of these outcomes unfinished, for a retest; says how many.
  virtual Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes) = 0;
  // How many of the cases that were added were new to the run, as of the last commit().
  virtual std::uint64_t added() const = 0;

  // ---- leases ----

  // Claims up to so many bundles of cases that have not finished and that nobody holds, and shows
  // each case to `visit`; never one that this claimer still holds, also where its lease has run out
  // meanwhile (renew() makes it valid again, unless another claimer was faster). A claimer that has
  // added cases gets only these; one that has added none gets any of the run. What is in a bundle
  // is for the store to say: a single case, or work for some seconds.
  virtual Result<Supply> claim(std::size_t bundles,
                               const std::function<Status(const ClaimedCase&)>& visit) = 0;
  // How long a lease holds without renew(); nullopt: as long as the store is open.
  virtual std::optional<std::chrono::milliseconds> lease_time() const = 0;
  // Extends all leases of this claimer.
  virtual Status renew() = 0;
  // Gives back what this claimer holds and has not finished, for others to claim. To be called
  // after commit().
  virtual Status release_all() = 0;
  // Records what came of a case, whose text `finished` has. False, and nothing is written: the
  // lease is no longer valid, because the case has finished or another claimer holds it.
  virtual Result<bool> finish(const Lease& lease, const FinishedCase& finished) = 0;

  // Makes what was written so far durable against the death of any process.
  virtual Status commit() = 0;

  // How long a claimer had better gather between two visits: longer where visits take long, because
  // many share the store.
  virtual std::chrono::milliseconds pace() const { return kUsualPace; }

  // Calls `visit` with the id of each finished case.
  virtual Status each_finished_id(const std::function<void(std::uint64_t)>& visit) = 0;
};

enum class StoreMode {
  create,    // a run is begun where there is none
  existing,  // a missing run is an error
  read,      // likewise, and a database only reads: it is not upgraded either
};

}  // namespace assay
