#pragma once

// Timings of a record's lanes, part by part, and how those of two lanes compare.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/speed.h"
#include "wire/messages_generated.h"

namespace assay {

// Samples of one part of a case ("forward host warm") in one lane: nanoseconds a call.
struct TimeSeries {
  std::string what;
  std::uint32_t calls = 1;  // in each sample of the first turn
  std::vector<double> nanoseconds;
  std::vector<std::uint32_t> turns;  // how many of the samples are of each turn
  std::uint32_t turns_of_lane = 1;   // after so many turns a new lane had the next ones
};

// The same part in two lanes; of one lane alone the right side is empty.
struct SpeedRow {
  std::string what;
  TimeSeries left;
  TimeSeries right;
  Ratio ratio;
  Speed speed = Speed::unsure;
  bool decides = false;  // the case's verdict: warm, and by the device's clock where there is one
};

std::vector<TimeSeries> series_of(const wire::LaneRecord& lane);

// The least sample of each turn: what else a machine does only ever adds to a call. 0: it has none.
std::vector<double> turn_times(const TimeSeries& series);

// What one run says of a part, for another run to be compared with: the time in each of its lanes,
// in nanoseconds; and, where a reference lane took turns as well, as a share of its time.
struct TimedPart {
  std::string what;
  std::vector<double> alone;
  std::vector<double> beside_reference;
};

// The parts that decide; of a record whose first trial was timed. Empty: it was not.
std::vector<TimedPart> timed_parts(const wire::Record& record);
// The rows of a record; of a single lane with nothing on the right side.
std::vector<SpeedRow> speed_rows(const wire::Record& record, double margin);

// Of two lanes that took turns, in the order of the left side.
std::vector<SpeedRow> speed_rows(std::span<const TimeSeries> left,
                                 std::span<const TimeSeries> right, double margin);

// Whether a part's times are of a device's clock.
bool is_of_device(std::string_view what);

// What speed_of() says of a part whose right side takes so many nanoseconds a call. By a device's
// clock samples also have to be 1 µs apart to be slow or fast, by a host's clock calls 0.05 µs:
// between two processes of one build so small a difference lasts as long as they live
// (lab/gpu/2026-11-23-night-h200.txt, docs/benchmarks.md).
Speed speed_of_part(std::string_view what, std::uint32_t calls, double right_ns, const Ratio& ratio,
                    double margin);

// Of all that decide: slow before unsure, unsure before fast.
Speed speed_of_case(std::span<const SpeedRow> rows);

// "2.1 ms": three digits.
std::string time_text(double nanoseconds);
// "1.05 times as long (1.03 to 1.07)".
std::string ratio_text(const Ratio& ratio);

}  // namespace assay
