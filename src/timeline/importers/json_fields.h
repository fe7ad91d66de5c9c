#pragma once

// Fields of JSON that another program wrote.

#include <nlohmann/json.hpp>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

// The whole number under `key` of an object; kNone where it has none.
inline std::int64_t whole(const nlohmann::json& object, const char* key) {
  const auto field = object.find(key);
  return field != object.end() && field->is_number() ? field->get<std::int64_t>() : kNone;
}

// The whole numbers of a list; none of something else.
inline std::vector<std::int32_t> whole_numbers(const nlohmann::json& list) {
  std::vector<std::int32_t> numbers;
  if (!list.is_array()) return numbers;
  for (const nlohmann::json& one : list) {
    if (one.is_number_integer()) numbers.push_back(one.get<std::int32_t>());
  }
  return numbers;
}

}  // namespace assay::timeline
