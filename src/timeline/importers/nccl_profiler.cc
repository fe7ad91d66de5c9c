// Imports the JSON of NCCL's example profiler plug-in (plugins/profiler/example in NCCL): nested
// asynchronous events. A collective's kernel events, one for each channel, stand within it.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "timeline/importers/chrome_events.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/json_fields.h"
#include "timeline/importers/nccl_calls.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

// No more than any rank or number of a call.
std::int64_t small(const json& object, const char* key) {
  return std::clamp<std::int64_t>(whole(object, key), kNone, std::int64_t{1} << 52U);
}
std::int32_t rank_in(const json& object, const char* key) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(small(object, key), 1 << 20));
}

class PluginReader {
 public:
  void take(const ChromeEvent& event) {
    const bool call = event.category == "COLL" || event.category == "P2P";
    if (event.pid != pid_ && !event.pid.empty()) pid_ = event.pid;
    if (call && event.phase == 'b') {
      begin(event);
    } else if (call && event.phase == 'e' && open_) {
      end(event);
    } else if (event.category == "GPU" && open_ && event.timed) {
      widen(kernels_, Span{event.begin, event.begin});
    } else if (event.phase != 0) {
      ++calls_.builder().report().ignored;
    }
  }

  Trace finish(const std::filesystem::path& path, FileReport report) {
    if (open_) ++report.truncated;
    if (host_times_ > 0) {
      report.notes.push_back(fmt::format(
          "{} calls have no kernel events (NCCL_PROFILE_EVENT_MASK): their times are the host's",
          host_times_));
    }
    calls_.builder().add_counts(std::move(report));
    return calls_.finish(path, "NCCL profiler plug-in", "", leading_number(pid_));
  }

 private:
  void begin(const ChromeEvent& event) {
    const json args = parse_json(event.args_text);
    open_.reset();
    kernels_ = {};
    if (!event.timed || !args.is_object()) {
      ++calls_.builder().report().malformed;
      return;
    }
    NcclCall call{.function = std::string(event.name),
                  .communicator = args.contains("CommHash") ? args["CommHash"].dump() : "?",
                  .description = {}};
    call.dtype = text_of(args, "Datatype");
    if (call.dtype.starts_with("nccl")) call.dtype = call.dtype.substr(4);
    call.rank = rank_in(args, "Rank");
    call.algorithm = text_of(args, "Algorithm");
    if (const std::string protocol = text_of(args, "Protocol"); !protocol.empty()) {
      call.algorithm += '_' + protocol;
    }
    call.sequence = small(args, "SeqNum");
    if (event.category == "P2P") call.peer = rank_in(args, "Peer");
    call.dtype = short_type(call.dtype);
    // A reduce-scatter's count is of its output; the number of ranks is not told.
    if (call.function != "ReduceScatter") call.elements = small(args, "Count");
    call.begin = event.begin;
    open_ = std::move(call);
  }

  // "Float32" is "f32" to the analysis of collectives.
  static std::string short_type(const std::string& type) {
    const std::size_t digit = type.find_first_of("0123456789");
    if (type == "Bfloat16") return "bf16";
    if (digit == std::string::npos || digit == 0 || type.starts_with("Float8")) return type;
    return lowered(type.substr(0, 1)) + type.substr(digit);
  }

  void end(const ChromeEvent& event) {
    const bool kernels = kernels_.begin <= kernels_.end;
    if (!kernels) ++host_times_;
    if (kernels) open_->begin = kernels_.begin;
    open_->duration = std::max<Nanos>(0, (kernels ? kernels_.end : event.begin) - open_->begin);
    if (open_->rank >= 0) calls_.add(std::move(*open_));
    open_.reset();
  }

  NcclCalls calls_;
  std::optional<NcclCall> open_;
  Span kernels_;
  std::string pid_;
  std::size_t host_times_ = 0;
};

bool recognises(const Sniff& sniff) {
  return sniff.json && (sniff.categories.contains("COLL_API") || sniff.categories.contains("COLL"));
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions&) {
  return import_events(path, PluginReader());
}

}  // namespace

const Importer kNcclProfiler{"NCCL profiler plug-in", "JSON with events of the category COLL",
                             recognises, import};

}  // namespace assay::timeline
