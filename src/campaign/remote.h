#pragma once

// One model of a campaign on another machine. The campaign starts `assay chain remote` there, which
// starts `assay chain run`. Both sides send a sign of life, so that each notices the other's end:
// the campaign bytes to stdin, this side lines to stdout.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::campaign {

// Seconds that a model has to clean up after its campaign or the connection has ended.
inline constexpr double kRemoteGrace = 5;

// The words of `assay chain remote` for the words after `assay chain`.
std::vector<std::string> remote_words(double lost, const std::vector<std::string>& words);

// What a line of its output says.
struct RemoteWord {
  bool is_word = false;
  std::optional<int> ended;  // the model's exit code
};
RemoteWord read_remote_line(std::string_view line);

// Runs `self chain WORDS…` until it ends, stdin closes, or nothing comes from stdin for `lost`
// seconds. Returns its exit code.
Result<int> run_remote(const std::string& self, const std::vector<std::string>& words, double lost);

}  // namespace assay::campaign
