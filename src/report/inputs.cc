#include "report/inputs.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/values.h"
#include "fill/numbers.h"

namespace assay {
namespace {

bool ran(const wire::Trial& trial) { return trial.lanes() != nullptr && trial.lanes()->size() > 0; }

// The shortest text that reads back as this number.
template <typename Real>
std::string real_text(Real number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
std::string python_number(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return fmt::format(
        "{}",
        static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return real_text(value);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return value.code != 0 ? "True" : "False";
  } else if constexpr (requires { value.imaginary; }) {
    return fmt::format("complex({}, {})", real_text(value.real), real_text(value.imaginary));
  } else {
    return real_text(widen(value));
  }
}

// The values that the record lists for a tensor; usually none.
std::span<const double> listed_values(const wire::Filling* filling) {
  if (filling == nullptr || filling->literal() == nullptr) return {};
  return {filling->literal()->data(), filling->literal()->size()};
}

// A run drops long lists of values from the records of cases that pass.
Status check_kept(const wire::Filling* filling) {
  if (filling == nullptr || filling->literal() == nullptr || filling->literal()->size() > 0) {
    return {};
  }
  return fail(
      "a run keeps long lists of input values only if the case fails; write them with assay api "
      "--api_config='…' --use_dump=True");
}

Result<FillRule> rule_of(const wire::Filling* filling, DType dtype) {
  if (filling == nullptr) return default_rule(dtype);
  if (filling->kind() > static_cast<std::uint8_t>(kLastFillKind)) {
    return fail(
        fmt::format("the record has a value rule {} that this assay does not know; use the "
                    "assay that made the run",
                    filling->kind()));
  }
  return FillRule{static_cast<FillKind>(filling->kind()), filling->low(), filling->high(),
                  filling->extent()};
}

}  // namespace

Result<std::uint64_t> run_seed(const std::map<std::string, std::string>& properties) {
  std::uint64_t seed = 0;
  const std::string text = value_at(properties, "seed", "0");
  if (read_number(text, seed)) return seed;
  return fail(fmt::format("the run's seed is not a number: {}", text));
}

bool has_lanes(const wire::Record& record) {
  if (record.trials() == nullptr) return false;
  for (const wire::Trial* trial : *record.trials()) {
    if (ran(*trial)) return true;
  }
  return false;
}

const wire::Trial& trial_under(const wire::Record& record, std::string_view values) {
  const wire::Trial* first = nullptr;
  for (const wire::Trial* trial : *record.trials()) {
    if (!ran(*trial)) continue;
    if (trial->values() != nullptr && trial->values()->string_view() == values) return *trial;
    if (first == nullptr) first = trial;
  }
  return *first;
}

const wire::Filling* filling_of(const wire::Trial& trial, std::size_t tensor) {
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    if (lane->inputs() == nullptr || lane->inputs()->size() == 0) continue;
    if (tensor >= lane->inputs()->size()) return nullptr;
    // A lane that raised while it built the inputs reports the remaining ones without a checksum.
    const wire::Filling* filling = lane->inputs()->Get(static_cast<std::uint32_t>(tensor));
    return filling->checksum() == 0 ? nullptr : filling;
  }
  return nullptr;
}

Status fill_again(const wire::Filling* filling, const FillKey& key, DType dtype,
                  std::span<std::byte> out) {
  if (const auto listed = listed_values(filling); !listed.empty()) {
    if (listed.size() * size_of(dtype) != out.size()) {
      return fail("the record lists values for another shape");
    }
    fill_values(listed, dtype, out);
    return {};
  }
  ASSAY_CHECK(check_kept(filling));
  ASSAY_TRY(const FillRule rule, rule_of(filling, dtype));
  fill(rule, key, dtype, out);
  return {};
}

Status fill_element_again(const wire::Filling* filling, const FillKey& key, DType dtype,
                          std::uint64_t index, std::span<std::byte> out) {
  if (const auto listed = listed_values(filling); !listed.empty()) {
    if (index >= listed.size()) return fail("the record lists values for another shape");
    fill_values(listed.subspan(index, 1), dtype, out);
    return {};
  }
  ASSAY_CHECK(check_kept(filling));
  ASSAY_TRY(const FillRule rule, rule_of(filling, dtype));
  fill(rule, key, dtype, out, index);
  return {};
}

std::vector<std::string> python_numbers(DType dtype, std::span<const std::byte> elements) {
  std::vector<std::string> numbers;
  visit(dtype, [&](auto type) {
    using T = decltype(type)::type;
    for (std::size_t at = 0; at + sizeof(T) <= elements.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, elements.data() + at, sizeof value);
      numbers.push_back(python_number(value));
    }
  });
  return numbers;
}

}  // namespace assay
