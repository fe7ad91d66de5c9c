#pragma once

// What cases have taken so far, by kinds of cases: so a plan knows what to expect without reading
// millions of verdicts.
//
// A kind is an API, the dtype of the first tensor and a step of size. Cases of one kind differ by a
// factor of four in their elements at most, and count by their mean. A case that took long is kept
// out of the sums: stores know those one by one.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace assay {

// From so many microseconds on a case is expected to take what it took itself. A case as expensive
// as half a bundle decides alone where it stands among the others; there are few of them.
inline constexpr std::int64_t kExpensiveUs = 1'000'000;

class LearnedCosts {
 public:
  // A case took so long; 0: not known. `elements` as the plan estimates them.
  void add(std::string_view api, std::string_view dtype, std::uint64_t elements,
           std::uint64_t took_us);
  // What a case of this kind takes on average; nullopt: there was none.
  std::optional<std::int64_t> expected_us(std::string_view case_text, std::uint64_t elements) const;

  bool empty() const { return kinds_.empty(); }
  bool operator==(const LearnedCosts&) const = default;

  // As stores keep it (store/sum_lines.h); texts of several add up.
  std::string text() const;
  // An error: it is damaged, and part of it may be added.
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

  // By "API<tab>dtype".
  std::unordered_map<std::string, std::array<Sums, kSteps>> kinds_;
};

}  // namespace assay
