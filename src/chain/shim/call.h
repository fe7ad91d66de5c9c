#pragma once

// What the shim records of one command that a script starts. A record is a header line with its
// version and length, then texts that each end with NUL. This folder uses nothing but the standard
// library, so that the shim stays small and starts fast.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::shim {

// The socket of the run that starts the commands. Without it the shim rehearses.
inline constexpr const char* kSocketVariable = "ASSAY_SHIM_SOCKET";
// PATH without the shim's folder, for the real command.
inline constexpr const char* kPathVariable = "ASSAY_SHIM_PATH";
// The interpreter in place of every `python*` (--python); unset: the one that PATH finds.
inline constexpr const char* kPythonVariable = "ASSAY_SHIM_PYTHON";
// The file that the shim appends its records to.
inline constexpr const char* kRecordVariable = "ASSAY_SHIM_RECORD";
// Names of files, one a line, that the shim makes in every output folder.
inline constexpr const char* kMakeVariable = "ASSAY_SHIM_MAKE";

// Paths, one a line, of programs that the project builds. They are links to the shim. A script may
// remove them before it builds, so that every shim makes them again.
inline constexpr const char* kBuiltVariable = "ASSAY_SHIM_BUILT";

struct Call {
  std::vector<std::string> argv;         // argv[0] as the script wrote it
  std::vector<std::string> environment;  // "NAME=value"
  std::string folder;                    // working folder
  std::string output;                    // what descriptor 1 is: a path, "pipe:[…]"
  std::string errors;                    // the same of descriptor 2
  bool operator==(const Call&) const = default;
};

std::string encode(const Call& call);

// Takes the first record off the text. Nothing if the text starts with no complete record of this
// version.
std::optional<Call> take_call(std::string_view& text);

// What a run tells the shim: bytes of the command's output, or its end.
enum class Answer : char { output = '1', errors = '2', exit = 'x' };
inline constexpr std::size_t kAnswerHead = 5;  // kind, length in four bytes, most significant first
std::string answer_head(Answer kind, std::size_t bytes);
std::size_t bytes_after(std::string_view head);

// Whether a program is an interpreter of Python, by its name.
bool is_python(std::string_view program);

// Whether a command only asks or installs something: `python -V`, `python -c`, `python -m pip`. It
// is no stage of a chain.
bool is_errand(const std::vector<std::string>& argv);

// Folders and files that a command writes, by its arguments: values with a `/` whose key has
// "save" or "out" in it (`--save_dir V`, `-o Global.output_dir=V`).
std::vector<std::string> outputs_of(const std::vector<std::string>& argv);

// Whether an output is a file. All others are folders, also those with a dot in the name.
bool is_file_name(std::string_view output);

}  // namespace assay::chain::shim
