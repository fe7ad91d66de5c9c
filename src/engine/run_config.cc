#include "engine/run_config.h"

#include <fmt/format.h>

namespace assay {
namespace {

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::accuracy:
      return "accuracy";
    case Mode::stable:
      return "accuracy_stable";
    case Mode::alone:
      return "paddle_only";
  }
  return "";
}

}  // namespace

std::map<std::string, std::string> verdict_settings(const RunConfig& config) {
  return {
      {"mode", std::string(mode_name(config.mode))},
      {"seed", std::to_string(config.seed)},
      {"atol", fmt::format("{}", config.atol)},
      {"rtol", fmt::format("{}", config.rtol)},
      {"device", config.device},
  };
}

}  // namespace assay
