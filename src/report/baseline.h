#pragma once

// The baseline file of a CI: what did not pass and is known, as text under version control.
//
//   assay-baseline 1
//   setting mode accuracy
//   setting paddle 3.3.1
//
//   # known: issue 71234; logits are clamped
//   mismatch 3d1f0c5a9b7e2468 paddle.nn.functional.log_softmax(Tensor([2], "float32"))
//   flaky 1122334455667788 paddle.abs(Tensor([2], "float32"))
//
// A line for each case that did not pass or was flaky: its outcome, id and text, sorted by text.
// What a person writes above a line, in lines that begin with '#', stays there when the file is
// written again, as long as the case does not pass.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "report/past.h"
#include "store/store.h"

namespace assay {

inline constexpr int kBaselineVersion = 1;

Result<PastRun> read_baseline(const std::filesystem::path& file);

// Replaces the file, if there is one, and keeps its comments. A file that is no baseline is an
// error.
Status write_baseline(RunReader& run, const std::filesystem::path& file);

}  // namespace assay
