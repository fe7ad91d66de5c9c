#pragma once

// The average time of cases by kind, so that a plan can estimate costs without reading millions of
// verdicts.
//
// A kind is an API, the dtype of the first tensor and a step of size. The cases of one kind differ
// by at most a factor of four in their elements. Expensive cases are left out of the averages:
// stores keep the time of each of them.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace assay {

// A case that took at least this long is expensive: its own time is its estimate, not the average
// of its kind. It is half a bundle, so its estimate alone decides its position; such cases are few.
inline constexpr std::int64_t kExpensiveUs = 1'000'000;

class LearnedCosts {
 public:
  // Adds a case that took `took_us` (0: not known). `elements`: as the plan estimates them.
  void add(std::string_view api, std::string_view dtype, std::uint64_t elements,
           std::uint64_t took_us);
  // The average time in µs of this case's kind; nullopt if no case of the kind was added.
  std::optional<std::int64_t> expected_us(std::string_view case_text, std::uint64_t elements) const;

  bool empty() const { return kinds_.empty(); }
  bool operator==(const LearnedCosts&) const = default;

  // The sums as sum lines (store/sum_lines.h). Several texts can be added up.
  std::string text() const;
  // Adds the sums that text() wrote. An error if the text is damaged; a part may then be added.
  Status add_text(std::string_view text);

 private:
  static constexpr std::size_t kSteps = 24;
  struct Sums {
    std::int64_t cases = 0;
    std::int64_t took_us = 0;

    bool operator==(const Sums&) const = default;
  };

  static std::size_t step_of(std::uint64_t elements);
  Status add_line(std::string_view line);

  // The key is "API<tab>dtype".
  std::unordered_map<std::string, std::array<Sums, kSteps>> kinds_;
};

}  // namespace assay
