#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/text.h"
#include "store/accommodations.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"
#include "wire/settings.h"

namespace assay {
namespace {

constexpr int kJsonVersion = 1;

// STAGES of python/assay/call.py, in the order in which lanes report their nanoseconds.
constexpr std::array<const char*, 4> kStages = {"build", "forward", "copy", "backward"};

double add_seconds_of(const wire::LaneRecord* lane, RunReport& report) {
  double sum = 0;
  if (lane->name() == nullptr || lane->nanoseconds() == nullptr) return sum;
  std::map<std::string, double>& stages = report.seconds[lane->name()->str()];
  const std::size_t count = std::min<std::size_t>(kStages.size(), lane->nanoseconds()->size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t spent = lane->nanoseconds()->Get(static_cast<flatbuffers::uoffset_t>(i));
    stages[kStages[i]] += static_cast<double>(spent) / 1e9;
    sum += static_cast<double>(spent) / 1e9;
  }
  return sum;
}

// Gives the seconds of all lanes.
double add_record(const wire::Record& record, RunReport& report) {
  double sum = 0;
  if (record.trials() == nullptr) return sum;
  bool partly = false;
  for (const wire::Trial* trial : *record.trials()) {
    if (trial->skipped() != nullptr && trial->skipped()->size() > 0 && trial->values() != nullptr) {
      ++report.not_judged[trial->values()->str()][trial->skipped()->str()];
      partly = true;
    }
    if (trial->lanes() == nullptr) continue;
    for (const wire::LaneRecord* lane : *trial->lanes()) sum += add_seconds_of(lane, report);
  }
  report.partly_judged += partly ? 1 : 0;
  return sum;
}

// Settings whose flag has another name than their field; the mode is a flag of its own.
std::string flag_of(std::string_view setting) {
  return setting == "seed" ? "random_seed" : std::string(setting);
}

// What a shell has to be told to run this program again.
std::string own_command() {
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

nlohmann::json outcomes_json(const OutcomeCounts& counts) {
  nlohmann::json object = nlohmann::json::object();
  for (const OutcomeInfo& outcome : kOutcomes) {
    object[std::string(outcome.name)] = counts[index_of(outcome.outcome)];
  }
  return object;
}

// Takes the accommodations of the APIs that this run has cases of out of its properties.
void take_accommodations(RunReport& report) {
  const auto kept = report.properties.extract(std::string(kAccommodations));
  if (!kept) return;
  const auto all = nlohmann::json::parse(kept.mapped(), nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return;
  for (const auto& [api, of_api] : report.by_api) {
    const auto found = all.find(api);
    if (found == all.end() || !found->is_array()) continue;
    std::vector<std::string>& words = report.accommodations[api];
    for (const auto& each : *found) {
      if (each.is_string()) words.push_back(each.get<std::string>());
    }
    report.accommodated += total(of_api.outcomes);
  }
}

}  // namespace

Result<RunReport> load_report(RunReader& run) {
  RunReport report;
  ASSAY_TRY(report.properties, run.properties());
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    const std::size_t outcome = index_of(finished.verdict.outcome);
    ++report.outcomes[outcome];
    const std::string_view api = api_of(finished.text);
    auto found = report.by_api.find(api);
    if (found == report.by_api.end()) found = report.by_api.emplace(api, ApiReport{}).first;
    ++found->second.outcomes[outcome];
    ++report.cases;
    report.flaky += (finished.verdict.flags & kFlaky) != 0 ? 1 : 0;
    report.contaminated += (finished.verdict.flags & kContaminated) != 0 ? 1 : 0;
    if (const auto record = wire::open<wire::Record>(finished.record)) {
      found->second.seconds += add_record(**record, report);
    }
    report.leaked += (finished.verdict.flags & kLeaked) != 0 ? 1 : 0;
    const bool passed = finished.verdict.outcome == Outcome::pass;
    report.weak += passed && (finished.verdict.flags & kWeak) != 0 ? 1 : 0;
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine&) -> Status {
    ++report.outcomes[index_of(Outcome::invalid)];
    ++report.cases;
    return {};
  }));
  ASSAY_TRY(const StoreCounts counts, run.counts());
  report.unfinished = counts.planned - counts.finished;
  take_accommodations(report);
  return report;
}

