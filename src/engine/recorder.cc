#include "engine/recorder.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "schedule/cost.h"
#include "verdict/endings.h"
#include "wire/listed_values.h"

namespace assay {
namespace {

// A case that failed before a retest of the same build, and does not now, is flaky.
void mention_failure_before(const std::string& failure, Verdict& verdict) {
  if (failure.empty() || info(verdict.outcome).failed) return;
  verdict.flags |= kFlaky;
  verdict.message = fmt::format("before the retest: {}; now: {}", failure,
                                verdict.message.empty() ? name(verdict.outcome) : verdict.message);
}

}  // namespace

Judged Recorder::judge(const wire::JobT& job, const wire::RecordBytes& record) const {
  const wire::Record& root = *record.data_nested_root();
  Judged judged;
  judged.job = job;
  judged.verdict = assay::judge(root, policies_.of_case(job.test_case.text), rules_);
  judged.killed_from_outside = killed_from_outside(root);
  judged.ran_from = root.ran_from();
  judged.ran_to = root.ran_to();
  judged.beside_overdue_us = took_beside_overdue_us(root);
  judged.device_bytes = measured_device_bytes(root);
  judged.record = {record.data()->data(), record.data()->size()};
  return judged;
}

Status Recorder::record(const Judged& ended) {
  const wire::JobT& job = ended.job;
  FinishedCase finished;
  finished.id = job.test_case.id;
  finished.text = job.test_case.text;
  finished.verdict = ended.verdict;
  mention_failure_before(job.attempt.failed_before, finished.verdict);
  complete_faults(finished.verdict);
  finished.attempts = job.attempt.number;
  finished.finished_ms = wall_ms();
  finished.record.assign(ended.record.begin(), ended.record.end());
  if (!ended.record.empty()) {
    finished.took_us = measured_work_us(*flatbuffers::GetRoot<wire::Record>(ended.record.data()));
    if (!info(ended.verdict.outcome).failed) {
      finished.record = wire::without_listed_values(ended.record);
    }
  }
  finished.epoch = job.attempt.epoch;
  finished.elements = job.test_case.elements;
  ASSAY_TRY(const bool ours, claims_.finish(finished));
  if (!ours) return {};
  ++totals_.finished;
  ++totals_.outcomes[static_cast<std::size_t>(finished.verdict.outcome)];
  if (observer_.finished) observer_.finished(finished, totals_);
  return {};
}

}  // namespace assay
