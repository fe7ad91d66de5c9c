#include "report/past.h"

#include <array>
#include <filesystem>

#include "base/text.h"
#include "case/canonical.h"
#include "report/baseline.h"
#include "store/open_store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

// The call and its gradients among the stages of python/assay/call.py.
constexpr std::array<flatbuffers::uoffset_t, 2> kTimed = {1, 3};

Result<PastRun> load_run(const std::string& where) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(where, StoreMode::existing));
  PastRun past;
  ASSAY_TRY(past.properties, store->properties());
  ASSAY_CHECK(store->each_finished([&](const FinishedCase& finished) -> Status {
    past.cases[finished.id] = {finished.verdict.outcome, (finished.verdict.flags & kFlaky) != 0,
                               static_cast<float>(seconds_of_test(finished.record))};
    return {};
  }));
  ASSAY_CHECK(store->each_invalid([&](const InvalidLine& line) -> Status {
    past.cases[invalid_line_id(line)] = {Outcome::invalid, false, 0};
    return {};
  }));
  return past;
}

}  // namespace

Result<PastRun> load_past(const std::string& where) {
  std::error_code error;
  const bool file = !is_store_address(where) && std::filesystem::is_regular_file(where, error);
  ASSAY_TRY(PastRun past, file ? read_baseline(where) : load_run(where));
  past.name = where;
  return past;
}

std::uint64_t invalid_line_id(const InvalidLine& line) { return case_id(trimmed(line.text)); }

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