std::string_view api_of(std::string_view case_text) {
  return case_text.substr(0, case_text.find('('));
}

std::vector<std::string> rerun_flags(const std::map<std::string, std::string>& properties) {
  const auto property = [&](const char* key, const char* otherwise) {
    const auto found = properties.find(key);
    return found == properties.end() ? std::string(otherwise) : found->second;
  };
  std::vector<std::string> flags{fmt::format("--{}=True", property("mode", "accuracy"))};
  for (const wire::Setting& setting : wire::fields_of(wire::CaseSettingsT())) {
    if (setting.name == "mode" || setting.name == "backward") continue;  // flags of their own
    const std::string usual = wire::text_of(setting.value);
    const std::string value = property(std::string(setting.name).c_str(), usual.c_str());
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

std::string outcome_table(const RunReport& report) {
  std::string table;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const std::uint64_t count = report.outcomes[index_of(outcome.outcome)];
    if (count == 0) continue;
    table += fmt::format("  {:>8}  {:<13} {}\n", count, outcome.name, outcome.meaning);
  }
  table += fmt::format("  {:>8}  in all\n", report.cases);
  const auto line = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) table += fmt::format("  {:>8}  {}\n", count, what);
  };
  line(report.flaky, "of them flaky: failed once, and not when run again alone");
  line(report.contaminated, "of them contaminated: failed only after other cases in the same lane");
  line(report.weak,
       "of those that pass are weak: of some result only shape and dtype were compared");
  line(report.accommodated,
       "of them accommodated: of APIs whose reference follows Paddle somewhere, or whose inputs "
       "dodge a fault (`assay report` says where)");
  line(report.partly_judged,
       "of them not judged under some kind of values (--json says which and why)");
  line(report.leaked, "of them left much memory behind");
  line(report.unfinished, "planned and not finished: start again with the same --log_dir");
  return table;
}

std::string accommodation_table(const RunReport& report) {
  std::string table;
  for (const auto& [api, words] : report.accommodations) {
    for (const std::string& each : words) table += fmt::format("  {:<54} {}\n", api, each);
  }
  return table.empty() ? table : "accommodated\n" + table;
}

std::string api_table(const RunReport& report) {
  std::vector<std::pair<std::string_view, ApiReport>> rows(report.by_api.begin(),
                                                           report.by_api.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return failures(a.second.outcomes) > failures(b.second.outcomes);
  });
  std::string table = fmt::format("{:<56} {:>8} {:>9}  outcomes\n", "API", "cases", "seconds");
  for (const auto& [api, of_api] : rows) {
    const OutcomeCounts& counts = of_api.outcomes;
    std::string outcomes;
    for (const OutcomeInfo& outcome : kOutcomes) {
      if (const std::uint64_t count = counts[index_of(outcome.outcome)]; count > 0) {
        outcomes += fmt::format("{}{} {}", outcomes.empty() ? "" : ", ", count, outcome.name);
      }
    }
    table +=
        fmt::format("{:<56} {:>8} {:>9.2f}  {}\n", api, total(counts), of_api.seconds, outcomes);
  }
  return table;
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
        {"weak", report.weak},
        {"accommodated", report.accommodated}}},
      {"accommodations", report.accommodations},
      {"not_judged", report.not_judged},
      {"partly_judged", report.partly_judged},
      {"properties", report.properties},
      {"seconds", report.seconds},
  };
  for (const auto& [api, of_api] : report.by_api) {
    object["apis"][api] = {{"outcomes", outcomes_json(of_api.outcomes)},
                           {"seconds", of_api.seconds}};
  }
  return object;
}

std::string json_text(const nlohmann::json& object) {
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace assay
