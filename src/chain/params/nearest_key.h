#pragma once

// The known word that is nearest to a wrong one, however far: a refusal always names it.

#include <string_view>

#include "case/nearest.h"

namespace assay::chain::params {

// The first of equals wins; empty only where nothing is known.
template <typename Range>
std::string_view nearest_word(std::string_view word, const Range& known) {
  return nearest_within(static_cast<std::size_t>(-2), word, known);
}

}  // namespace assay::chain::params
