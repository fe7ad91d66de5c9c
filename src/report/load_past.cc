#include "report/load_past.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "report/baseline.h"
#include "store/open_store.h"

namespace assay {
namespace {

Status read_cases(Store& store, PastRun& past) {
  ASSAY_CHECK(store.each_finished([&](const FinishedCase& finished) -> Status {
    past.cases[finished.id] = {finished.verdict.outcome, (finished.verdict.flags & kFlaky) != 0,
                               timings_of(finished.record),
                               static_cast<float>(seconds_of_test(finished.record))};
    return {};
  }));
  return store.each_invalid([&](const InvalidLine& line) -> Status {
    past.cases[invalid_line_id(line)] = {Outcome::invalid, false, {}, 0};
    return {};
  });
}

Result<PastRun> load_run(const std::string& where) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(where, StoreMode::read));
  PastRun past;
  ASSAY_TRY(past.properties, store->properties());
  if (is_store_address(where)) {
    past.database = where;
  } else {
    ASSAY_CHECK(read_cases(*store, past));
  }
  return past;
}

}  // namespace

Result<PastRun> load_past(const std::string& where) {
  std::error_code error;
  const bool file = !is_store_address(where) && std::filesystem::is_regular_file(where, error);
  ASSAY_TRY(PastRun past, file ? read_baseline(where) : load_run(where));
  past.name = is_store_address(where) ? without_password(where) : where;
  return past;
}

Status load_cases(PastRun& past) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(past.database, StoreMode::read));
  ASSAY_CHECK(read_cases(*store, past));
  past.database.clear();
  return {};
}

}  // namespace assay
