#pragma once

// The known word that is nearest to a wrong one, however far: a refusal always names it.

#include <string_view>

#include "case/nearest.h"

namespace assay {

// The first of equals wins; empty only where nothing is known.
template <typename Range>
std::string_view nearest_word(std::string_view word, const Range& known) {
  std::string_view best;
  std::size_t limit = static_cast<std::size_t>(-2);
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

}  // namespace assay
