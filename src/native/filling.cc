#include "native/filling.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "fill/filled.h"
#include "native/module_state.h"

namespace assay::native {
namespace {

// Upstream gradients take tensor numbers of their own, above those of any case.
constexpr std::uint32_t kUpstream = 1U << 31;
// More values than these (16 MB) are not repeated in the record: `assay repro` says so then.
constexpr std::size_t kMostListed = std::size_t{1} << 21;

// Keeps how an input was filled, and the checksum of its bytes, which is worked out if it is not
// known yet.
Status record_filling(ModuleState& state, const Target& target, const FillRule& rule,
                      std::vector<double> literal = {}, std::optional<std::uint64_t> known = {}) {
  if (target.tensor >= state.fillings.size()) return {};
  std::uint64_t& sum = state.checksums.emplace_back(known.value_or(KeptReplies::kToCome));
  state.fillings[target.tensor] = {rule, std::move(literal), &sum};
  const std::span<std::byte> memory = target.memory();
  // What an earlier run of the case had is gone by now.
  std::erase_if(state.filled,
                [&](const FilledTensor& filled) { return filled.tensor == target.tensor; });
  state.filled.push_back({target.tensor, memory});
  if (known) return {};
  return state.device->checksum(memory.data(), memory.size(), &sum);
}

Status fill_by_rule(ModuleState& state, const Target& target, const FillRule& rule,
                    std::uint32_t tensor) {
  FillKey key = state.key;
  key.tensor = tensor;
  return state.device->fill(rule, key, target.type(), target.memory().data(),
                            static_cast<std::uint64_t>(target.count), 0);
}

}  // namespace

PyObject* fill_tensor(PyObject* module, PyObject* arguments) {
  Target target;
  int kind = -1;
  FillRule rule;
  long long extent = 0;
  if (!PyArg_ParseTuple(arguments, "IKni|iddL", &target.tensor, &target.pointer, &target.count,
                        &target.dtype, &kind, &rule.low, &rule.high, &extent)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill: bad dtype or count"});
  if (kind > static_cast<int>(kLastFillKind)) return raise(Error{"fill: no such kind"});
  rule.kind = static_cast<FillKind>(kind);
  rule.extent = extent;
  if (kind < 0) rule = default_rule(target.type());
  ModuleState& state = state_of(module);
  if (state.device->is_host()) {
    FillKey key = state.key;
    key.tensor = target.tensor;
    const std::uint64_t sum = fill_and_sum(rule, key, target.type(), target.memory());
    const Status kept = record_filling(state, target, rule, {}, sum);
    return kept ? none() : raise(kept.error());
  }
  Status filled = fill_by_rule(state, target, rule, target.tensor);
  if (filled) filled = record_filling(state, target, rule);
  return filled ? none() : raise(filled.error());
}

PyObject* fill_literal(PyObject* module, PyObject* arguments) {
  Target target;
  const char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(arguments, "IKniy#", &target.tensor, &target.pointer, &target.count,
                        &target.dtype, &bytes, &size)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill_literal: bad dtype or count"});
  std::vector<double> values(static_cast<std::size_t>(target.count));
  if (static_cast<std::size_t>(size) != values.size() * sizeof(double)) {
    return raise(Error{"fill_literal: another number of values than elements"});
  }
  std::memcpy(values.data(), bytes, static_cast<std::size_t>(size));
  ModuleState& state = state_of(module);
  std::vector<std::byte> listed(target.memory().size());
  fill_values(values, target.type(), listed);
  if (values.size() > kMostListed) values.clear();
  Status filled = state.device->copy(target.memory().data(), listed.data(), listed.size());
  if (filled) filled = record_filling(state, target, {}, std::move(values));
  return filled ? none() : raise(filled.error());
}

PyObject* fill_upstream(PyObject* module, PyObject* arguments) {
  Target target;
  FillRule rule;
  if (!PyArg_ParseTuple(arguments, "IKnid", &target.tensor, &target.pointer, &target.count,
                        &target.dtype, &rule.high)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill_upstream: bad dtype or count"});
  rule.low = -rule.high;
  const Status filled = fill_by_rule(state_of(module), target, rule, kUpstream + target.tensor);
  return filled ? none() : raise(filled.error());
}

}  // namespace assay::native
