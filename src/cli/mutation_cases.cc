#include "cli/mutation_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/atomic_file.h"
#include "case/canonical.h"
#include "case/corpus.h"
#include "schedule/cost.h"

namespace assay {
namespace {

// A lane plants faults in Python, element by element.
constexpr std::uint64_t kSmall = 4096;
constexpr std::uint64_t kLargest = 1 << 17;  // larger cases run under usual values only

// Sorts the cases of an API: small ones first by the draw, then larger ones by size.
using Rank = std::pair<std::uint64_t, std::uint64_t>;
using Candidates = std::map<std::string, std::set<std::pair<Rank, std::string>>>;

bool holds_a_fault(const Case& found) {
  return std::ranges::none_of(found.tensors(),
                              [](const TensorSpec& tensor) { return tensor.elements() == 0; });
}

Status take(std::string_view line, std::uint64_t seed, Case& scratch, Candidates& candidates) {
  (void)parse_line(line, scratch, [&](const Case& found) {
    const std::uint64_t elements = estimate_cost(found).elements;
    if (!holds_a_fault(found) || elements > kLargest) return;
    std::string text;
    append_canonical(found, text);
    const Rank rank{elements > kSmall ? elements : 0, case_id(fmt::format("{} {}", seed, text))};
    candidates[std::string(found.api())].emplace(rank, std::move(text));
  });
  return {};
}

}  // namespace

Result<std::vector<std::string>> choose_cases_of_apis(const std::vector<std::string>& patterns,
                                                      std::uint64_t seed, std::uint32_t each) {
  Candidates candidates;
  Case scratch;
  ASSAY_CHECK(each_corpus_line(patterns, [&](const auto&, const CorpusLine& line) {
    return take(line.text, seed, scratch, candidates);
  }));
  std::vector<std::string> chosen;
  for (const auto& [api, of_api] : candidates) {
    std::uint32_t left = each;
    for (const auto& [rank, text] : of_api) {
      if (left-- == 0) break;
      chosen.push_back(text);
    }
  }
  if (chosen.empty())
    return usage_error(
        "the corpus has no case of at most 131,072 elements: --api_config_file names another");
  return chosen;
}

Status use_cases(const std::vector<std::string>& cases, RunConfig& config) {
  ASSAY_CHECK(make_folder(config.folder));
  const std::filesystem::path file = config.folder / "cases.txt";
  config.sources = {{}, {file.string()}};
  return write_file(file, fmt::format("{}\n", fmt::join(cases, "\n")));
}

}  // namespace assay
