#include "slot/kernel_support.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "case/parser.h"

namespace assay {
namespace {

// Cases with more estimated memory than this are expensive: to make inputs for nothing costs more
// than to wait.
constexpr std::uint64_t kExpensiveBytes = std::uint64_t{4} << 20;
// A new kind is tried unfilled if more than this part of a dtype's kinds has no kernel: to make the
// inputs of a giant case takes longer than the call that shows it.
constexpr std::uint64_t kLikelyPart = 8;

// The dtype that an argument names: by a dtype or by its name.
std::optional<DType> named_dtype(const Value& value) {
  if (value.is(ValueKind::dtype)) return value.dtype();
  if (value.is(ValueKind::string)) return find_dtype(value.text());
  return std::nullopt;
}

// The dtypes of the tensors in a kind, each once.
std::vector<std::string> dtypes_of(std::string_view kind) {
  std::vector<std::string> dtypes = split_at(kind.substr(0, kind.find(',')), ' ');
  dtypes.erase(dtypes.begin());  // the API
  std::sort(dtypes.begin(), dtypes.end());
  dtypes.erase(std::unique(dtypes.begin(), dtypes.end()), dtypes.end());
  return dtypes;
}

}  // namespace

wire::Start KernelSupport::start(const wire::JobT& job) {
  const std::string kind = kind_of(job.test_case.text, scratch_);
  if (kind.empty()) return wire::Start::together;
  const bool expensive = job.test_case.bytes > kExpensiveBytes;
  const auto known = kinds_.find(kind);
  const bool in_doubt = known == kinds_.end() ? expensive : known->second != Known::able;
  if (!in_doubt) return wire::Start::together;
  const bool unfilled = expensive && (known != kinds_.end() || may_lack_kernel(kind));
  return unfilled ? wire::Start::test_lane_unfilled : wire::Start::test_lane_first;
}

// For a kind that is new.
bool KernelSupport::may_lack_kernel(const std::string& kind) const {
  const std::vector<std::string> dtypes = dtypes_of(kind);
  return std::any_of(dtypes.begin(), dtypes.end(), [&](const std::string& dtype) {
    const auto kinds = dtypes_.find(dtype);
    return kinds == dtypes_.end() || kLikelyPart * kinds->second.unable > kinds->second.all;
  });
}

void KernelSupport::learn(const wire::JobT& job, const LaneResult& ending) {
  if (ending.blame == wire::Status::skipped) return;
  const std::string kind = kind_of(job.test_case.text, scratch_);
  if (kind.empty()) return;
  const bool overdue = ending.blame == wire::Status::timed_out;
  const Known now = overdue ? Known::overdue : is_unable(ending) ? Known::unable : Known::able;
  const auto [known, is_new] = kinds_.try_emplace(kind, now);
  const Known before = std::exchange(known->second, now);
  if (!is_new && before == now) return;
  for (const std::string& dtype : dtypes_of(kind)) {
    KindsOf& kinds = dtypes_[dtype];
    if (is_new) ++kinds.all;
    if (!is_new && before == Known::unable) --kinds.unable;
    if (now == Known::unable) ++kinds.unable;
  }
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
