#pragma once

// "Did you mean …?": the known name that is nearest to a misspelt one.

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// How many insertions, deletions, replacements and swaps of neighbouring characters (bytes) turn
// `a` into `b`: the optimal string alignment distance. Gives limit + 1 for anything above `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// The member of `known` (a range of strings) that is nearest to `word`, at most `limit` away; empty
// when none is. The first of equals wins.
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

// At most a third of the word may differ, but always one character.
template <typename Range>
std::string_view nearest(std::string_view word, const Range& known) {
  return nearest_within(word.size() < 6 ? 1 : word.size() / 3, word, known);
}

// "; did you mean 'NAME'?" or nothing, to end an error message with.
template <typename Range>
std::string suggest(std::string_view word, const Range& known) {
  const std::string_view name = nearest(word, known);
  return name.empty() ? std::string() : "; did you mean '" + std::string(name) + "'?";
}

}  // namespace assay
