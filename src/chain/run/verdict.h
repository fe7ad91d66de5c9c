#pragma once

#include <string>

#include "chain/run/job.h"
#include "chain/stage/autolog.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

// Judges a stage that has ended. Exit code 0 is not enough: the log must show no uncaught
// exception, a training must log finite losses and all epochs, the files of `output` must be new
// and complete, and the stage must have used the device that was asked for. `lenient` keeps to
// files and devices. Sets the job's `made`.
stage::Outcome judged(Job& job, stage::Outcome outcome, bool lenient);

// What AutoLog's report says about an inference.
stage::InferenceFacts facts_of(const Job& job, const stage::Outcome& outcome,
                               const std::string& model);

}  // namespace assay::chain::run
