#pragma once

// What a stage reads of the files that earlier stages of its run make. A file of yesterday may lie
// at the same place.

#include <cstdint>
#include <deque>
#include <string>

#include "chain/run/job.h"

namespace assay::chain::run {

// Whether an argument of the job's stage names what `other` writes, or a part of it. A stage behind
// a training that writes to the folder of the training reads it.
bool reads(const Job& job, const plan::Stage& other);

// Why the stage must not run: an earlier stage should have made what it reads, and did not. "" if
// it may run.
std::string unmade_input(const std::deque<Job>& jobs, const Job& job);

// Why the stage must not run: it reads a file in the folder `results` that is older than
// `started_ns` (ctime) and that no stage made, in this run or kept. "" if it may run. A clock that
// jumps back makes files of this run look old, so what a stage made counts before any time.
std::string stale_input(const std::deque<Job>& jobs, const Job& job, const std::string& results,
                        std::int64_t started_ns);

}  // namespace assay::chain::run
