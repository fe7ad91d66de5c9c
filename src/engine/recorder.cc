#include "engine/recorder.h"

#include "base/clock.h"

namespace assay {
namespace {

// Tries after which a lane that someone keeps killing counts as crashed.
constexpr int kKills = 10;

std::string_view api_of(std::string_view case_text) {
  return case_text.substr(0, case_text.find('('));
}

}  // namespace

Result<Recorder::Decision> Recorder::take(const QueuedCase& queued, const OpenRecord& record) {
  Verdict verdict =
      judge(*record.root, policies_.find(api_of(queued.text)), mode_of(config_).agreement);
  const bool failed = info(verdict.outcome).failed;
  const auto first = firsts_.find(queued.id);
  if (first == firsts_.end() && failed) {
    firsts_.emplace(queued.id, First{verdict, record.root->fresh(), 0});
    return Decision::again;
  }
  if (first != firsts_.end() && killed_from_outside(*record.root) &&
      ++first->second.kills < kKills) {
    return Decision::again;
  }
  if (first != firsts_.end()) {
    if (first->second.verdict.outcome != verdict.outcome) {
      verdict.flags |= first->second.fresh ? std::uint8_t{kFlaky} : std::uint8_t{kContaminated};
      verdict.message =
          std::string("first ") + std::string(name(first->second.verdict.outcome)) + " (" +
          first->second.verdict.message + "), then: " +
          (verdict.message.empty() ? std::string(name(verdict.outcome)) : verdict.message);
    }
    firsts_.erase(first);
  }
  ASSAY_CHECK(finish(queued, verdict, record.bytes));
  return failed ? Decision::failed : Decision::finished;
}

Status Recorder::give_up(const QueuedCase& queued, std::string message) {
  Verdict verdict;
  verdict.outcome = Outcome::crash;
  verdict.lane = "slot";
  verdict.message = std::move(message);
  firsts_.erase(queued.id);
  return finish(queued, verdict, {});
}

Status Recorder::finish(const QueuedCase& queued, const Verdict& verdict,
                        std::span<const std::uint8_t> record_bytes) {
  FinishedCase finished;
  finished.id = queued.id;
  finished.text = queued.text;
  finished.verdict = verdict;
  finished.attempts = queued.attempt;
  finished.finished_ms = wall_ms();
  finished.record = record_bytes;
  ASSAY_TRY(const bool ours, store_.finish({queued.id, queued.epoch}, finished));
  if (!ours) return {};
  ++totals_.finished;
  ++totals_.outcomes[static_cast<std::size_t>(verdict.outcome)];
  if (observer_.finished) observer_.finished(finished, totals_);
  return {};
}

}  // namespace assay
