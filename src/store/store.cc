#include "store/store.h"

namespace assay {

Result<std::uint64_t> RunReader::unfinished() {
  ASSAY_TRY(const StoreCounts found, counts());
  return found.planned - found.finished;
}

}  // namespace assay
