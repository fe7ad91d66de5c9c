#include "report/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/process.h"
#include "base/table.h"
#include "base/text.h"
#include "base/values.h"
#include "report/past.h"
#include "store/known_deviations.h"
#include "verdict/mode.h"
#include "wire/settings.h"

namespace assay {
namespace {

constexpr std::size_t kShownReasons = 5;  // of skipped cases
constexpr int kJsonVersion = 1;

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

void count_cases(const TallyKey& key, const TallySums& sums, RunReport& report) {
  const auto cases = static_cast<std::uint64_t>(sums.cases);
  const auto outcome = static_cast<std::size_t>(key.outcome);
  report.outcomes[outcome] += cases;
  ApiReport& api = report.by_api[key.traits.api];
  api.outcomes[outcome] += cases;
  api.nanoseconds += sums.stages.in_lanes();
  report.cases += cases;
  report.partly_judged += static_cast<std::uint64_t>(sums.partly);
  report.flaky += (key.flags & kFlaky) != 0 ? cases : 0;
  report.contaminated += (key.flags & kContaminated) != 0 ? cases : 0;
  report.leaked += (key.flags & kLeaked) != 0 ? cases : 0;
  report.left_running += (key.flags & kLeftRunning) != 0 ? cases : 0;
  report.changed_state += (key.flags & kChangedState) != 0 ? cases : 0;
  report.weak += key.outcome == Outcome::pass && (key.flags & kWeak) != 0 ? cases : 0;
}

// Settings whose flag has another name than their field.
std::string flag_of(std::string_view setting) {
  return setting == "seed" ? "random_seed" : std::string(setting);
}

std::string find_own_command() {
  if (const char* told = std::getenv("ASSAY_COMMAND"); told != nullptr) return told;
  const auto program = own_executable();
  const auto installed = find_program("assay");
  std::error_code error;
  if (!program || (installed && std::filesystem::equivalent(*program, *installed, error))) {
    return "assay";
  }
  return shell_word(*program);
}

std::size_t index_of(Outcome outcome) { return static_cast<std::size_t>(outcome); }

nlohmann::json outcomes_json(const OutcomeCounts& counts) {
  nlohmann::json object = nlohmann::json::object();
  for (const OutcomeInfo& outcome : kOutcomes) {
    object[std::string(outcome.name)] = counts[index_of(outcome.outcome)];
  }
  return object;
}

Result<std::map<std::string, std::uint64_t>> reasons_of_skips(RunReader& run) {
  std::map<std::string, std::uint64_t> reasons;
  const RunQuery query{.rows = RunQuery::Rows::outcome, .outcome = Outcome::skip, .records = false};
  ASSAY_CHECK(run.each(query, [&](const FinishedCase& finished) -> Status {
    const std::string& message = finished.verdict.message;
    ++reasons[message.empty() ? "no reason was kept" : message];
    return {};
  }));
  return reasons;
}

// The most frequent reasons, a line for each.
std::string skip_lines(const std::map<std::string, std::uint64_t>& reasons) {
  std::vector<std::pair<std::string_view, std::uint64_t>> rows(reasons.begin(), reasons.end());
  std::ranges::stable_sort(rows, std::greater(), &decltype(rows)::value_type::second);
  std::string text;
  for (std::size_t i = 0; i < std::min(rows.size(), kShownReasons); ++i) {
    text += fmt::format("            {}: {}\n", rows[i].second, rows[i].first);
  }
  if (rows.size() > kShownReasons) {
    text += fmt::format("            and {} more (--json has all)\n",
                        count_of(rows.size() - kShownReasons, "reason"));
  }
  return text;
}

// Takes the known deviations of the APIs that this run has cases of out of its properties.
void take_known_deviations(RunReport& report) {
  const auto kept = report.properties.extract(std::string(kKnownDeviations));
  if (!kept) return;
  const auto all = parse_json(kept.mapped());
  if (!all.is_object()) return;
  for (const auto& [api, of_api] : report.by_api) {
    const auto found = all.find(api);
    if (found == all.end() || !found->is_array()) continue;
    std::vector<std::string>& words = report.known_deviations[api];
    for (const auto& each : *found) {
      if (each.is_string()) words.push_back(each.get<std::string>());
    }
    report.deviating += total(of_api.outcomes);
  }
}

}  // namespace

std::uint64_t failures(const OutcomeCounts& counts) {
  std::uint64_t sum = 0;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed) sum += counts[index_of(outcome.outcome)];
  }
  return sum;
}

