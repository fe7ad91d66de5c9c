#include "report/past.h"

#include <array>

#include "base/text.h"
#include "case/canonical.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

// The call and its gradients among the stages of python/assay/call.py.
constexpr std::array<flatbuffers::uoffset_t, 2> kTimed = {1, 3};

}  // namespace

std::uint64_t invalid_line_id(const InvalidLine& line) { return case_id(trimmed(line.text)); }

std::vector<TimedPart> timings_of(std::span<const std::uint8_t> record) {
  if (record.empty()) return {};
  const auto opened = wire::open<wire::Record>(record);
  return opened ? timed_parts(**opened) : std::vector<TimedPart>();
}

double seconds_of_test(std::span<const std::uint8_t> record) {
  if (record.empty()) return 0;
  const auto opened = wire::open<wire::Record>(record);
  if (!opened || (*opened)->trials() == nullptr || (*opened)->trials()->size() == 0) return 0;
  const auto* lanes = (*opened)->trials()->Get(0)->lanes();
  if (lanes == nullptr || lanes->size() == 0) return 0;
  const auto* nanoseconds = lanes->Get(0)->nanoseconds();
  double sum = 0;
  for (const flatbuffers::uoffset_t stage : kTimed) {
    if (nanoseconds == nullptr || stage >= nanoseconds->size()) continue;
    sum += static_cast<double>(nanoseconds->Get(stage)) / 1e9;
  }
  return sum;
}

}  // namespace assay
