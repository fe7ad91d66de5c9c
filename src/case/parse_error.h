#pragma once

// Errors and limits of the parser (case/parser.h).

#include <cstddef>
#include <string>
#include <tl/expected.hpp>

namespace assay {

inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20U;
inline constexpr unsigned kMaxNesting = 64;         // of list, tuple and slice
inline constexpr std::size_t kMaxArguments = 1024;  // of one call
inline constexpr std::size_t kMaxDimensions = 64;   // of one tensor
inline constexpr std::size_t kMaxCallsPerLine = 16;

struct ParseError {
  std::size_t column = 0;  // in characters (code points) of the line, from 1
  std::string message;     // what was expected, without the position
};

using ParseStatus = tl::expected<void, ParseError>;

}  // namespace assay
