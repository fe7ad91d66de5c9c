#pragma once

// Suggestions for misspelt names.

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Optimal string alignment distance in bytes: insertions, deletions, replacements and swaps of
// neighbours. Returns limit + 1 for any distance above `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// Returns the member of `known` (a range of strings) nearest to `word`, within `limit`; empty if
// there is none. Of equally near ones the first wins.
template <typename Range>
std::string_view nearest_within(std::size_t limit, std::string_view word, const Range& known) {
  std::string_view best;
  for (const auto& candidate : known) {
    const std::string_view name = candidate;
    const std::size_t distance = edit_distance(word, name, limit);
    if (distance > limit) continue;
    best = name;
    if (distance == 0) break;
    limit = distance - 1;
  }
  return best;
}

// The same with a limit of a third of the word, but at least one character.
template <typename Range>
std::string_view nearest(std::string_view word, const Range& known) {
  return nearest_within(word.size() < 6 ? 1 : word.size() / 3, word, known);
}

// Returns "; did you mean 'NAME'?" for the end of an error message, or "".
template <typename Range>
std::string suggest(std::string_view word, const Range& known) {
  const std::string_view name = nearest(word, known);
  return name.empty() ? std::string() : "; did you mean '" + std::string(name) + "'?";
}

}  // namespace assay
