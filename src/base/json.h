#pragma once

// Reads and writes JSON.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace assay {

// No JSON that assay reads is deeper. nlohmann's dump(), copies and comparisons recurse.
inline constexpr std::size_t kDeepestJson = 100;

// The value; discarded (is_discarded()) where the text is no JSON or nests deeper.
nlohmann::json parse_json(std::string_view text);

// The value as text, with one line for each entry if `indent` is not negative. Bytes that are not
// UTF-8 are replaced.
std::string dumped(const nlohmann::json& value, int indent = -1);
std::string dumped(const nlohmann::ordered_json& value, int indent = -1);

// The text under `key` of an object; empty where it has none or something else.
inline std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace assay
