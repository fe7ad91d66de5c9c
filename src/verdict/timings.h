#pragma once

// The timings of a record's lanes by part of the case, and their comparison.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/speed.h"
#include "wire/messages_generated.h"

namespace assay {

// The samples of one part of a case ("forward host warm") in one role.
struct TimeSeries {
  std::string what;
  std::uint32_t calls = 1;           // in each sample of the first turn
  std::vector<double> nanoseconds;   // per call
  std::vector<std::uint32_t> turns;  // number of samples in each turn
  std::uint32_t turns_of_lane = 1;   // a new lane takes over after this many turns
};

// The same part in two lanes. The right side is empty if there is only one lane.
struct SpeedRow {
  std::string what;
  TimeSeries left;
  TimeSeries right;
  Ratio ratio;
  Speed speed = Speed::unsure;
  bool decides = false;  // counts for the verdict: warm, and by the device's clock if it was used
};

// The timings of a lane.
std::vector<TimeSeries> series_of(const wire::LaneRecord& lane);

// The smallest sample of each turn in nanoseconds, because noise only adds time. 0 for a turn
// without samples.
std::vector<double> turn_times(const TimeSeries& series);

// The timings of a part in one run, for a comparison with another run.
struct TimedPart {
  std::string what;
  std::vector<double> alone;             // nanoseconds per call, one value for each lane process
  std::vector<double> beside_reference;  // as a multiple of the reference lane's time
};

// The parts that decide. Empty if the first trial of the record was not timed.
std::vector<TimedPart> timed_parts(const wire::Record& record);
// The rows of a record. Rows of a single lane have an empty right side.
std::vector<SpeedRow> speed_rows(const wire::Record& record, double margin);

// The rows of two lanes that took turns, in the order of the left side.
std::vector<SpeedRow> speed_rows(std::span<const TimeSeries> left,
                                 std::span<const TimeSeries> right, double margin);

// Whether a part was timed by a device's clock.
bool is_of_device(std::string_view what);

// As speed_of(), for a part whose right side takes `right_ns` per call. To be slow or fast, samples
// must also differ by 1 µs on a device's clock, or calls by 0.05 µs on the host's clock: two
// processes of the same build differ by that much for their whole lives (lab/gpu.md).
Speed speed_of_part(std::string_view what, std::uint32_t calls, double right_ns, const Ratio& ratio,
                    double margin);

// The speed of all rows that decide: slow if any is slow, else unsure, fast, same in this order.
Speed speed_of_case(std::span<const SpeedRow> rows);

// A time with three digits and a unit: "2.1 ms".
std::string time_text(double nanoseconds);
// A ratio with its interval: "1.050 times as long (1.030 to 1.070)".
std::string ratio_text(const Ratio& ratio);

}  // namespace assay
