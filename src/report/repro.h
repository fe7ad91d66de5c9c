#pragma once

// Exports one stored case as a script with its inputs, for the developer who fixes the framework.

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
  wire::Bytes record;  // empty: the case never ran, or died with its slot
  bool finished = true;
  std::uint32_t attempts = 1;
  std::int64_t finished_ms = 0;  // since 1970
  std::uint64_t took_us = 0;     // in a slot; 0: not known
};

// The planned case with this id (16 hexadecimal digits) or text, or with an id that starts with
// `wanted` or a text that contains it. A text may have other blanks and quotes than the canonical
// one. A usage error if no case or more than one case matches.
Result<FoundCase> find_planned_case(RunReader& run, std::string_view wanted);
// The same for a case with a record. A usage error if it has not finished or never ran.
Result<FoundCase> find_case(RunReader& run, std::string_view wanted);

struct Repro {
  std::filesystem::path script;
  std::vector<std::string> notes;  // lines about possible differences from the run
};

// Writes repro.py and x0.bin, x1.bin … (the elements of each tensor) into `folder`, which it
// creates. The elements are filled again as the record describes, and compared with its checksums.
Result<Repro> write_repro(RunReader& run, const FoundCase& found,
                          const std::filesystem::path& folder);

// A repro of each failed case that was run, as failed_tests/test_API_ID in the run's folder. One
// that cannot be written, or whose inputs are larger than 1 GiB, gets a note instead.
Status write_failed_tests(RunReader& run, const std::filesystem::path& folder,
                          const std::function<void(const std::string&)>& note);

}  // namespace assay
