#pragma once

// Times of cases in an earlier run. A plan expects the same times, so that shards cost the same and
// long cases start first.

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
  // Reads all verdicts of the run in a folder or a database. Fails if there is no run, or if it has
  // no times.
  static Result<EarlierCosts> read(const std::filesystem::path& where);

  // Expected microseconds in a slot: the time of this case if it was long, else the average of its
  // kind. nullopt: nothing like it ran. `elements` as the plan estimates them.
  std::optional<std::uint64_t> expected_us(std::uint64_t id, std::string_view case_text,
                                           std::uint64_t elements) const;
  // Equal for equal costs. Shards cut by different costs do not fit together.
  std::uint64_t digest() const { return digest_; }

 private:
  void add(std::uint64_t id, std::string_view case_text, std::uint64_t elements,
           std::uint64_t took_us);

  std::unordered_map<std::uint64_t, std::uint64_t> expensive_;  // kExpensiveUs and more, by id
  LearnedCosts kinds_;                                          // of the other cases
  std::uint64_t digest_ = 0;
};

}  // namespace assay
