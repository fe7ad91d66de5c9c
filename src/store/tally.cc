#include "store/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>

#include "store/finished_case.h"
#include "store/sum_lines.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

template <std::size_t kCount>
void add_to(std::array<std::int64_t, kCount>& sums, const std::array<std::int64_t, kCount>& more) {
  for (std::size_t i = 0; i < kCount; ++i) sums[i] += more[i];
}

void add_to(std::int64_t& sum, std::int64_t more) { sum += more; }

void add_to(MinuteSums& sums, const MinuteSums& more) {
  sums.cases += more.cases;
  sums.failed += more.failed;
}

void add_to(TallySums& sums, const TallySums& more) {
  sums.cases += more.cases;
  sums.took_us += more.took_us;
  sums.partly += more.partly;
  sums.stages.add(more.stages);
}

// Adds to the sums of one key, and removes the key if its sums become zero.
template <typename Key, typename Sums>
void add_under(std::map<Key, Sums>& all, const std::type_identity_t<Key>& key,
               const std::type_identity_t<Sums>& more) {
  const auto at = all.try_emplace(key).first;
  add_to(at->second, more);
  if (at->second == Sums{}) all.erase(at);
}

StageTimes times(StageTimes of, std::int64_t by) {
  for (std::int64_t& each : of.ns) each *= by;
  of.cases *= by;
  return of;
}

void write_numbers(std::string& text, std::span<const std::int64_t> numbers) {
  for (const std::int64_t each : numbers) {
    fmt::format_to(std::back_inserter(text), "{}{}", kBetweenFields, each);
  }
  text += '\n';
}

}  // namespace

void Tally::change_lanes(const wire::Trial& trial, std::int64_t by) {
  if (trial.lanes() == nullptr) return;
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    if (lane->name() == nullptr || lane->nanoseconds() == nullptr) continue;
    LaneNanoseconds ns = lane_nanoseconds(*lane);
    for (std::int64_t& each : ns) each *= by;
    add_under(lanes_, as_field(lane->name()->str()), ns);
  }
}

void Tally::change_by_record(const wire::Record& record, std::int64_t by, TallySums& sums) {
  if (record.trials() == nullptr) return;
  sums.stages = times(stage_times(record), by);
  for (const wire::Trial* trial : *record.trials()) {
    change_lanes(*trial, by);
    const bool skipped = trial->skipped() != nullptr && trial->skipped()->size() > 0;
    if (!skipped || trial->values() == nullptr) continue;
    sums.partly = by;
    add_under(not_judged_, {as_field(trial->values()->str()), as_field(trial->skipped()->str())},
              by);
  }
}

void Tally::change(const CaseTraits& traits, const FinishedCase& finished, std::int64_t by) {
  TallySums sums{by, by * static_cast<std::int64_t>(finished.took_us), 0, {}};
  if (!finished.record.empty()) {
    const auto record = wire::open<wire::Record>(finished.record);
    if (record) change_by_record(**record, by, sums);
  }
  const CaseTraits plain{as_field(traits.api), as_field(traits.dtype), traits.size};
  add_under(cases_, {plain, finished.verdict.outcome, finished.verdict.flags}, sums);
  for (auto& [key, extent] : faults_of_case(traits, finished.verdict)) {
    add_under(faults_, {key, extent}, by);
  }
  add_under(minutes_, finished.finished_ms / kMinuteMs,
            {by, info(finished.verdict.outcome).failed ? by : 0});
}

void Tally::take_back(const CaseTraits& traits, const FinishedCase& finished) {
  change(traits, finished, -1);
  ++taken_back_;
}

void Tally::add(const Tally& other) {
  for (const auto& [key, sums] : other.cases_) add_under(cases_, key, sums);
  for (const auto& [key, cases] : other.faults_) add_under(faults_, key, cases);
  for (const auto& [key, sums] : other.lanes_) add_under(lanes_, key, sums);
  for (const auto& [key, sums] : other.not_judged_) add_under(not_judged_, key, sums);
  for (const auto& [key, sums] : other.minutes_) add_under(minutes_, key, sums);
  taken_back_ += other.taken_back_;
}

std::map<FaultKey, FaultSums> Tally::faults() const {
  std::map<FaultKey, FaultSums> found;
  for (const auto& [key, cases] : faults_) {
    FaultSums& sums = found[key.first];
    sums.cases += cases;
    sums.extent.add(key.second);
  }
  return found;
}

std::int64_t Tally::finished() const {
  std::int64_t sum = 0;
  for (const auto& [key, sums] : cases_) sum += sums.cases;
  return sum;
}

bool Tally::empty() const { return *this == Tally(); }

std::string Tally::text() const {
  std::string text;
  for (const auto& [key, sums] : cases_) {
    fmt::format_to(std::back_inserter(text), "case\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                   key.traits.api, key.traits.dtype, key.traits.size, name(key.outcome), key.flags,
                   sums.cases, sums.took_us, sums.partly, sums.stages.cases);
    write_numbers(text, sums.stages.ns);
  }
  for (const auto& [key, cases] : faults_) {
    const auto& [fault, extent] = key;
    fmt::format_to(std::back_inserter(text), "fault\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", fault.api,
                   name(fault.outcome), fault.where, fault.how, join_names(extent.values),
                   join_names(extent.dtypes), extent.error_step, cases);
  }
  for (const auto& [lane, ns] : lanes_) {
    text += "lane\t" + lane;
    write_numbers(text, ns);
  }
  for (const auto& [key, cases] : not_judged_) {
    text += "not_judged\t" + key.first + kBetweenFields + key.second;
    write_numbers(text, {&cases, 1});
  }
  for (const auto& [minute, sums] : minutes_) {
    text += "minute";
    write_numbers(text, std::array{minute, sums.cases, sums.failed});
  }
  if (taken_back_ != 0) {
    text += "taken_back";
    write_numbers(text, {&taken_back_, 1});
  }
  return text;
}

