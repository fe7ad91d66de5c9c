#include "report/load_past.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "report/baseline.h"
#include "store/open_store.h"

namespace assay {
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

}  // namespace

Result<PastRun> load_past(const std::string& where) {
  std::error_code error;
  const bool file = !is_store_address(where) && std::filesystem::is_regular_file(where, error);
  ASSAY_TRY(PastRun past, file ? read_baseline(where) : load_run(where));
  past.name = is_store_address(where) ? without_password(where) : where;
  return past;
}

}  // namespace assay
