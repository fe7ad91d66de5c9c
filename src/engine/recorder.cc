#include "engine/recorder.h"

#include "base/clock.h"
#include "schedule/cost.h"
#include "verdict/endings.h"
#include "wire/listed_values.h"

namespace assay {

Answer Recorder::judge(const wire::JobT& ran, const OpenRecord& record) const {
  Answer answer;
  answer.id = ran.test_case.id;
  answer.attempt = ran.attempt.number;
  answer.verdict = assay::judge(*record.root, policies_.of_case(ran.test_case.text), rules_);
  answer.fresh = record.root->fresh();
  answer.killed_from_outside = killed_from_outside(*record.root);
  answer.ran_from = record.root->ran_from();
  answer.ran_to = record.root->ran_to();
  answer.beside_overdue_us = took_beside_overdue_us(*record.root);
  answer.device_bytes = measured_device_bytes(*record.root);
  answer.record = record.bytes;
  return answer;
}

Status Recorder::record(const RecordVerdict& verdict) {
  const wire::JobT& ended = verdict.ended;
  FinishedCase finished;
  finished.id = ended.test_case.id;
  finished.text = ended.test_case.text;
  finished.verdict = verdict.verdict;
  complete_faults(finished.verdict);
  finished.attempts = ended.attempt.number;
  finished.finished_ms = wall_ms();
  finished.record = verdict.record;
  wire::Bytes smaller;
  if (!verdict.record.empty() && !info(verdict.verdict.outcome).failed) {
    finished.record = smaller = wire::without_listed_values(verdict.record);
  }
  if (!verdict.record.empty()) {
    const auto record = wire::open<wire::Record>(verdict.record);
    if (record) finished.took_us = measured_work_us(**record);
  }
  ASSAY_TRY(const bool ours, store_.finish({ended.test_case.id, ended.attempt.epoch}, finished));
  if (!ours) return {};
  ++totals_.finished;
  ++totals_.outcomes[static_cast<std::size_t>(finished.verdict.outcome)];
  if (observer_.finished) observer_.finished(finished, totals_);
  return {};
}

}  // namespace assay
