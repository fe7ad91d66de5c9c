#include "store/learned_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "case/case_traits.h"
#include "store/sum_lines.h"

namespace assay {
namespace {

std::string kind_of(std::string_view api, std::string_view dtype) {
  std::string kind = as_field(api);
  kind += kBetweenFields;
  kind += as_field(dtype);
  return kind;
}

}  // namespace

// Step 0: up to 1 element; step 1: 2 to 7; step 2: 8 to 31; and so on.
std::size_t LearnedCosts::step_of(std::uint64_t elements) {
  return std::min<std::size_t>(std::bit_width(elements) / 2, kSteps - 1);
}

void LearnedCosts::add(std::string_view api, std::string_view dtype, std::uint64_t elements,
                       std::uint64_t took_us) {
  if (took_us == 0 || took_us >= kExpensiveUs) return;
  Sums& sums = kinds_[kind_of(api, dtype)][step_of(elements)];
  ++sums.cases;
  sums.took_us += static_cast<std::int64_t>(took_us);
}

std::optional<std::int64_t> LearnedCosts::expected_us(std::string_view case_text,
                                                      std::uint64_t elements) const {
  const auto found = kinds_.find(kind_of(api_of(case_text), first_dtype(case_text)));
  if (found == kinds_.end()) return std::nullopt;
  const Sums& sums = found->second[step_of(elements)];
  if (sums.cases <= 0) return std::nullopt;
  return std::max<std::int64_t>(sums.took_us / sums.cases, 1);
}

std::string LearnedCosts::text() const {
  std::string text;
  for (const auto& [kind, steps] : kinds_) {
    for (std::size_t step = 0; step < steps.size(); ++step) {
      if (steps[step].cases == 0) continue;
      fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\n", kind, step, steps[step].cases,
                     steps[step].took_us);
    }
  }
  return text;
}

Status LearnedCosts::add_line(std::string_view line) {
  LineFields fields(line);
  const std::string_view api = fields.next();
  const std::string_view dtype = fields.next();
  const auto step = static_cast<std::uint64_t>(fields.number());
  const std::int64_t cases = fields.number();
  const std::int64_t took_us = fields.number();
  if (!fields.good() || step >= kSteps) {
    return fail(fmt::format("the learned costs of this run are damaged: “{}”", line.substr(0, 80)));
  }
  Sums& sums = kinds_[kind_of(api, dtype)][step];
  sums.cases += cases;
  sums.took_us += took_us;
  return {};
}

Status LearnedCosts::add_text(std::string_view text) {
  return each_line(text, [this](std::string_view line) { return add_line(line); });
}

}  // namespace assay
