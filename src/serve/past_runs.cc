#include "serve/past_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/beside_writer.h"
#include "store/open_store.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Reading a larger file takes too long for one line of a table.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{2} << 30;

std::string property(const RunTotals& run, const std::string& key) {
  const auto found = run.properties.find(key);
  return found == run.properties.end() ? std::string() : found->second;
}

// "paddle 3.3.1 on cpu, torch 2.13.0 on cpu, assay 0.1.0". A lane's label starts with the name of
// its framework; the property of that name is the framework's version.
std::string build_of(const RunTotals& run) {
  std::string build;
  for (const char* role : {"test", "reference"}) {
    const std::string lane = property(run, fmt::format("{}.lane", role));
    if (lane.empty()) continue;
    const std::string version = property(run, lane.substr(0, lane.find('-')));
    build += fmt::format("{}{}{} on {}", lane, version.empty() ? "" : " ", version,
                         property(run, fmt::format("{}.device", role)));
    build += ", ";
  }
  return build + "assay " + property(run, "version.assay");
}

}  // namespace

std::vector<RunTotals> runs_beside(const fs::path& folder) {
  std::error_code error;
  const fs::path own = fs::canonical(folder, error);
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const auto& each : fs::directory_iterator(own.parent_path(), error)) {
    const fs::path file = each.path() / "run.db";
    std::error_code none;
    if (each.path() == own || !fs::is_regular_file(file, none)) continue;
    if (fs::file_size(file, none) > kMostBytes) continue;
    found.emplace_back(fs::last_write_time(file, none), each.path());
  }
  std::sort(found.rbegin(), found.rend());
  if (found.size() > kPastRuns) found.resize(kPastRuns);
  std::vector<RunTotals> runs;
  for (const auto& [time, path] : found) {
    auto totals = totals_of_folder(path);
    if (totals) runs.push_back(std::move(*totals));
  }
  return runs;
}

std::string run_name(const fs::path& folder) {
  std::error_code error;
  return fs::canonical(folder, error).filename();
}

nlohmann::json runs_json(const std::vector<RunTotals>& others, const RunTotals& own) {
  std::vector<const RunTotals*> runs;
  for (const RunTotals& each : others) {
    if (property(each, "mode") == property(own, "mode")) runs.push_back(&each);
  }
  runs.push_back(&own);
  // Ends are known to the minute; within a minute, `own` is the last.
  const auto minute = [](const RunTotals* run) { return run->last_ms / kMinuteMs; };
  std::ranges::stable_sort(
      runs, [&](const RunTotals* a, const RunTotals* b) { return minute(a) < minute(b); });
  nlohmann::json list = nlohmann::json::array();
  for (const RunTotals* run : runs) {
    list.push_back({{"name", run->name},
                    {"build", build_of(*run)},
                    {"last_ms", run->last_ms},
                    {"sampled", run->sampled},
                    {"outcomes", run->outcomes}});
  }
  return list;
}

}  // namespace assay
