#pragma once

// One stored case, taken out of its run: a script and its inputs, for the person who repairs the
// framework.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "wire/frame.h"

namespace assay {

struct FoundCase {
  std::uint64_t id = 0;
  std::string text;  // canonical
  Verdict verdict;
  wire::Bytes record;
};

// The finished case that `wanted` names: its id of 16 hexadecimal digits, the beginning of it, its
// text, or a part of that. An error where none or more than one has it, and where there is nothing
// to run again: the case has not finished, or was never run.
Result<FoundCase> find_case(RunReader& run, std::string_view wanted);

struct Repro {
  std::filesystem::path script;
  std::vector<std::string> notes;  // what may differ from the run; a line each
};

// Writes repro.py and x0.bin, x1.bin … (each tensor's elements) into `folder`, which is made. The
// elements are filled again as the record says they were, and checked against its checksums.
Result<Repro> write_repro(RunReader& run, const FoundCase& found,
                          const std::filesystem::path& folder);

// A repro of each failed case that was run, as failed_tests/test_API_ID in the run's folder. One
// that cannot be written, or whose inputs are larger than 1 GiB, gets a note instead.
Status write_failed_tests(RunReader& run, const std::filesystem::path& folder,
                          const std::function<void(const std::string&)>& note);

}  // namespace assay
