#pragma once

// Parses JSON that somebody else wrote.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/text.h"

namespace assay {

// No JSON that assay reads is deeper. nlohmann's dump(), copies and comparisons recurse.
inline constexpr std::size_t kDeepestJson = 100;

// The value; discarded (is_discarded()) where the text is no JSON or nests deeper.
inline nlohmann::json parse_json(std::string_view text) {
  if (nests_deeper(text, kDeepestJson)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// The text under `key` of an object; empty where it has none or something else.
inline std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace assay
