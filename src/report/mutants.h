#pragma once

// Writes all planted faults of a stored run as lines of JSON, for python/assay/mutation/score.py.

#include <filesystem>

#include "base/result.h"
#include "store/store.h"
#include "verdict/mutants.h"

namespace assay {

// The first line is {"version": 1, "properties": {…}} with the properties of the run. The others
// are
// {"case": …, "fault": …, "values": …, "fate": "killed", "weak": true, "planted": …, "message": …}.
Status write_mutants(Store& store, const Policies& policies, const std::filesystem::path& file);

}  // namespace assay
