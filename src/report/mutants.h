#pragma once

// Every planted fault of a stored run as a line of JSON, for python/assay/mutation/score.py. The
// first line is {"version": 1, "properties": {…}} with those of the run.

#include <filesystem>

#include "base/result.h"
#include "store/store.h"
#include "verdict/mutants.h"

namespace assay {

// {"case": …, "fault": …, "values": …, "fate": "killed", "weak": true, "planted": …, "message": …}
Status write_mutants(Store& store, const Policies& policies, const std::filesystem::path& file);

}  // namespace assay
