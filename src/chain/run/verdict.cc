#include "chain/run/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string_view>

#include "base/system_memory.h"
#include "nvml/nvml.h"

namespace assay::chain::run {
namespace {

using stage::StageState;

// "fp32" of "infer_gpu_usetrt_True_precision_fp32_batchsize_1".
std::string named_value(std::string_view name, std::string_view what) {
  const std::size_t at = name.rfind(what);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + what.size());
  return std::string(name.substr(0, name.find('_')));
}

// A file that belongs to one that the stage wrote, and that the stage did not write: with
// `inference.pdiparams` goes `inference.pdmodel`. "" if there is none.
std::string left_over(const stage::FileMarks& made, const stage::FileMarks& now) {
  constexpr std::array<std::array<std::string_view, 3>, 2> kTogether{
      {{".pdiparams", ".pdmodel", ".json"}, {".pdparams", ".pdopt", ".pdstates"}}};
  for (const auto& [path, mark] : made) {
    for (const auto& family : kTogether) {
      for (const std::string_view one : family) {
        if (!path.ends_with(one)) continue;
        const std::string stem = path.substr(0, path.size() - one.size());
        for (const std::string_view other : family) {
          std::string sibling = stem + std::string(other);
          if (now.contains(sibling) && !made.contains(sibling)) return sibling;
        }
      }
    }
  }
  return {};
}

// Why a stage that did not end well failed, in a word of its own where that is known.
void name_cause(const Job& job, stage::Outcome& outcome) {
  constexpr int kKilled = 128 + SIGKILL;  // as a shell tells it
  const bool killed = outcome.exit.signal == SIGKILL || outcome.exit.code == kKilled;
  if (outcome.state != StageState::failed) return;
  if (killed && memory_kills() > job.memory_kills) {
    outcome.state = StageState::out_of_memory;
    outcome.detail += ": the kernel ended it because memory was used up";
  } else if (job.evidence.disk_full()) {
    outcome.state = StageState::disk_full;
  }
}

void fail_as(stage::Outcome& outcome, StageState state, std::string detail) {
  outcome.state = state;
  outcome.detail = std::move(detail);
}

constexpr const char* kNoLoss =
    "no loss found in this log: name its pattern ([stages.NAME.log] loss = \"regex\" in a list of "
    "stages), or judge without the log (--lenient)";

void judge_log(const Job& job, stage::Outcome& outcome) {
  if (job.evidence.traceback()) {
    fail_as(outcome, StageState::traceback, "ended with exit code 0 after an uncaught exception");
  } else if (job.evidence.ends_in_error(job.stage->kind == plan::StageKind::train)) {
    fail_as(outcome, StageState::failed, "ended with exit code 0, but its log ends in an error");
  } else if (job.stage->kind == plan::StageKind::infer && !job.evidence.bad_number().empty()) {
    fail_as(outcome, StageState::not_finite, "its result has " + job.evidence.bad_number());
  } else if (job.stage->kind != plan::StageKind::train) {
    return;
  } else if (!job.bad_loss.empty()) {
    fail_as(outcome, StageState::not_finite, job.bad_loss);
  } else if (std::string why =
                 job.stage->may_stop_early ? "" : job.evidence.unfinished(job.stage->argv);
             !why.empty()) {
    fail_as(outcome, StageState::unfinished, std::move(why));
  } else if (!job.has_loss) {
    fail_as(outcome, StageState::unfinished, kNoLoss);
  }
}

void judge_files(Job& job, stage::Outcome& outcome) {
  const std::string& output = job.stage->output;
  if (output.empty()) return;
  const stage::FileMarks now = stage::mark_files("", output);
  job.made = stage::made_between(job.before, now);
  if (job.made.empty()) {
    fail_as(outcome, StageState::not_made,
            fmt::format("ended with exit code 0 but made no new {}*{}", output,
                        job.before.empty() ? "" : " (there is an older one)"));
  } else if (const std::string old = left_over(job.made, now); !old.empty()) {
    fail_as(outcome, StageState::not_made,
            fmt::format("ended with exit code 0 but left {} as it was", old));
  }
}

// Returns why the device of a training or inference is wrong, or "".
std::string complaint_of(const Job& job, const stage::Outcome& outcome) {
  const plan::Stage& stage = *job.stage;
  const std::size_t gpus = nvml_gpu_names().size();
  if (stage.kind == plan::StageKind::infer) {
    return stage::device_complaint(facts_of(job, outcome, ""), gpus);
  }
  const bool on_gpu = stage.kind == plan::StageKind::train && !stage.on_cpu &&
                      stage.hosts.empty() && stage.device.starts_with("gpu");
  return on_gpu && gpus > 0 ? stage::unseen_complaint(outcome.peak, outcome.looks) : "";
}

stage::Outcome without_error_line(Job& job, stage::Outcome outcome, bool lenient) {
  if (!outcome.passed()) {
    name_cause(job, outcome);
    if (!job.fleet_word.empty()) outcome.detail = job.fleet_word;
    return outcome;
  }
  judge_files(job, outcome);
  if (outcome.passed() && !lenient) judge_log(job, outcome);
  if (outcome.passed()) {
    if (std::string complaint = complaint_of(job, outcome); !complaint.empty()) {
      fail_as(outcome, StageState::wrong_device, std::move(complaint));
    }
  }
  return outcome;
}

}  // namespace

stage::Outcome judged(Job& job, stage::Outcome outcome, bool lenient) {
  outcome = without_error_line(job, std::move(outcome), lenient);
  const std::string& error = job.evidence.last_error();
  if (!outcome.passed() && !error.empty()) {
    outcome.detail += (outcome.detail.empty() ? "" : ": ") + error;
  }
  return outcome;
}

stage::InferenceFacts facts_of(const Job& job, const stage::Outcome& outcome,
                               const std::string& model) {
  stage::InferenceFacts facts;
  facts.model = model;
  facts.asked_device = job.stage->asks_for_gpu ? "gpu" : "cpu";
  facts.total_seconds = outcome.seconds;
  facts.looks = outcome.looks;
  facts.peak = outcome.peak;
  facts.printed = job.autolog;
  facts.batch_size = named_value(job.stage->name, "batchsize_");
  facts.precision = named_value(job.stage->name, "precision_");
  return facts;
}

}  // namespace assay::chain::run
