#pragma once

// Errors are values: a function that can fail returns Result<T>. No exception crosses the edge of a
// module. main() prints the error that reaches it and exits with the code of the error's kind.

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace assay {

// Whose fault an error is; selects the exit code (cli/verb.h).
enum class ErrorKind {
  usage,   // the command line or a file that the user named
  engine,  // the engine or the machine it runs on
};

struct Error {
  std::string message;  // one line: what happened, where, and what to do
  ErrorKind kind = ErrorKind::engine;
};

template <typename T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

inline tl::unexpected<Error> fail(std::string message, ErrorKind kind = ErrorKind::engine) {
  return tl::unexpected<Error>(Error{std::move(message), kind});
}

inline tl::unexpected<Error> usage_error(std::string message) {
  return fail(std::move(message), ErrorKind::usage);
}

// "CONTEXT: message of errno", for a system call that has just failed. Reads errno first.
tl::unexpected<Error> errno_error(std::string context);

}  // namespace assay

// Evaluates EXPR (a Result); hands its error to the caller, or binds its value to NAME.
#define ASSAY_CONCAT_INNER(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_INNER(a, b)
#define ASSAY_TRY_IMPL(temporary, name, ...)                                             \
  auto temporary = __VA_ARGS__;                                                          \
  if (!temporary) return ::tl::unexpected<::assay::Error>(std::move(temporary.error())); \
  name = std::move(*temporary)
#define ASSAY_TRY(name, ...) ASSAY_TRY_IMPL(ASSAY_CONCAT(assay_try_, __LINE__), name, __VA_ARGS__)

// The same for a Status.
#define ASSAY_CHECK(...)                                                                         \
  do {                                                                                           \
    auto assay_status = __VA_ARGS__;                                                             \
    if (!assay_status) return ::tl::unexpected<::assay::Error>(std::move(assay_status.error())); \
  } while (false)
