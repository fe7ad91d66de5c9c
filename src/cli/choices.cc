#include "cli/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "base/nearest.h"
#include "base/values.h"

namespace assay {

Status check_choice(std::string_view flag, std::span<const std::string_view> known,
                    std::string_view text) {
  if (std::ranges::find(known, text) != known.end()) return {};
  return usage_error(fmt::format("{} takes one of {}, not {}{}", flag, fmt::join(known, ", "), text,
                                 suggest(text, known)));
}

CLI::Validator not_empty() {
  return {
      [](const std::string& text) { return text.empty() ? "the value is empty" : std::string(); },
      ""};
}

CLI::Validator whole_number() {
  const auto check = [](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    if (read_number(text, number)) return {};
    return fmt::format("takes a whole number from 0 to 2^64 - 1, not {}", text);
  };
  return {check, ""};
}

std::optional<double> read_seconds(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const int factor = unit.empty() || unit == "s"    ? 1
                     : unit == "m" || unit == "min" ? 60
                     : unit == "h"                  ? 3600
                                                    : 0;
  if (code != std::errc() || factor == 0) return std::nullopt;
  return number * factor;
}

CLI::Validator seconds() {
  const auto read = [](std::string& text) -> std::string {
    const auto found = read_seconds(text);
    if (!found) return fmt::format("takes seconds, or a number with s, min or h, not {}", text);
    text = fmt::format("{}", *found);
    return {};
  };
  return {read, ""};
}

Result<Outcome> chosen_outcome(std::string_view flag, const std::string& text) {
  if (const auto outcome = find_outcome(text)) return *outcome;
  std::vector<std::string_view> known;
  known.reserve(kOutcomes.size());
  for (const OutcomeInfo& outcome : kOutcomes) known.push_back(outcome.name);
  return usage_error(fmt::format("{}: no outcome is called {}; known: {}{}", flag, text,
                                 fmt::join(known, " "), suggest(text, known)));
}

}  // namespace assay
