#include "wire/listed_values.h"

#include <cstring>

#include "wire/messages_generated.h"

namespace assay::wire {
namespace {

// Makes the list empty and zeroes its elements.
void clear(flatbuffers::Vector<double>& values) {
  const std::size_t size = sizeof(flatbuffers::uoffset_t) + values.size() * sizeof(double);
  std::memset(reinterpret_cast<std::uint8_t*>(&values), 0, size);
}

void clear_inputs(LaneRecord& lane) {
  auto* inputs = lane.mutable_inputs();
  for (flatbuffers::uoffset_t i = 0; inputs != nullptr && i < inputs->size(); ++i) {
    auto* values = inputs->GetMutableObject(i)->mutable_literal();
    if (values != nullptr && values->size() > kFewListed) clear(*values);
  }
}

}  // namespace

Bytes without_listed_values(std::span<const std::uint8_t> record) {
  Bytes bytes(record.begin(), record.end());
  auto* trials = flatbuffers::GetMutableRoot<Record>(bytes.data())->mutable_trials();
  for (flatbuffers::uoffset_t i = 0; trials != nullptr && i < trials->size(); ++i) {
    auto* lanes = trials->GetMutableObject(i)->mutable_lanes();
    for (flatbuffers::uoffset_t k = 0; lanes != nullptr && k < lanes->size(); ++k) {
      clear_inputs(*lanes->GetMutableObject(k));
    }
  }
  return bytes;
}

}  // namespace assay::wire
