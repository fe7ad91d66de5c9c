#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "timeline/analysis/report_text.h"
#include "timeline/analysis/reports.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

// The shares that make steps longer.
std::string share_line(const char* what, const std::vector<ReplayShare>& shares) {
  constexpr double kLeast = 1.005;
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < shares.size() && i < kMost && shares[i].slowdown >= kLeast; ++i) {
    text += fmt::format("{}{} {:+.1f}% ({:.3f} ms without)", text.empty() ? "" : ", ",
                        shares[i].name, 100 * (shares[i].slowdown - 1), millis(shares[i].without));
  }
  return text.empty() ? text : fmt::format("  {}: {}\n", what, text);
}

ordered_json shares_json(const std::vector<ReplayShare>& shares) {
  return json_list(shares, [](const ReplayShare& share) {
    return ordered_json{
        {"name", share.name}, {"slowdown", share.slowdown}, {"step_without_ns", share.without}};
  });
}

}  // namespace

std::string replay_table(const Replay& replay) {
  if (!replay.reason.empty()) return "no replay: " + replay.reason + '\n';
  if (replay.recorded == 0) return {};
  std::string text = fmt::format("\nreplayed: {:.3f} ms a step", millis(replay.recorded));
  if (replay.silent < replay.recorded) {
    text += fmt::format("; {:.3f} ms if transfers took no time", millis(replay.silent));
  }
  text += fmt::format("; {:.3f} ms if nothing waited for the host", millis(replay.prompt));
  if (replay.devices.size() < 2) return text + '\n';
  return text +
         fmt::format("; {:.3f} ms if, besides, peers took equally long ({:+.1f}%)\n",
                     millis(replay.ideal), 100 * (replay.slowdown() - 1)) +
         share_line("by operation", replay.types) + share_line("by stage", replay.stages) +
         share_line("by device", replay.devices);
}

ordered_json replay_json(const Replay& replay) {
  if (!replay.reason.empty()) return {{"reason", replay.reason}};
  return {{"recorded_ns", replay.recorded},
          {"without_transfers_ns", replay.silent},
          {"prompt_ns", replay.prompt},
          {"ideal_ns", replay.ideal},
          {"slowdown", replay.slowdown()},
          {"by_operation", shares_json(replay.types)},
          {"by_stage", shares_json(replay.stages)},
          {"by_device", shares_json(replay.devices)}};
}

}  // namespace assay::timeline
