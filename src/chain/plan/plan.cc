#include "chain/plan/plan.h"

#include <fmt/format.h>

namespace assay::chain::plan {

std::string_view name(StageKind kind) {
  switch (kind) {
    case StageKind::prepare:
      return "prepare";
    case StageKind::train:
      return "train";
    case StageKind::eval:
      return "eval";
    case StageKind::export_model:
      return "export";
    case StageKind::convert:
      return "convert";
    case StageKind::server:
      return "server";
    case StageKind::infer:
      return "infer";
    case StageKind::compare:
      return "compare";
  }
  return "stage";
}

std::string status_line(const Plan& plan, const Stage& stage, bool passed) {
  const std::string redirect = stage.shows_log ? fmt::format(" > {} 2>&1 ", stage.log) : "";
  const std::string log = plan.log_in_status ? " - " + stage.log + " " : "!  ";
  return fmt::format("\033[33m Run {} with command - {} - {}{}{}\033[0m",
                     passed ? "successfully" : "failed", plan.model, stage.command, redirect, log);
}

}  // namespace assay::chain::plan
