// A comparison as text for a terminal and as JSON.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "case/canonical.h"
#include "report/compare.h"

namespace assay {
namespace {

constexpr std::size_t kShownFaults = 20;  // of each state, on a terminal

std::string title_of(const FaultKey& key) {
  std::string title = fmt::format("{} {}", name(key.outcome), key.api);
  if (!key.where.empty()) title += ", " + key.where;
  if (!key.how.empty()) title += ": " + key.how;
  return one_line(title);
}

std::string extent_text(const FaultSums& sums) {
  std::string text = count_of(static_cast<std::uint64_t>(sums.cases), "case");
  if (!sums.extent.dtypes.empty())
    text += "; " + fmt::format("{}", fmt::join(sums.extent.dtypes, ", "));
  if (!sums.extent.values.empty()) {
    text += fmt::format("; {} values", fmt::join(sums.extent.values, ", "));
  }
  return text;
}

std::string settings_text(const RunComparison& comparison) {
  std::string text;
  for (const SettingChange& setting : comparison.settings) {
    text += fmt::format(
        "  {}: {} before, {} now{}\n", setting.key, setting.before, setting.now,
        setting.bearing.empty()
            ? ""
            : fmt::format(" ({}: verdicts may differ for this reason alone)", setting.bearing));
  }
  return text;
}

std::string faults_text_of(const RunComparison& comparison, FaultState state,
                           const Terminal& terminal) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [key, compared] : comparison.faults) {
    if (compared.state != state || ++shown > kShownFaults) continue;
    text += terminal.wrap(fmt::format(
        "  {} {} ({}){}{}\n", terminal.paint(Paint::red, fmt::format("{:<6}", word(state))),
        title_of(key), extent_text(compared.now), compared.why.empty() ? "" : ": ", compared.why));
    const FaultExample& example = compared.example;
    if (example.text.empty()) continue;
    text += fmt::format("         {} {}\n", format_case_id(example.id), one_line(example.text));
    text += terminal.wrap(fmt::format("         {}\n", one_line(example.message)));
  }
  if (shown > kShownFaults) {
    text += fmt::format("         … and {} more (assay report --json lists all)\n",
                        shown - kShownFaults);
  }
  return text;
}

std::string lost_text(const LostCoverage& lost) {
  return fmt::format("{}{}{}: {}\n", lost.api, lost.dtype.empty() ? "" : " ", lost.dtype,
                     lost.text());
}

template <typename List, typename Line>
std::string first_lines(const List& list, const Line& line) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& each : list) {
    if (++shown <= kShownFaults) text += line(each);
  }
  if (shown > kShownFaults) text += fmt::format("         … and {} more\n", shown - kShownFaults);
  return text;
}

void add_notes(const KnownFault& known, nlohmann::json& object) {
  if (!known.reason.empty()) object["reason"] = known.reason;
  if (!known.owner.empty()) object["owner"] = known.owner;
  if (!known.upstream.empty()) object["upstream"] = known.upstream;
  if (!known.until.empty()) object["until"] = known.until;
}

}  // namespace

nlohmann::json fault_json(const FaultKey& key, const FaultSums& sums) {
  return {{"digest", key.digest()},       {"api", key.api},     {"outcome", name(key.outcome)},
          {"where", key.where},           {"how", key.how},     {"values", sums.extent.values},
          {"dtypes", sums.extent.dtypes}, {"cases", sums.cases}};
}

std::string_view word(FaultState state) {
  constexpr std::array<std::string_view, 3> kWords{"new", "grown", "known"};
  return kWords.at(static_cast<std::size_t>(state));
}

std::string LostCoverage::text() const {
  const auto cases = [&](const Coverage& of) { return rejected ? of.rejected : of.not_judged; };
  return fmt::format("{} of {} cases are {} ({} of {} before)", cases(now), now.cases,
                     rejected ? "refused by both frameworks" : "not judged", cases(before),
                     before.cases);
}