Status Tally::add_line(std::string_view line) {
  LineFields fields(line);
  const std::string_view what = fields.next();
  bool known = true;
  if (what == "case") {
    TallyKey key;
    TallySums sums;
    key.traits.api = fields.next();
    key.traits.dtype = fields.next();
    key.traits.size = static_cast<std::uint8_t>(fields.number());
    const auto outcome = find_outcome(fields.next());
    known = outcome.has_value();
    key.outcome = outcome.value_or(Outcome::invalid);
    key.flags = static_cast<std::uint8_t>(fields.number());
    sums.cases = fields.number();
    sums.took_us = fields.number();
    sums.partly = fields.number();
    sums.stages.cases = fields.number();
    for (std::int64_t& each : sums.stages.ns) each = fields.number();
    add_under(cases_, key, sums);
  } else if (what == "fault") {
    FaultKey key;
    FaultExtent extent;
    key.api = fields.next();
    const auto outcome = find_outcome(fields.next());
    known = outcome.has_value();
    key.outcome = outcome.value_or(Outcome::invalid);
    key.where = fields.next();
    key.how = fields.next();
    extent.values = split_names(fields.next());
    extent.dtypes = split_names(fields.next());
    extent.error_step = static_cast<int>(fields.number());
    add_under(faults_, {std::move(key), std::move(extent)}, fields.number());
  } else if (what == "lane") {
    const std::string lane(fields.next());
    LaneNanoseconds ns{};
    for (std::int64_t& each : ns) each = fields.number();
    add_under(lanes_, lane, ns);
  } else if (what == "not_judged") {
    const std::string values(fields.next());
    const std::string reason(fields.next());
    add_under(not_judged_, {values, reason}, fields.number());
  } else if (what == "minute") {
    const std::int64_t minute = fields.number();
    const std::int64_t cases = fields.number();
    add_under(minutes_, minute, {cases, fields.number()});
  } else if (what == "taken_back") {
    taken_back_ += fields.number();
  } else {
    known = false;
  }
  if (known && fields.good()) return {};
  return fail(fmt::format("the sums of this run are damaged: “{}”", line.substr(0, 80)));
}

Status Tally::add_text(std::string_view text) {
  return each_line(text, [this](std::string_view line) { return add_line(line); });
}

namespace {

// Indexes in kStages.
enum Stage : std::size_t { kFill, kTestForward, kTestBackward, kReference, kCopy, kCompare, kWait };

void add_trial(const wire::Trial& trial, StageTimes& times) {
  if (trial.lanes() == nullptr) return;
  std::int64_t longest = 0;
  std::int64_t shortest = 0;
  bool first = true;
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    const LaneNanoseconds ns = lane_nanoseconds(*lane);
    const auto in = [&ns](wire::Stage stage) { return ns[static_cast<std::size_t>(stage)]; };
    times.ns[kFill] += in(wire::Stage::build);
    times.ns[kCopy] += in(wire::Stage::copy);
    if (lane->role() == wire::Role::test) {
      times.ns[kTestForward] += in(wire::Stage::forward);
      times.ns[kTestBackward] += in(wire::Stage::backward);
    } else {
      times.ns[kReference] += in(wire::Stage::forward) + in(wire::Stage::backward);
    }
    std::int64_t all = 0;
    for (const std::int64_t each : ns) all += each;
    longest = std::max(longest, all);
    shortest = first ? all : std::min(shortest, all);
    first = false;
  }
  times.ns[kWait] += longest - shortest;
}

}  // namespace

LaneNanoseconds lane_nanoseconds(const wire::LaneRecord& lane) {
  LaneNanoseconds ns{};
  if (lane.nanoseconds() == nullptr) return ns;
  const std::size_t count = std::min<std::size_t>(ns.size(), lane.nanoseconds()->size());
  std::copy_n(lane.nanoseconds()->begin(), count, ns.begin());
  return ns;
}

void StageTimes::add(const StageTimes& other) {
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] += other.ns[i];
  cases += other.cases;
}

std::int64_t StageTimes::in_lanes() const {
  return ns[kFill] + ns[kTestForward] + ns[kTestBackward] + ns[kReference] + ns[kCopy];
}

StageTimes stage_times(const wire::Record& record) {
  StageTimes times;
  if (record.trials() == nullptr) return times;
  times.cases = 1;
  times.ns[kCompare] = static_cast<std::int64_t>(record.compare_ns());
  for (const wire::Trial* trial : *record.trials()) add_trial(*trial, times);
  return times;
}

StageTimes stage_times(const FinishedCase& finished) {
  if (finished.record.empty()) return {};
  const auto record = wire::open<wire::Record>(finished.record);
  return record ? stage_times(**record) : StageTimes();
}

}  // namespace assay
