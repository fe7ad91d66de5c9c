#pragma once

// What cases took in an earlier run. A plan expects the same of them: parts of a corpus then cost
// the same, and what takes long begins first.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "store/learned_costs.h"

namespace assay {

class EarlierCosts {
 public:
  // Reads all verdicts of the run in a folder, or at the address of a database. An error: there is
  // none, or it knows of no case how long it took.
  static Result<EarlierCosts> read(const std::filesystem::path& where);

  // Microseconds in a slot: those of this case where it took long, else of its kind on average;
  // nullopt: nothing like it was run. `elements` as the plan estimates them.
  std::optional<std::uint64_t> expected_us(std::uint64_t id, std::string_view case_text,
                                           std::uint64_t elements) const;
  // The same for the same costs: parts of a corpus that were cut by others do not fit together.
  std::uint64_t digest() const { return digest_; }

 private:
  void add(std::uint64_t id, std::string_view case_text, std::uint64_t elements,
           std::uint64_t took_us);

  std::unordered_map<std::uint64_t, std::uint64_t> expensive_;  // kExpensiveUs and more, by id
  LearnedCosts kinds_;                                          // of the others
  std::uint64_t digest_ = 0;
};

}  // namespace assay
