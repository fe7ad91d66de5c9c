#include "report/shown_case.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "base/text.h"
#include "base/values.h"
#include "case/canonical.h"
#include "report/inputs.h"
#include "report/run_report.h"
#include "verdict/endings.h"
#include "verdict/messages.h"
#include "verdict/mode.h"
#include "wire/frame.h"

namespace assay {
namespace {

using nlohmann::json;
using Properties = std::map<std::string, std::string>;

constexpr int kShownVersion = 1;

// The lanes of the run with their builds.
json lanes_json(const Properties& properties) {
  json lanes = json::array();
  for (const std::string role : {"test", "reference"}) {
    const std::string label = value_at(properties, role + ".lane");
    if (label.empty()) continue;
    lanes.push_back({{"role", role},
                     {"lane", label},
                     {"framework", value_at(properties, role + ".framework")},
                     {"build", build_of(properties, label)},
                     {"device", value_at(properties, role + ".device")},
                     {"execution", value_at(properties, role + ".execution")}});
  }
  return lanes;
}

json fault_json(const Fault& fault) {
  return {{"outcome", name(fault.outcome)}, {"values", fault.values}, {"where", location_of(fault)},
          {"how", manifestation_of(fault)}, {"dtype", fault.dtype},   {"error", fault.error},
          {"message", fault.message}};
}

json ending_json(const wire::LaneRecord& lane) {
  json ending = {{"lane", text(lane.name())},
                 {"role", wire::EnumNameRole(lane.role())},
                 {"status", wire::EnumNameStatus(lane.status())},
                 {"seconds", json::object()}};
  if (lane.status() != wire::Status::ok) ending["error"] = lane_message(lane);
  const auto* times = lane.nanoseconds();
  for (const wire::Stage stage : wire::EnumValuesStage()) {
    const auto at = static_cast<std::uint32_t>(stage);
    if (times == nullptr || at >= times->size() || times->Get(at) == 0) continue;
    ending["seconds"][wire::EnumNameStage(stage)] = static_cast<double>(times->Get(at)) / 1e9;
  }
  return ending;
}

json trials_json(const wire::Record& record) {
  json trials = json::array();
  for (const wire::Trial* trial : *record.trials()) {
    if (is_mutant(*trial)) continue;
    json shown = {{"values", text(trial->values())}, {"lanes", json::array()}};
    if (assay::is_skipped(*trial)) shown["skipped"] = text(trial->skipped());
    for (std::uint32_t i = 0; trial->lanes() != nullptr && i < trial->lanes()->size(); ++i) {
      shown["lanes"].push_back(ending_json(*trial->lanes()->Get(i)));
    }
    trials.push_back(std::move(shown));
  }
  return trials;
}

// The logs of the lanes that ran the case last.
json logs_json(const wire::Record& record, const std::filesystem::path& folder) {
  json logs = json::array();
  if (folder.empty()) return logs;
  const std::string slot = fmt::format("slot{}", record.slot());
  const auto add = [&](const std::string& file) {
    const std::filesystem::path log = folder / "lanes" / file;
    std::error_code error;
    if (std::filesystem::exists(log, error)) logs.push_back(log.string());
  };
  for (const wire::LaneRecord* lane : *trial_under(record, "usual").lanes()) {
    add(fmt::format("{}-{}-{}.log", slot, text(lane->name()), wire::EnumNameRole(lane->role())));
  }
  add(slot + ".log");
  return logs;
}

// Adds what the record says: the elements of the faults, the trials and the logs.
Status add_record(const Properties& properties, const FoundCase& found,
                  const std::filesystem::path& folder, ShownCase& shown) {
  ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(found.record));
  if (!has_lanes(*record)) return {};
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  for (std::size_t i = 0; i < found.verdict.faults.size(); ++i) {
    const Fault& fault = found.verdict.faults[i];
    ASSAY_TRY(FaultElement element, element_of(found.text, found.id, seed, *record, fault));
    shown.json["faults"][i]["element"] = element.json();
    shown.elements.push_back(std::move(element));
  }
  shown.json["trials"] = trials_json(*record);
  shown.json["logs"] = logs_json(*record, folder);
  return {};
}

std::string time_text(std::int64_t ms) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(ms / 1000)));
}

std::string text_in(const json& object, const char* key) {
  return one_line(object.value(key, std::string()));
}

std::string facts_line(const json& shown) {
  if (!shown.value("finished", true)) return "not finished: resume the run with its --log_dir";
  std::string line = count_of(shown.value("attempts", 1U), "attempt");
  const auto seconds = shown.value("seconds", 0.0);
  if (seconds > 0) line += fmt::format(", {} s in its slot", seconds);
  const auto ms = shown.value("finished_ms", std::int64_t{0});
  return ms > 0 ? fmt::format("{}, finished {}", line, time_text(ms)) : line;
}

