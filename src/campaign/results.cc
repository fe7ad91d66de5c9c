#include "campaign/results.h"

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

namespace assay::campaign {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StageEnd, name, kind, state, detail, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Past, failed, seconds)

namespace {

using nlohmann::json;

constexpr int kVersion = 1;  // of lines, lists and histories

// The value of a text of this version, or nothing if it has another form.
template <typename T>
std::optional<T> parsed(std::string_view text, const char* key) {
  try {
    const json object = parse_json(text);
    if (object.is_object() && object.value("v", 0) == kVersion) return object.at(key).get<T>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
  return std::nullopt;
}

std::string ends_file(const std::filesystem::path& log_dir) {
  return (log_dir / "models.jsonl").string();
}

bool covers(const Failure& known, const Failure& failure) {
  return known.model == failure.model && known.stage == failure.stage &&
         (known.state.empty() || known.state == failure.state);
}

}  // namespace

std::string model_line(const chain::run::RunResult& result) {
  std::vector<StageEnd> stages;
  stages.reserve(result.stages.size());
  for (const chain::run::StageResult& stage : result.stages) {
    stages.push_back({stage.name, std::string(name(stage.kind)),
                      std::string(name(stage.outcome.state)), stage.outcome.detail,
                      stage.outcome.seconds});
  }
  return std::string(kModelWord) + dumped({{"v", kVersion}, {"stages", stages}});
}

std::optional<std::vector<StageEnd>> read_model_line(std::string_view line) {
  if (!line.starts_with(kModelWord)) return std::nullopt;
  return parsed<std::vector<StageEnd>>(line.substr(kModelWord.size()), "stages");
}

json json_of(const UnitEnd& end) {
  return {{"v", kVersion},          {"model", end.key},   {"state", end.state},
          {"detail", end.detail},   {"host", end.host},   {"log", end.log},
          {"seconds", end.seconds}, {"tries", end.tries}, {"stages", end.stages}};
}

Status begin_ends(const std::filesystem::path& log_dir) {
  return write_file(ends_file(log_dir), "");
}

Status append_end(const std::filesystem::path& log_dir, const UnitEnd& end) {
  ASSAY_TRY(const Fd file, open_for_append(ends_file(log_dir)));
  const std::string line = dumped(json_of(end)) + "\n";
  return write_all(file.get(), std::as_bytes(std::span(line)));
}

std::map<std::string, int> count_ends(const std::filesystem::path& log_dir) {
  std::map<std::string, int> counts;
  for (const std::string& line : split_at(read_file(ends_file(log_dir)).value_or(""), '\n')) {
    if (const auto state = parsed<std::string>(line, "state")) ++counts[*state];
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
    return each.read("model", known.model, "stage", known.stage, "state", known.state, "reason",
                     known.reason, "owner", known.owner, "upstream", known.upstream);
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
  return static_cast<std::size_t>(std::ranges::count(models, state, &UnitEnd::state));
}

std::size_t Findings::new_failures() const {
  return static_cast<std::size_t>(std::ranges::count(failures, false, &Failure::known));
}

Findings judged(std::vector<UnitEnd> models, const std::vector<Failure>& known) {
  Findings findings;
  std::set<std::string> ended;
  for (const UnitEnd& model : models) {
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
  return parsed<History>(read_file(file).value_or(""), "models").value_or(History());
}

Status write_history(const std::filesystem::path& file, History history,
                     const std::vector<UnitEnd>& models) {
  for (const UnitEnd& model : models) {
    if (model.state == "not_run") continue;
    Past& past = history[model.key];
    past.failed = model.passed() ? 0 : past.failed + 1;
    past.seconds = std::max(past.seconds, model.seconds);
  }
  ASSAY_CHECK(make_folder(file.parent_path()));
  return write_file(file, dumped({{"v", kVersion}, {"models", history}}) + "\n");
}

}  // namespace assay::campaign
