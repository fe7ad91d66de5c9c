#include "slot/abilities.h"

#include <optional>

#include "case/parser.h"

namespace assay {
namespace {

// Of estimated memory: above it making inputs and computing cost more than waiting.
constexpr std::uint64_t kDearBytes = std::uint64_t{4} << 20;

// The dtype that an argument names, in whatever form.
std::optional<DType> named_dtype(const Value& value) {
  if (value.is(ValueKind::dtype)) return value.dtype();
  if (value.is(ValueKind::string)) return find_dtype(value.text());
  return std::nullopt;
}

}  // namespace

bool Abilities::in_doubt(const SlotJob& job) const {
  if (job.kind.empty()) return false;
  const auto known = can_.find(job.kind);
  return known == can_.end() ? job.bytes > kDearBytes : !known->second;
}

void Abilities::learn(const SlotJob& job, const Ending& ending) {
  if (!job.kind.empty()) can_.insert_or_assign(job.kind, !is_unable(ending));
}

std::string kind_of(std::string_view text, Case& scratch) {
  if (!parse_case(text, scratch)) return {};
  std::string kind(scratch.api());
  const auto add = [&](DType dtype) { kind.append(1, ' ').append(name(dtype)); };
  for (const TensorSpec tensor : scratch.tensors()) add(tensor.dtype);
  kind += ',';
  for (const Argument& argument : scratch.arguments()) {
    if (const auto dtype = named_dtype(argument.value)) add(*dtype);
  }
  return kind;
}

}  // namespace assay
