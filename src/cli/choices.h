#pragma once

// Values of flags that are one of a few words.

#include <CLI/App.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "verdict/outcome.h"

namespace assay {

// An error if `text` is none of `known`. It names the nearest one.
Status check_choice(std::string_view flag, std::span<const std::string_view> known,
                    std::string_view text);

// For flags that name a file, a run or a list: an empty text, such as an unset variable of a shell,
// is an error.
CLI::Validator not_empty();

// For a flag with a whole number that fits into 64 bits; CLI11 wraps others around.
CLI::Validator whole_number();

// 90, 90s, 5m, 5min or 1h as seconds; nullopt for anything else.
std::optional<double> read_seconds(std::string_view text);

// For a flag that takes seconds: turns what read_seconds() reads into seconds.
CLI::Validator seconds();

// The outcome of this name, or an error that names the nearest one.
Result<Outcome> chosen_outcome(std::string_view flag, const std::string& text);

}  // namespace assay
