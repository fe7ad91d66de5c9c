#include "report/past.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"
#include "case/canonical.h"
#include "report/baseline.h"
#include "store/open_store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

constexpr std::size_t kMostOfLine = 60;

// Stages of kStages.
constexpr std::size_t kTestForward = 1;
constexpr std::size_t kTestBackward = 2;

void count(const TallyKey& key, const TallySums& sums, RunFaults& run) {
  Coverage& coverage = run.coverage[{key.traits.api, key.traits.dtype}];
  coverage.cases += sums.cases;
  if (is_untested(key.outcome)) {
    coverage.not_judged += sums.cases;
    return;
  }
  if (key.outcome == Outcome::rejected) coverage.rejected += sums.cases;
  run.judged[key.traits.api] += sums.cases;
  TestTime& time = run.times[key.traits.api];
  time.ns += sums.stages.ns[kTestForward] + sums.stages.ns[kTestBackward];
  time.cases += sums.stages.cases;
}

}  // namespace

Result<RunFaults> faults_of_run(RunReader& run) {
  ASSAY_TRY(const Tally tally, run.tally());
  RunFaults found;
  found.faults = tally.faults();
  for (const auto& [key, sums] : tally.cases()) count(key, sums, found);
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    ++found.faults[key_of(line)].cases;
    return {};
  }));
  ASSAY_TRY(const std::uint64_t unfinished, run.unfinished());
  if (unfinished == 0) return found;
  ASSAY_CHECK(run.each_unfinished([&](const wire::CaseT& stored) -> Status {
    found.unfinished.emplace(traits_of(stored.text).api);
    return {};
  }));
  return found;
}

bool RunFaults::covers(const std::string& api) const {
  const auto cases = judged.find(api);
  return cases != judged.end() && cases->second > 0 && !unfinished.contains(api);
}

std::uint64_t invalid_line_id(const InvalidLine& line) { return case_id(trimmed(line.text)); }

FaultKey key_of(const InvalidLine& line) {
  const std::string_view text = trimmed(line.text);
  const std::string_view begin = text.substr(0, std::min(text.find('('), kMostOfLine));
  return {replace_bad_bytes(begin), Outcome::invalid, "", error_kind(line.message)};
}

std::vector<TimedPart> timings_of(std::span<const std::uint8_t> record) {
  if (record.empty()) return {};
  const auto opened = wire::open<wire::Record>(record);
  return opened ? timed_parts(**opened) : std::vector<TimedPart>();
}

namespace {

Result<PastRun> load_run(const std::string& where) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(where, StoreMode::read));
  PastRun past;
  past.run = where;
  ASSAY_TRY(past.properties, store->properties());
  ASSAY_TRY(RunFaults found, faults_of_run(*store));
  for (auto& [key, sums] : found.faults) {
    KnownFault& known = past.faults[key];
    known.judged = found.judged[key.api];
    known.sums = std::move(sums);
  }
  past.coverage = std::move(found.coverage);
  past.times = std::move(found.times);
  return past;
}

// "paddle-3.3.1": the framework and the version without its local part, as of "2.13.0+cpu".
std::string name_of_list(const std::string& framework, const std::string& version) {
  return fmt::format("{}-{}", framework, version.substr(0, version.find('+')));
}

}  // namespace

Result<PastRun> load_past(const std::string& where) {
  std::error_code error;
  const bool file = !is_store_address(where) && std::filesystem::is_regular_file(where, error);
  ASSAY_TRY(PastRun past, file ? read_baseline(where) : load_run(where));
  past.name = is_store_address(where) ? without_password(where) : where;
  return past;
}

Result<PastRun> load_shipped_faults(const std::filesystem::path& folder,
                                    const std::map<std::string, std::string>& properties) {
  PastRun all;
  all.is_baseline = true;
  std::vector<std::string> read;
  std::vector<std::string> missing;
  for (const std::string role : {"test", "reference"}) {
    const auto framework = properties.find(role + ".framework");
    const auto lane = properties.find(role + ".lane");
    const auto version = lane == properties.end() ? lane : properties.find(lane->second);
    if (version == properties.end()) continue;
    const std::string name = name_of_list(
        framework == properties.end() ? lane->second : framework->second, version->second);
    if (std::ranges::find(read, name) != read.end()) continue;
    const std::filesystem::path file = folder / (name + ".toml");
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      missing.push_back(name);
      continue;
    }
    ASSAY_TRY(PastRun list, read_baseline(file));
    all.faults.merge(list.faults);
    all.properties.merge(list.properties);
    read.push_back(name);
  }
  all.name = fmt::format("{} ({})", kShippedFaults, fmt::join(read, ", "));
  if (!missing.empty()) {
    all.notice = fmt::format("assay ships no known faults of {}", fmt::join(missing, ", "));
  }
  return all;
}

}  // namespace assay
