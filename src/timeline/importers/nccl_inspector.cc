// Imports the JSON of NCCL's Inspector plug-in (plugins/profiler/inspector in NCCL): one object for
// each collective, send or receive.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/json_fields.h"
#include "timeline/importers/nccl_calls.h"
#include "timeline/input/byte_source.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

constexpr std::int64_t kMost = std::int64_t{1} << 52U;
constexpr std::int64_t kMicro = 1000;

std::int64_t clamped(const json& object, const std::string& key) {
  return std::clamp<std::int64_t>(whole(object, key.c_str()), kNone, kMost);
}
std::int32_t small(const json& object, const char* key) {
  constexpr std::int64_t kMostSmall = 1 << 20;
  const std::int64_t value = clamped(object, key);
  return value > kMostSmall ? kNone : static_cast<std::int32_t>(value);
}

// Verbose output has the times of the kernel on each channel.
void read_times(const json& call, NcclCall& result) {
  const auto trace = call.find("event_trace_ts");
  if (trace == call.end() || !trace->is_object()) return;
  const auto kernels = trace->find("kernel_events");
  if (kernels == trace->end() || !kernels->is_array()) return;
  Span span;
  for (const json& kernel : *kernels) {
    if (!kernel.is_object()) continue;
    const std::int64_t begin = clamped(kernel, "kernel_start_ts");
    const std::int64_t end = clamped(kernel, "kernel_stop_ts");
    if (begin > 0 && end >= begin) widen(span, Span{begin * kMicro, end * kMicro});
  }
  if (span.begin > span.end) return;
  result.begin = span.begin;
  // The GPU's own clock measured the duration.
  if (result.duration <= 0) result.duration = span.end - span.begin;
}

class InspectorReader {
 public:
  // An object with its braces.
  void take(std::string_view object) {
    ++calls_.builder().report().records;
    const json parsed = parse_json(object);
    if (!parsed.is_object() || !add(parsed)) ++calls_.builder().report().malformed;
  }
  void cut() { ++calls_.builder().report().truncated; }

  Trace finish(const std::filesystem::path& path) {
    if (untimed_) {
      calls_.builder().report().notes.emplace_back(
          "calls have no times, only durations, so the schedule shown is not real: set "
          "NCCL_INSPECTOR_DUMP_VERBOSE=1");
    }
    return calls_.finish(path, "NCCL Inspector", host_, pid_);
  }

 private:
  bool add(const json& object) {
    const auto header = object.find("header");
    if (header == object.end() || !header->is_object()) return false;
    if (const auto meta = object.find("metadata"); meta != object.end() && meta->is_object()) {
      host_ = text_of(*meta, "hostname");
      pid_ = clamped(*meta, "pid");
    }
    for (const std::string kind : {"coll", "p2p"}) {
      const auto found = object.find(kind + "_perf");
      if (found == object.end() || !found->is_object()) continue;
      NcclCall call{.function = text_of(*found, kind.c_str()),
                    .communicator = text_of(*header, "id"),
                    .description = text_of(*header, "comm_name")};
      if (call.description == "unknown") call.description.clear();
      call.rank = small(*header, "rank");
      call.ranks = small(*header, "n_ranks");
      if (kind == "p2p") call.peer = small(*found, "p2p_peer");
      call.sequence = clamped(*found, kind + "_sn");
      call.bytes = nccl_bytes(call.function, clamped(*found, kind + "_msg_size_bytes"), call.ranks);
      call.duration = std::max<std::int64_t>(clamped(*found, kind + "_exec_time_us"), 0) * kMicro;
      read_times(*found, call);
      untimed_ |= call.begin == kNone;
      if (call.function.empty() || call.rank < 0) return false;
      calls_.add(std::move(call));
      return true;
    }
    return false;
  }

  NcclCalls calls_;
  std::string host_;
  std::int64_t pid_ = kNone;
  bool untimed_ = false;
};

// Splits the text into objects.
void split(std::string_view all, InspectorReader& reader) {
  std::size_t begin = 0;
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const char c = all[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"' && c != '\n';
    } else if (c == '"') {
      quoted = depth > 0;
    } else if (c == '{') {
      if (depth == 0) begin = i;
      ++depth;
    } else if (c == '}' && depth > 0) {
      --depth;
      if (depth == 0) reader.take(all.substr(begin, i + 1 - begin));
    }
  }
  if (depth > 0) reader.cut();
}

bool recognises(const Sniff& sniff) {
  return sniff.head.find("coll_perf") != std::string::npos ||
         sniff.head.find("p2p_perf") != std::string::npos;
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions&) {
  constexpr std::size_t kMaxFile = std::size_t{4} << 30U;
  ASSAY_TRY(const std::string all, read_head(path, kMaxFile));
  InspectorReader reader;
  split(all, reader);
  return reader.finish(path);
}

}  // namespace

const Importer kNcclInspector{"NCCL Inspector", "JSON objects with coll_perf or p2p_perf",
                              recognises, import};

}  // namespace assay::timeline