std::vector<std::string> build_lines(const RunComparison& comparison) {
  const auto kept = [](const std::string& build) { return build.empty() ? "(not kept)" : build; };
  std::vector<std::string> lines;
  for (const ComparedBuild& build : comparison.builds) {
    if (build.before == build.now) {
      lines.push_back(fmt::format("{}, the same build: {}", build.lane, kept(build.now)));
      continue;
    }
    lines.push_back(fmt::format("{} before: {}", build.lane, kept(build.before)));
    lines.push_back(fmt::format("{} now:    {}", build.lane, kept(build.now)));
  }
  return lines;
}

std::string comparison_table(const RunComparison& comparison, const Terminal& terminal,
                             bool faults) {
  const std::uint64_t added = comparison.count(FaultState::added);
  const std::uint64_t grown = comparison.count(FaultState::grown);
  std::string table =
      fmt::format("against {}: {} new, {} grown, {} known, {} fixed fault{}", comparison.past,
                  added, grown, comparison.count(FaultState::known), comparison.fixed.size(),
                  comparison.faults.size() + comparison.fixed.size() == 1 ? "" : "s");
  if (!comparison.lost.empty()) table += fmt::format("; coverage lost: {}", comparison.lost.size());
  table += '\n';
  if (!comparison.notice.empty()) table += fmt::format("  note: {}\n", comparison.notice);
  for (const std::string& line : build_lines(comparison)) table += fmt::format("  {}\n", line);
  table = terminal.wrap(table + settings_text(comparison));
  for (const FaultState worse : {FaultState::added, FaultState::grown}) {
    if (faults) table += faults_text_of(comparison, worse, terminal);
  }
  table += first_lines(comparison.lost, [&](const LostCoverage& lost) {
    return fmt::format("  {} {}", terminal.paint(Paint::yellow, "lost  "), lost_text(lost));
  });
  table += first_lines(comparison.fixed, [&](const auto& each) {
    return fmt::format("  {} {}\n", terminal.paint(Paint::green, "fixed "), title_of(each.first));
  });
  table += first_lines(comparison.slower, [](const SlowerApi& each) {
    return fmt::format("  slower {}: {:.2f} s per case in the test lane, {:.2f} s before\n",
                       each.api, each.now_s, each.before_s);
  });
  return table + comparison.speed.table();
}

nlohmann::json comparison_json(const RunComparison& comparison) {
  using nlohmann::json;
  json object = {{"past", comparison.past}, {"settings", json::array()}, {"new", json::array()},
                 {"grown", json::array()},  {"known", json::array()},    {"fixed", json::array()},
                 {"lost", json::array()},   {"slower", json::array()}};
  object["builds"] = json::array();
  for (const ComparedBuild& build : comparison.builds) {
    object["builds"].push_back(
        {{"lane", build.lane}, {"before", build.before}, {"now", build.now}});
  }
  for (const SettingChange& setting : comparison.settings) {
    object["settings"].push_back({{"key", setting.key},
                                  {"before", setting.before},
                                  {"now", setting.now},
                                  {"bearing", setting.bearing}});
  }
  for (const auto& [key, compared] : comparison.faults) {
    json fault = fault_json(key, compared.now);
    add_notes(compared.before, fault);
    if (!compared.why.empty()) fault["why"] = compared.why;
    if (!compared.example.text.empty()) {
      fault["id"] = format_case_id(compared.example.id);
      fault["case"] = compared.example.text;
      fault["message"] = compared.example.message;
    }
    object[std::string(word(compared.state))].push_back(std::move(fault));
  }
  for (const auto& [key, known] : comparison.fixed) {
    json fault = fault_json(key, known.sums);
    add_notes(known, fault);
    object["fixed"].push_back(std::move(fault));
  }
  for (const LostCoverage& lost : comparison.lost) {
    object["lost"].push_back({{"api", lost.api},
                              {"dtype", lost.dtype},
                              {"how", lost.rejected ? "rejected" : "not judged"},
                              {"cases", lost.now.cases},
                              {"not_judged", lost.now.not_judged},
                              {"rejected", lost.now.rejected}});
  }
  for (const SlowerApi& each : comparison.slower) {
    object["slower"].push_back(
        {{"api", each.api}, {"seconds", each.now_s}, {"seconds_before", each.before_s}});
  }
  if (!comparison.speed.empty()) object["speed"] = comparison.speed.json();
  return object;
}

}  // namespace assay
