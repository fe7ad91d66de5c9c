#include "timeline/writers/args_text.h"

#include <fmt/format.h>

#include "timeline/input/args_store.h"

namespace assay::timeline {

std::string args_text(const Trace& trace, const Slice& slice) {
  if (slice.detail == kNoIndex) return {};
  const Detail& detail = trace.details[slice.detail];
  if (detail.args_size > 0) {
    const auto store = detail.args_at >> ArgsStore::kStoreShift;
    const std::uint64_t at = detail.args_at & ((std::uint64_t{1} << ArgsStore::kStoreShift) - 1);
    return store < trace.args.size() ? trace.args[store]->read(at, detail.args_size)
                                     : std::string();
  }
  if (detail.correlation == 0) return {};
  return detail.bytes == kNone ? fmt::format("{{\"correlation\": {}}}", detail.correlation)
                               : fmt::format("{{\"correlation\": {}, \"bytes\": {}}}",
                                             detail.correlation, detail.bytes);
}

}  // namespace assay::timeline
