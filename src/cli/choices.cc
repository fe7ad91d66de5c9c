#include "cli/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"

namespace assay {

Status check_choice(std::string_view flag, std::span<const std::string_view> known,
                    std::string_view text) {
  if (std::ranges::find(known, text) != known.end()) return {};
  return usage_error(fmt::format("{} takes one of {}, not {}{}", flag, fmt::join(known, ", "), text,
                                 suggest(text, known)));
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
