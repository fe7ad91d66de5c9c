#include "report/past.h"

#include "base/text.h"
#include "base/utf8.h"
#include "case/canonical.h"
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

}  // namespace assay
