#pragma once

// Values that may be missing or malformed.

#include <charconv>
#include <string_view>

namespace assay {

// Reads the whole text as a number, without blanks. False if it is none.
template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// The value under a key, or `otherwise`.
template <typename Map>
auto value_at(const Map& map, const typename Map::key_type& key,
              const typename Map::mapped_type& otherwise = {}) -> Map::mapped_type {
  const auto found = map.find(key);
  return found == map.end() ? otherwise : found->second;
}

}  // namespace assay
