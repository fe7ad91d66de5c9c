#include "chain/script/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace assay::chain::script {
namespace {

bool has_heading(std::string_view word) { return word.find("===") != std::string_view::npos; }

// "key=lite_train=1|whole_train=8", after the key: parts of which each names a value.
bool has_mode_list(std::string_view word) {
  const std::vector<std::string> parts = split_at(word, '|');
  return parts.size() > 1 && std::ranges::all_of(parts, [](std::string_view part) {
           const std::size_t equals = part.find('=');
           return equals != std::string_view::npos && equals > 0 && equals + 1 < part.size();
         });
}

}  // namespace

std::vector<std::string> doubts_about(const plan::Plan& plan) {
  std::vector<std::string> doubts;
  for (const plan::Stage& stage : plan.stages) {
    for (const std::string& word : stage.argv) {
      const char* what = has_heading(word)     ? "a heading of the file"
                         : has_mode_list(word) ? "a list of modes"
                                               : nullptr;
      if (what == nullptr) continue;
      doubts.push_back(
          fmt::format("{}: the script passes {} on as a value: `{}`", stage.name, what, word));
      break;
    }
  }
  return doubts;
}

}  // namespace assay::chain::script
