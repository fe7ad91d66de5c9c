#include "chain/campaign/results.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "base/toml.h"

namespace assay::chain::campaign {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;  // of lines, lists and histories

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

// The object of this version in a text, or null.
json versioned(std::string_view text) {
  json object = parse_json(text);
  const bool known = object.is_object() && number_of(object, "v") == kVersion;
  return known ? object : json();
}

std::string dumped(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

json list_of(const std::vector<StageEnd>& stages) {
  json list = json::array();
  for (const StageEnd& stage : stages) {
    list.push_back({{"name", stage.name},
                    {"kind", stage.kind},
                    {"state", stage.state},
                    {"detail", stage.detail},
                    {"seconds", stage.seconds}});
  }
  return list;
}

std::vector<StageEnd> stages_of(const json& object) {
  std::vector<StageEnd> stages;
  const auto list = object.find("stages");
  if (list == object.end() || !list->is_array()) return stages;
  for (const json& each : *list) {
    if (!each.is_object()) continue;
    stages.push_back({text_of(each, "name"), text_of(each, "kind"), text_of(each, "state"),
                      text_of(each, "detail"), number_of(each, "seconds")});
  }
  return stages;
}

std::string ends_file(const std::filesystem::path& log_dir) {
  return (log_dir / "models.jsonl").string();
}

bool covers(const Failure& known, const Failure& failure) {
  return known.model == failure.model && known.stage == failure.stage &&
         (known.state.empty() || known.state == failure.state);
}

// A text as a basic string of TOML, whose escapes are those of JSON.
std::string toml_text(const std::string& text) { return dumped(json(text)); }

}  // namespace

std::string model_line(const run::RunResult& result) {
  std::vector<StageEnd> stages;
  stages.reserve(result.stages.size());
  for (const run::StageResult& stage : result.stages) {
    stages.push_back({stage.name, std::string(name(stage.kind)),
                      std::string(name(stage.outcome.state)), stage.outcome.detail,
                      stage.outcome.seconds});
  }
  return std::string(kModelWord) + dumped({{"v", kVersion}, {"stages", list_of(stages)}});
}

std::optional<std::vector<StageEnd>> read_model_line(std::string_view line) {
  if (!line.starts_with(kModelWord)) return std::nullopt;
  const json object = versioned(line.substr(kModelWord.size()));
  if (object.is_null()) return std::nullopt;
  return stages_of(object);
}

json json_of(const ModelEnd& end) {
  return {{"v", kVersion},          {"model", end.key},   {"state", end.state},
          {"detail", end.detail},   {"host", end.host},   {"log", end.log},
          {"seconds", end.seconds}, {"tries", end.tries}, {"stages", list_of(end.stages)}};
}

Status begin_ends(const std::filesystem::path& log_dir) {
  return write_file(ends_file(log_dir), "");
}

Status append_end(const std::filesystem::path& log_dir, const ModelEnd& end) {
  ASSAY_TRY(const Fd file, open_for_append(ends_file(log_dir)));
  const std::string line = dumped(json_of(end)) + "\n";
  return write_all(file.get(), std::as_bytes(std::span(line)));
}

std::map<std::string, int> count_ends(const std::filesystem::path& log_dir) {
  std::map<std::string, int> counts;
  for (const std::string& line : split_at(read_file(ends_file(log_dir)).value_or(""), '\n')) {
    const json object = versioned(line);
    if (!object.is_null()) ++counts[text_of(object, "state")];
  }
  return counts;
}

Result<std::vector<Failure>> read_known(const std::filesystem::path& file) {
  std::vector<Failure> list;
  std::error_code error;
  if (file.empty() || !std::filesystem::exists(file, error)) return list;
  ASSAY_TRY(const std::string text, read_file(file));
  ASSAY_TRY(TomlTable table, TomlTable::parse(text, file.string(), kVersion));
  const auto read = [&](const std::string&, TomlTable& each) -> Status {
    Failure& known = list.emplace_back();
    known.known = true;
    ASSAY_CHECK(each.read("model", known.model));
    ASSAY_CHECK(each.read("stage", known.stage));
    ASSAY_CHECK(each.read("state", known.state));
    ASSAY_CHECK(each.read("reason", known.reason));
    ASSAY_CHECK(each.read("owner", known.owner));
    return each.read("upstream", known.upstream);
  };
  ASSAY_CHECK(table.read_array("failure", read));
  ASSAY_CHECK(table.refuse_others());
  return list;
}

std::string known_text(const std::vector<Failure>& failures) {
  std::string text =
      "# Failures of a campaign, to be named as `chains.known`: others are new failures.\n"
      "version = 1\n";
  for (const Failure& each : failures) {
    text += fmt::format(
        "\n[[failure]]\nmodel = {}\nstage = {}\nstate = {}\nreason = {}\nowner = {}\n"
        "upstream = {}\n",
        toml_text(each.model), toml_text(each.stage), toml_text(each.state), toml_text(each.reason),
        toml_text(each.owner), toml_text(each.upstream));
  }
  return text;
}

std::size_t Findings::count(std::string_view state) const {
  return static_cast<std::size_t>(std::ranges::count(models, state, &ModelEnd::state));
}

std::size_t Findings::new_failures() const {
  return static_cast<std::size_t>(std::ranges::count(failures, false, &Failure::known));
}

Findings judged(std::vector<ModelEnd> models, const std::vector<Failure>& known) {
  Findings findings;
  std::set<std::string> ended;
  for (const ModelEnd& model : models) {
    if (model.state == "not_run") continue;
    ended.insert(model.key);
    if (model.passed()) continue;
    const std::size_t before = findings.failures.size();
    for (const StageEnd& stage : model.stages) {
      if (stage.state == "passed" || stage.state == "blocked" || stage.state == "interrupted") {
        continue;
      }
      findings.failures.push_back({model.key, stage.name, stage.state, stage.detail, {}, {}, {}});
    }
    if (findings.failures.size() == before) {
      findings.failures.push_back({model.key, "", model.state, model.detail, {}, {}, {}});
    }
  }
  for (const Failure& each : known) {
    bool seen = false;
    for (Failure& failure : findings.failures) {
      if (!covers(each, failure)) continue;
      seen = failure.known = true;
      failure.reason = each.reason;
      failure.owner = each.owner;
      failure.upstream = each.upstream;
    }
    if (!seen && ended.contains(each.model)) findings.fixed.push_back(each);
  }
  findings.models = std::move(models);
  return findings;
}

History read_history(const std::filesystem::path& file) {
  History history;
  const json object = versioned(read_file(file).value_or(""));
  if (object.is_null() || !object.contains("models")) return history;
  for (const auto& [key, past] : object.at("models").items()) {
    if (!past.is_object()) continue;
    history[key] = {static_cast<int>(number_of(past, "failed")), number_of(past, "seconds")};
  }
  return history;
}

Status write_history(const std::filesystem::path& file, History history,
                     const std::vector<ModelEnd>& models) {
  for (const ModelEnd& model : models) {
    if (model.state == "not_run") continue;
    Past& past = history[model.key];
    past.failed = model.passed() ? 0 : past.failed + 1;
    past.seconds = std::max(past.seconds, model.seconds);
  }
  json object{{"v", kVersion}, {"models", json::object()}};
  for (const auto& [key, past] : history) {
    object["models"][key] = {{"failed", past.failed}, {"seconds", past.seconds}};
  }
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  return write_file(file, dumped(object) + "\n");
}

}  // namespace assay::chain::campaign
