#pragma once

// Parts of make_run_config().

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/api_options.h"
#include "engine/run_config.h"

namespace assay {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// The entries of a comma-separated list, without blanks around them.
std::vector<std::string> entries_of(const std::string& text);

// The cases that flags, files and the standard input name. A usage error if a case of --api_config
// is wrong, or if nothing is named.
Result<Sources> chosen_sources(const ApiOptions& options);

// The lane under test if no flag names one: PyTorch if the first case is a call of PyTorch's
// functions, else Paddle.
std::string usual_test_lane(const Sources& sources);

// How --reference-lane=gold:PATH|URL begins.
inline constexpr std::string_view kGoldens = "gold:";

// Makes the run compare with the goldens at a path or an address, and notes what differs between
// the run that recorded them and this one. An error if that makes the results incomparable. The
// mode, the settings and the folder of `config` must be set: a copy of goldens from an address lies
// in that folder.
Status choose_goldens(const std::string& where, RunConfig& config, std::vector<std::string>& notes);

// Looks at the user's own kernel (python/assay/kernel.py) and its reference in the interpreter of
// the test lane, and tells both lanes what they have to know. Adds cases of other shapes if the
// options ask for them. A file or function that does not exist, a case that does not fit and a
// reference that raises are usage errors.
Status choose_kernel(const ApiOptions& options, RunConfig& config, std::vector<std::string>& notes);

// engineV4's file of tolerances for single APIs, in the format of CaseSettings.thresholds:
//
//   manual_threshold_config:
//     paddle.exp: [0.1, 0.01]      # atol, rtol; a custom operator has its own name
//
// Other keys are ignored, as engineV4 does. Empty for an empty path. A usage error if the file
// cannot be read, has no such table, or an entry is not two numbers of at least 0.
Result<std::string> read_thresholds(const std::string& path);

// Sets the GPUs of `config`, `asked_workers` on each (-1: as many as are useful), and which lanes
// use them. Returns whether the run uses GPUs. By default it does if there are any. A usage error
// if it cannot use the GPUs that the flags ask for.
Result<bool> choose_gpu_seats(const ApiOptions& options, int asked_workers, RunConfig& config,
                              std::vector<std::string>& notes);

// A usage error if the mode needs two GPUs, one for each lane, and the run has fewer.
Status check_two_gpus(const RunConfig& config);

}  // namespace assay