std::string lanes_text(const json& lanes) {
  std::string page;
  for (const json& lane : lanes) {
    page +=
        fmt::format("  {:<10} {}, device {}, {}\n", text_in(lane, "role"), text_in(lane, "build"),
                    text_in(lane, "device"), text_in(lane, "execution"));
  }
  return page.empty() ? page : "lanes\n" + page;
}

std::string faults_text(const ShownCase& shown, const Terminal& terminal) {
  const json& faults = shown.json.at("faults");
  if (faults.empty()) return {};
  std::string page = count_of(faults.size(), "fault") + "\n";
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const json& fault = faults[i];
    const std::string values = text_in(fault, "values");
    const std::string how = text_in(fault, "how");
    page += fmt::format("  {} {}{}{}{}\n    {}\n",
                        terminal.paint(Paint::red, text_in(fault, "outcome")),
                        values.empty() ? "" : values + " values, ", text_in(fault, "where"),
                        how.empty() ? "" : ": ", how, text_in(fault, "message"));
    if (i >= shown.elements.size()) continue;
    for (const std::string& line : split_at(shown.elements[i].lines(), '\n')) {
      if (!line.empty()) page += fmt::format("    {}\n", one_line(line));
    }
  }
  return page;
}

std::string trials_text(const json& trials) {
  std::string page;
  for (const json& trial : trials) {
    std::string endings;
    for (const json& lane : trial.at("lanes")) {
      endings += fmt::format("{}{} {}", endings.empty() ? "" : "; ", text_in(lane, "lane"),
                             text_in(lane, "status"));
      for (const wire::Stage stage : wire::EnumValuesStage()) {
        const auto seconds = lane.at("seconds").find(wire::EnumNameStage(stage));
        if (seconds == lane.at("seconds").end()) continue;
        endings += fmt::format(", {} {:.3g} s", wire::EnumNameStage(stage), seconds->get<double>());
      }
      if (lane.contains("error")) endings += ": " + text_in(lane, "error");
    }
    if (trial.contains("skipped")) endings = "not judged: " + text_in(trial, "skipped");
    page += fmt::format("  {:<10} {}\n", text_in(trial, "values"), endings);
  }
  return page.empty() ? page : "value regimes\n" + page;
}

}  // namespace

Result<ShownCase> shown_case(const Properties& properties, const FoundCase& found,
                             const std::filesystem::path& folder) {
  const Verdict& verdict = found.verdict;
  const std::string id = format_case_id(found.id);
  ShownCase shown;
  shown.json = {{"version", kShownVersion},
                {"id", id},
                {"case", found.text},
                {"finished", found.finished},
                {"lanes", lanes_json(properties)},
                {"faults", json::array()},
                {"trials", json::array()},
                {"logs", json::array()},
                {"rerun", rerun_command(found.text, properties)}};
  if (!found.finished) return shown;
  shown.json["outcome"] = name(verdict.outcome);
  shown.json["meaning"] = meaning_in(value_at(properties, "mode"), verdict.outcome);
  shown.json["flags"] = describe_flags(verdict.flags);
  shown.json["message"] = verdict.message;
  shown.json["attempts"] = found.attempts;
  shown.json["seconds"] = static_cast<double>(found.took_us) / 1e6;
  shown.json["finished_ms"] = found.finished_ms;
  for (const Fault& fault : verdict.faults) shown.json["faults"].push_back(fault_json(fault));
  if (found.record.empty()) return shown;
  ASSAY_CHECK(add_record(properties, found, folder, shown));
  if (folder.empty()) return shown;
  shown.json["script"] =
      fmt::format("{} repro {} {}", own_command(), shell_word(folder.string()), id);
  return shown;
}

std::string case_page(const ShownCase& shown, const Terminal& terminal) {
  const json& facts = shown.json;
  std::string page = fmt::format("{}\ncase {}", text_in(facts, "case"), text_in(facts, "id"));
  if (const auto outcome = find_outcome(text_in(facts, "outcome"))) {
    const std::string flags = text_in(facts, "flags");
    page += fmt::format(": {}{} ({})", terminal.paint(paint_of(info(*outcome)), name(*outcome)),
                        flags.empty() ? "" : ", " + flags, text_in(facts, "meaning"));
  }
  page += fmt::format("\n  {}\n", facts_line(facts));
  const std::string message = text_in(facts, "message");
  if (facts.at("faults").empty() && !message.empty()) page += fmt::format("  {}\n", message);
  page += faults_text(shown, terminal) + lanes_text(facts.at("lanes")) +
          trials_text(facts.at("trials"));
  for (const json& log : facts.at("logs")) {
    page += fmt::format("log    {}\n", one_line(log.get<std::string>()));
  }
  page += fmt::format("rerun  {}\n", text_in(facts, "rerun"));
  if (facts.contains("script")) page += fmt::format("script {}\n", text_in(facts, "script"));
  return page;
}

}  // namespace assay
