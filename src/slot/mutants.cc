#include "slot/mutants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "case/canonical.h"

namespace assay {

std::vector<std::string> mutants_of(const wire::CaseSettingsT& settings, std::uint64_t id) {
  std::vector<std::string> chosen{""};
  if (settings.mutants.empty()) return chosen;
  const std::uint32_t share = std::max(1U, settings.mutants_share);
  for (const std::string& name : split_at(settings.mutants, ',')) {
    // The hash of case ids serves as the random draw.
    const std::uint64_t draw = case_id(fmt::format("{} {} {}", settings.seed, id, name));
    if (!name.empty() && draw % share == 0) chosen.push_back(name);
  }
  return chosen;
}

}  // namespace assay