std::uint64_t total(const OutcomeCounts& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

// Looking for the program takes some twenty system calls, and every failed case needs its name.
const std::string& own_command() {
  static const std::string command = find_own_command();
  return command;
}

Result<RunReport> load_report(RunReader& run) {
  RunReport report;
  ASSAY_TRY(report.properties, run.properties());
  ASSAY_TRY(const Tally tally, run.tally());
  for (const auto& [key, sums] : tally.cases()) count_cases(key, sums, report);
  for (const auto& [lane, ns] : tally.lanes()) {
    for (const wire::Stage stage : wire::EnumValuesStage()) {
      report.seconds[lane][wire::EnumNameStage(stage)] =
          seconds(ns[static_cast<std::size_t>(stage)]);
    }
  }
  for (const auto& [key, cases] : tally.not_judged()) {
    report.not_judged[key.first][key.second] = static_cast<std::uint64_t>(cases);
  }
  ASSAY_TRY(report.unfinished, run.unfinished());
  if (report.outcomes[index_of(Outcome::skip)] > 0) {
    ASSAY_TRY(report.skipped, reasons_of_skips(run));
  }
  take_known_deviations(report);
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    ++report.outcomes[index_of(Outcome::invalid)];
    ++report.by_api[key_of(line).api].outcomes[index_of(Outcome::invalid)];
    ++report.cases;
    return {};
  }));
  return report;
}

std::string build_of(const std::map<std::string, std::string>& properties,
                     const std::string& label) {
  const auto value = [&](const std::string& key) { return value_at(properties, key); };
  const bool shared =
      label == value("reference.lane") && value("reference.framework") == value("test.framework");
  for (const std::string& each : {label, shared ? value("test.lane") : label}) {
    for (const std::string& key : {each + ".build", each}) {
      if (std::string build = value(key); !build.empty()) return build;
    }
  }
  return {};
}

std::vector<std::string> rerun_flags(const std::map<std::string, std::string>& properties) {
  std::vector<std::string> flags{
      fmt::format("--{}=True", value_at(properties, "mode", "accuracy"))};
  for (const wire::Setting& setting : wire::fields_of(wire::CaseSettingsT())) {
    if (setting.name == "mode" || setting.name == "backward") continue;  // flags of their own
    const std::string usual = wire::text_of(setting.value);
    const std::string value = value_at(properties, std::string(setting.name), usual);
    if (value != usual) flags.push_back(fmt::format("--{}={}", flag_of(setting.name), value));
  }
  for (const auto& [key, value] : properties) {
    if (!key.starts_with(kRerunFlag)) continue;
    flags.push_back(fmt::format("--{}={}", key.substr(kRerunFlag.size()), value));
  }
  return flags;
}

std::string rerun_command(std::string_view case_text,
                          const std::map<std::string, std::string>& properties) {
  std::string command = fmt::format("{} api --api_config={}", own_command(), shell_word(case_text));
  for (const std::string& flag : rerun_flags(properties)) command += " " + shell_word(flag);
  return command;
}

Paint paint_of(const OutcomeInfo& outcome) {
  if (outcome.failed) return Paint::red;
  return outcome.definite && outcome.outcome != Outcome::no_kernel ? Paint::green : Paint::yellow;
}

