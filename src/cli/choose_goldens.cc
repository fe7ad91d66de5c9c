#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "cli/api_parts.h"
#include "engine/run_properties.h"
#include "goldens/folder.h"
#include "verdict/mode.h"
#include "wire/frame.h"

namespace assay {

Status choose_goldens(const std::string& where, RunConfig& config,
                      std::vector<std::string>& notes) {
  if (config.settings.mode != modes().front().name) {
    return usage_error(fmt::format("--reference-lane={}{} compares in mode --{} only", kGoldens,
                                   where, modes().front().name));
  }
  GoldensConfig& goldens = config.goldens.emplace();
  std::error_code error;
  if (where.starts_with("http://") || where.starts_with("https://")) {
    goldens.url = where.substr(0, where.find_last_not_of('/') + 1);
    goldens.folder = std::filesystem::absolute(config.folder / "goldens", error).string();
    ASSAY_CHECK(GoldenFolder::fetch(goldens.url, goldens.folder));
  } else {
    goldens.folder = std::filesystem::absolute(where, error).string();
  }
  ASSAY_TRY(const GoldenFolder folder, GoldenFolder::open(goldens.folder, goldens.url));
  for (const auto& [key, value] : folder.facts().items()) {
    if (value.is_string()) goldens.facts.emplace(key, value.get<std::string>());
  }
  std::map<std::string, std::string> wanted = case_settings(config);
  wanted["version.messages"] = std::to_string(wire::kMessageVersion);
  wanted["reference.execution"] = config.amp ? "amp" : "eager";
  for (const char* key : {"version.canonical", "version.fill", "version.messages", "backward",
                          "reference.execution"}) {
    if (fact_of(goldens, key) == wanted[key]) continue;
    return usage_error(fmt::format("{} was recorded with {} = {}, this run has {}: record it again",
                                   where, key, fact_of(goldens, key), wanted[key]));
  }
  if (config.settings.error_bar && fact_of(goldens, "error_bar") != "true") {
    return usage_error(
        fmt::format("{} was recorded without the truth that the error bar needs: "
                    "give --tolerance=engineV2, or record it again",
                    where));
  }
  for (const char* key : {"version.assay", "seed", "values"}) {
    if (fact_of(goldens, key) == wanted[key]) continue;
    notes.push_back(fmt::format("{} was recorded with {} = {}, this run has {}", where, key,
                                fact_of(goldens, key), wanted[key]));
  }
  return {};
}

}  // namespace assay
