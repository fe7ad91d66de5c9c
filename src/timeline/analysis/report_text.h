#pragma once

// How tables on a terminal shorten what is long, and how JSON shows what is unknown.

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "timeline/model.h"

namespace assay::timeline {

inline constexpr std::size_t kMaxRows = 10;

inline std::string short_name(const std::string& name) {
  constexpr std::size_t kMaxName = 60;
  if (name.size() <= kMaxName) return name;
  // Do not cut within a UTF-8 character.
  std::size_t cut = kMaxName - 3;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xc0U) == 0x80U) --cut;
  return name.substr(0, cut) + "...";
}

// null for an unknown number.
inline nlohmann::ordered_json known(std::int64_t number) {
  return number == kNone ? nlohmann::ordered_json() : nlohmann::ordered_json(number);
}

// What `make` makes of each.
template <typename Range, typename Make>
nlohmann::ordered_json json_list(const Range& range, Make make) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& one : range) list.push_back(make(one));
  return list;
}

// "1, 2, 3", or the first `most` of more.
template <typename T>
std::string listed(const std::vector<T>& values, std::size_t most = 8,
                   std::string_view dots = "…") {
  const auto first = std::span(values).first(std::min(values.size(), most));
  const std::string rest =
      values.size() > most ? fmt::format(", {} ({} in all)", dots, values.size()) : "";
  return fmt::format("{}{}", fmt::join(first, ", "), rest);
}

// The table behind a blank line; "" without a row.
inline std::string section(const Table& table, std::size_t most = kMaxRows) {
  const std::string text = table.text(most);
  return text.empty() ? text : '\n' + text;
}

}  // namespace assay::timeline