std::string outcome_table(const RunReport& report, const std::string& folder,
                          const Terminal& terminal) {
  const std::string of_mode = value_at(report.properties, "mode");
  std::string table;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const std::uint64_t count = report.outcomes[index_of(outcome.outcome)];
    if (count == 0) continue;
    table += fmt::format("  {:>8}  {} {}\n", count,
                         terminal.paint(paint_of(outcome), fmt::format("{:<13}", outcome.name)),
                         meaning_in(of_mode, outcome.outcome));
    if (outcome.outcome == Outcome::skip) table += skip_lines(report.skipped);
  }
  table += fmt::format("  {:>8}  in all\n", report.cases);
  const auto line = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) table += fmt::format("  {:>8}  {}\n", count, what);
  };
  line(report.flaky,
       "of them flaky: failed before, and not when run again; the cause is not known");
  line(report.contaminated,
       "of them contaminated: ran out of memory beside other cases, and not alone");
  line(report.weak,
       "of those that pass are weak: of some result only shape and dtype were compared");
  line(report.deviating,
       "of them with known deviations: the reference follows Paddle, or the inputs avoid a known "
       "bug");
  line(report.partly_judged, "of them not judged under some value regime");
  line(report.leaked, "of them left much memory behind");
  line(report.changed_state,
       "of them changed the global state of their lane, which was restored: its log says what "
       "(STATE)");
  line(report.left_running, "of them left processes running: the lanes' logs name them (LEAK)");
  line(report.unfinished, "planned and not finished: start again with the same --log_dir");
  if (report.deviating + report.partly_judged > 0) {
    table += fmt::format("            where and why: {} report {} --json\n", own_command(),
                         folder.empty() ? "DIR" : shell_word(folder));
  }
  return terminal.wrap(table);
}

std::string known_deviation_table(const RunReport& report, const Terminal& terminal) {
  std::string table;
  for (const auto& [api, words] : report.known_deviations) {
    for (const std::string& each : words) table += fmt::format("  {:<54} {}\n", api, each);
  }
  return table.empty() ? table : terminal.wrap("known deviations\n" + table);
}

std::string api_table(const RunReport& report, bool passing, const Terminal& terminal) {
  std::vector<std::pair<std::string_view, ApiReport>> rows(report.by_api.begin(),
                                                           report.by_api.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return failures(a.second.outcomes) > failures(b.second.outcomes);
  });
  Table table({"API", ">cases", ">seconds:.2f", "outcomes"});
  std::uint64_t hidden = 0;
  for (const auto& [api, of_api] : rows) {
    const OutcomeCounts& counts = of_api.outcomes;
    if (!passing && failures(counts) == 0) {
      ++hidden;
      continue;
    }
    std::vector<std::string> outcomes;
    for (const OutcomeInfo& outcome : kOutcomes) {
      if (const std::uint64_t count = counts[index_of(outcome.outcome)]; count > 0) {
        outcomes.push_back(
            terminal.paint(paint_of(outcome), fmt::format("{} {}", count, outcome.name)));
      }
    }
    table.row(one_line(api), total(counts), seconds(of_api.nanoseconds),
              fmt::format("{}", fmt::join(outcomes, ", ")));
  }
  std::string text = table.text();
  const std::size_t head = std::min(text.find('\n'), text.size());
  text.replace(0, head, terminal.paint(Paint::bold, text.substr(0, head)));
  if (hidden > 0) {
    text += fmt::format("{} without a failure (--passing lists {})\n", count_of(hidden, "API"),
                        hidden == 1 ? "it" : "them");
  }
  return terminal.wrap(text);
}

nlohmann::json json_report(const RunReport& report) {
  nlohmann::json object = {
      {"version", kJsonVersion},
      {"cases", report.cases},
      {"unfinished", report.unfinished},
      {"outcomes", outcomes_json(report.outcomes)},
      {"flags",
       {{"flaky", report.flaky},
        {"contaminated", report.contaminated},
        {"leaked", report.leaked},
        {"left_processes", report.left_running},
        {"changed_state", report.changed_state},
        {"weak", report.weak},
        {"accommodated", report.deviating}}},
      {"accommodations", report.known_deviations},
      {"not_judged", report.not_judged},
      {"partly_judged", report.partly_judged},
      {"skipped", report.skipped},
      {"properties", report.properties},
      {"seconds", report.seconds},
  };
  for (const auto& [api, of_api] : report.by_api) {
    object["apis"][api] = {{"outcomes", outcomes_json(of_api.outcomes)},
                           {"seconds", seconds(of_api.nanoseconds)}};
  }
  return object;
}

std::string json_text(const nlohmann::json& object) { return dumped(object, 2) + "\n"; }

}  // namespace assay
