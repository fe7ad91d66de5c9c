#include "engine/recorder.h"

#include "base/clock.h"
#include "schedule/cost.h"
#include "verdict/endings.h"

namespace assay {

Answer Recorder::judge(const QueuedCase& queued, const OpenRecord& record) const {
  Answer answer;
  answer.id = queued.id;
  answer.attempt = queued.attempt;
  answer.verdict = assay::judge(*record.root, policies_.find(api_of(queued.text)), rules_);
  answer.fresh = record.root->fresh();
  answer.killed_from_outside = killed_from_outside(*record.root);
  answer.ran_from = record.root->ran_from();
  answer.ran_to = record.root->ran_to();
  answer.beside_overdue_us = took_beside_overdue_us(*record.root);
  answer.record = record.bytes;
  return answer;
}

Status Recorder::record(const RecordVerdict& verdict) {
  const QueuedCase& ended = verdict.ended;
  FinishedCase finished;
  finished.id = ended.id;
  finished.text = ended.text;
  finished.verdict = verdict.verdict;
  complete_faults(finished.verdict);
  finished.attempts = ended.attempt;
  finished.finished_ms = wall_ms();
  finished.record = verdict.record;
  if (!verdict.record.empty()) {
    const auto record = wire::open<wire::Record>(verdict.record);
    if (record) finished.took_us = measured_work_us(**record);
  }
  ASSAY_TRY(const bool ours, store_.finish({ended.id, ended.epoch}, finished));
  if (!ours) return {};
  ++totals_.finished;
  ++totals_.outcomes[static_cast<std::size_t>(finished.verdict.outcome)];
  if (observer_.finished) observer_.finished(finished, totals_);
  return {};
}

}  // namespace assay
