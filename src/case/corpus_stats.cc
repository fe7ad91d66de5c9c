// The page of `assay corpus stats`.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include "case/corpus_tools.h"

namespace assay {
namespace {

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

struct Sums {
  std::uint64_t cases = 0;
  std::unordered_set<CaseId> ids;
  std::map<std::string, std::vector<std::uint64_t>, std::less<>> elements;  // of the cases by API
  Counts arguments;                       // cases that name an argument, by its name
  Counts dtypes;                          // cases with a tensor of the dtype
  Counts ranks;                           // tensors
  Counts layouts;                         // tensors
  std::array<std::uint64_t, 21> sizes{};  // cases by the digits of their elements

  void add(const CorpusCase& found);
};

void count(Counts& counts, std::string_view name) {
  const auto place = counts.find(name);
  if (place != counts.end()) {
    ++place->second;
  } else {
    counts.emplace(name, 1);
  }
}

void Sums::add(const CorpusCase& found) {
  const Case& parsed = found.parsed;
  ++cases;
  if (!ids.insert(found.id).second) return;  // the rest is about distinct cases
  const std::uint64_t all = parsed.total_elements();
  const auto api = elements.find(parsed.api());
  (api != elements.end() ? api : elements.emplace(parsed.api(), std::vector<std::uint64_t>()).first)
      ->second.push_back(all);
  ++sizes[all == 0 ? 0 : static_cast<std::size_t>(std::log10(static_cast<double>(all))) + 1];
  for (const Argument argument : parsed.arguments()) {
    if (!argument.keyword.empty()) count(arguments, argument.keyword);
  }
  std::array<bool, kDTypes.size()> seen{};
  for (const TensorSpec& tensor : parsed.tensors()) {
    seen[static_cast<std::size_t>(tensor.dtype)] = true;
    count(ranks, std::to_string(tensor.shape.size()));
    if (tensor.elements() == 0) count(layouts, "empty");
    if (!tensor.strides.empty()) count(layouts, "strided");
  }
  for (const DTypeInfo& dtype : kDTypes) {
    if (seen[static_cast<std::size_t>(dtype.dtype)]) count(dtypes, dtype.name);
  }
}

// The largest numbers first, equal ones by name.
std::vector<std::pair<std::string, std::uint64_t>> sorted(const Counts& counts, std::size_t most) {
  std::vector<std::pair<std::string, std::uint64_t>> rows(counts.begin(), counts.end());
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.second; });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

void add_table(std::string& page, std::string_view title, std::string_view unit,
               const Counts& counts, std::size_t most) {
  if (counts.empty()) return;
  page += fmt::format("\n## {}\n\n| name | {} |\n|---|---:|\n", title, unit);
  for (const auto& [name, number] : sorted(counts, most)) {
    page += fmt::format("| `{}` | {} |\n", name, number);
  }
  if (counts.size() > most) page += fmt::format("\n{} more.\n", counts.size() - most);
}

void add_apis(std::string& page, Sums& sums, std::size_t most) {
  Counts counts;
  for (const auto& [api, elements] : sums.elements) counts[api] = elements.size();
  page += "\n## APIs\n\n| API | cases | median elements | most elements |\n|---|---:|---:|---:|\n";
  for (const auto& [api, number] : sorted(counts, most)) {
    std::vector<std::uint64_t>& elements = sums.elements[api];
    const auto middle = elements.begin() + static_cast<std::ptrdiff_t>(elements.size() / 2);
    std::ranges::nth_element(elements, middle);
    page += fmt::format("| `{}` | {} | {} | {} |\n", api, number, *middle,
                        *std::ranges::max_element(elements));
  }
  if (counts.size() > most) page += fmt::format("\n{} more.\n", counts.size() - most);
}

void add_sizes(std::string& page, const Sums& sums) {
  page += "\n## Sizes\n\n| elements of all tensors of a case | cases |\n|---|---:|\n";
  for (std::size_t digits = 0; digits < sums.sizes.size(); ++digits) {
    if (sums.sizes[digits] == 0) continue;
    const std::string range = digits == 0   ? "0"
                              : digits == 1 ? "1 to 9"
                                            : fmt::format("1e{} to 1e{}", digits - 1, digits);
    page += fmt::format("| {} | {} |\n", range, sums.sizes[digits]);
  }
}

}  // namespace

Result<std::string> corpus_page(const std::vector<std::string>& patterns, std::size_t most) {
  Sums sums;
  ASSAY_TRY(const CorpusReading reading,
            each_case(patterns, [&](const CorpusCase& found) { sums.add(found); }));
  std::string page = fmt::format("# {} cases of {} APIs\n\n{} calls, {} lines that do not parse.\n",
                                 sums.ids.size(), sums.elements.size(), sums.cases, reading.failed);
  add_apis(page, sums, most);
  add_table(page, "Arguments by name", "cases", sums.arguments, most);
  add_table(page, "Dtypes", "cases", sums.dtypes, most);
  add_table(page, "Dimensions", "tensors", sums.ranks, most);
  add_table(page, "Layouts", "tensors", sums.layouts, most);
  add_sizes(page, sums);
  return page;
}

}  // namespace assay
