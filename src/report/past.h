#pragma once

// What a run is compared with: the faults of a past run or a baseline file, and what was judged.

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/fault_sums.h"
#include "store/store.h"
#include "verdict/timings.h"

namespace assay {

// The numbers of cases of one API and dtype.
struct Coverage {
  std::int64_t cases = 0;
  std::int64_t not_judged = 0;  // unsupported, skip or no_kernel
  std::int64_t rejected = 0;    // both frameworks rejected the call
};

// Time of calls and gradients in the test lane.
struct TestTime {
  std::int64_t ns = 0;
  std::int64_t cases = 0;
};

// The part of a run that is compared.
struct RunFaults {
  std::map<FaultKey, FaultSums> faults;
  std::map<std::string, std::int64_t> judged;                        // cases by API
  std::map<std::pair<std::string, std::string>, Coverage> coverage;  // by API and dtype
  std::map<std::string, TestTime> times;                             // by API
  std::set<std::string> unfinished;  // APIs with cases that have not finished

  // Whether all cases of the API have finished, and some were judged: a fault that is not there is
  // fixed.
  bool covers(const std::string& api) const;
};

// Computed from the sums of a run. An invalid line is a fault with the outcome `invalid`.
Result<RunFaults> faults_of_run(RunReader& run);

// A known fault, with what users wrote about it in a baseline file.
struct KnownFault {
  FaultSums sums;           // cases: 0 if the fault may show in any number of cases, or in none
  std::int64_t judged = 0;  // cases of the API that were judged then; 0: not known
  std::string reason;
  std::string owner;
  std::string upstream;  // URL of the report to the framework
  std::string until;     // "2027-01-31": the last day (UTC) on which it is known; empty: always
};

struct PastRun {
  std::string name;                               // where it was read from
  std::map<std::string, std::string> properties;  // mode, seed, versions …
  std::map<FaultKey, KnownFault> faults;
  std::map<std::pair<std::string, std::string>, Coverage> coverage;
  std::map<std::string, TestTime> times;
  bool is_baseline = false;  // read from a file, which may state only some of the settings
  // All cases that `coverage` does not list were judged. True for a baseline that a run wrote.
  bool coverage_is_complete = false;
  std::string run;     // where the cases of the run can be read; empty for a baseline
  std::string notice;  // what the user should know about the file; empty: nothing
};

// The id of an invalid line: the hash of its text.
std::uint64_t invalid_line_id(const InvalidLine& line);

// The fault that stands for an invalid line.
FaultKey key_of(const InvalidLine& line);

// The timings in a record; empty if it has none or cannot be read.
std::vector<TimedPart> timings_of(std::span<const std::uint8_t> record);

// Reads a past run or a baseline. `where`: the folder of a run, the address of a database, or a
// baseline file. A usage error if it is none of these.
Result<PastRun> load_past(const std::string& where);

// What `--against` names the shipped lists of known faults.
inline constexpr std::string_view kShippedFaults = "known";

// Reads the lists in `folder` that are about the frameworks of a run: LANE-VERSION.toml, where LANE
// is the label of a lane. `properties` are those of the run. A notice names lanes without a list.
Result<PastRun> load_shipped_faults(const std::filesystem::path& folder,
                                    const std::map<std::string, std::string>& properties);

}  // namespace assay
