#pragma once

// The record of one case: how it ended in each lane and, where it ended in results, how they
// differ.

#include <vector>

#include "base/result.h"
#include "slot/batch.h"
#include "wire/frame.h"

namespace assay {

// A finished wire::Record. `endings` are those of the lanes of `config`, in its order. Fails only
// when a lane's reply points outside its arena.
Result<wire::Bytes> make_record(const SlotConfig& config, const SlotJob& job, bool fresh,
                                const std::vector<Ending>& endings);

}  // namespace assay
