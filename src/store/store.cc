#include "store/store.h"

#include "case/case_traits.h"

namespace assay {

Result<std::uint64_t> RunReader::unfinished() {
  ASSAY_TRY(const StoreCounts found, counts());
  return found.planned - found.finished;
}

Result<Tally> RunReader::tally() {
  Tally sums;
  ASSAY_CHECK(each_finished([&](const FinishedCase& finished) -> Status {
    sums.add(traits_of(finished.text), finished);
    return {};
  }));
  return sums;
}

}  // namespace assay
