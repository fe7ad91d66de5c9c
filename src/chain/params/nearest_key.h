#pragma once

#include <string_view>

#include "base/nearest.h"

namespace assay::chain::params {

// The known word nearest to a wrong one, at any distance, so that every error can name one. Of
// equally near words the first wins; empty only if `known` is.
template <typename Range>
std::string_view nearest_word(std::string_view word, const Range& known) {
  return nearest_within(static_cast<std::size_t>(-2), word, known);
}

}  // namespace assay::chain::params
