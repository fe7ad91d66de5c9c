#pragma once

// Order statistics of a few values.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace assay {

// The value with this index in sorted order; the index is less than the number of values.
template <typename T>
T ranked(std::vector<T> values, std::size_t index) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Of two values in the middle, these take the less or the greater one. 0 of no values.
template <typename T>
T lower_median(std::vector<T> values) {
  const std::size_t count = values.size();
  return count == 0 ? T{} : ranked(std::move(values), (count - 1) / 2);
}
template <typename T>
T upper_median(std::vector<T> values) {
  const std::size_t count = values.size();
  return count == 0 ? T{} : ranked(std::move(values), count / 2);
}

// The smallest value with at least this percentage of the values at or below it (nearest rank).
// 0 of no values.
template <typename T>
T percentile(std::vector<T> values, std::size_t percent) {
  const std::size_t place = (values.size() * percent + 99) / 100;
  return values.empty() ? T{} : ranked(std::move(values), std::max<std::size_t>(place, 1) - 1);
}

// Of two values in the middle, the mean. 0 of no values.
inline double median_of(const std::vector<double>& values) {
  if (values.size() % 2 == 1) return upper_median(values);
  return (lower_median(values) + upper_median(values)) / 2;
}

}  // namespace assay
