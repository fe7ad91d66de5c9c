// Imports traces in which processes stand for devices: JAX's and XLA's trace.json.gz (processes
// "/device:GPU:0" with threads "Stream #20(Compute)"), Ascend's trace_view.json (processes "Ascend
// Hardware" and "Communication"), and that of ROCm's rpd (rpd2tracing: processes "GPU0").

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "base/values.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"
#include "timeline/input/args_store.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

constexpr std::string_view kXla = "/device:";
constexpr std::string_view kAscend = "Ascend Hardware";
constexpr std::string_view kRpd = "GPU";

EventKind classify(const ChromeEvent& event) {
  return event.name.starts_with("ProfilerStep#") ? EventKind::annotation : EventKind::host;
}

// "GPU2", or "GPU2 2" with its id.
bool is_rpd(std::string_view process) {
  process = process.substr(0, process.find(' '));
  return process.starts_with(kRpd) && process.size() > kRpd.size() &&
         process.find_first_not_of("0123456789", kRpd.size()) == std::string_view::npos;
}

// "/device:GPU:3 17" -> 3.
std::int32_t device_number(std::string_view process) {
  const std::size_t at = is_rpd(process) ? kRpd.size() : process.rfind(':') + 1;
  return leading_number(process.substr(at), kNone);
}

class Devices {
 public:
  Devices(Trace& trace, const KernelKinds& kinds) : trace_(trace), kinds_(kinds) {
    for (const Track& track : trace.tracks) {
      if (track.process.starts_with(kXla) && track.label.starts_with("Stream")) {
        with_streams_.insert(track.process);
      }
    }
  }

  void find() {
    std::map<std::int64_t, Step> steps;
    std::vector<bool> communicates;
    std::vector<bool> marks;
    for (Track& track : trace_.tracks) {
      const bool xla = track.process.starts_with(kXla);
      communicates.push_back(!xla && carries_collectives(track));
      marks.push_back(xla && track.label == "Steps");
      of_rpd_.push_back(is_rpd(track.process));
      if (communicates.back() || is_stream(track)) settle(track);
    }
    for (Slice& slice : trace_.slices) {
      if (marks[slice.track]) {
        std::int64_t number = kNone;
        if (read_number(trace_.strings.text(slice.name), number)) {
          widen(steps.try_emplace(number, Step{.number = number}).first->second, slice);
        }
      }
      if (!trace_.tracks[slice.track].gpu) continue;
      // rpd repeats the host's ranges above the work that they launched.
      if (of_rpd_[slice.track] && has(args_text(trace_, slice), "UserMarker frame")) continue;
      slice.kind = communicates[slice.track] ? Kind::communication : kind_of(slice.name);
    }
    if (steps.empty() && trace_.steps.empty()) steps = annotated_steps();
    for (const auto& [number, step] : steps) trace_.steps.push_back(step);
  }

 private:
  // The host's ranges by jax.profiler.StepTraceAnnotation, whose args have "step_num".
  std::map<std::int64_t, Step> annotated_steps() {
    constexpr std::string_view kKey = "\"step_num\":";
    std::map<std::int64_t, Step> steps;
    for (const Slice& slice : trace_.slices) {
      if (trace_.tracks[slice.track].gpu) continue;
      const std::string args = args_text(trace_, slice);
      const std::size_t at = args.find(kKey);
      if (at == std::string::npos) continue;
      const std::size_t value = args.find_first_not_of(" \"", at + kKey.size());
      const std::int64_t number =
          leading_number(std::string_view(args).substr(std::min(value, args.size())));
      if (number == kNone) continue;
      widen(steps.try_emplace(number, Step{.number = number}).first->second, slice);
    }
    return steps;
  }

  // TPUs have no streams but a row of operations.
  bool is_stream(const Track& track) const {
    if (track.process.starts_with(kXla)) {
      return with_streams_.contains(track.process) ? track.label.starts_with("Stream")
                                                   : track.label == "XLA Ops";
    }
    if (is_rpd(track.process)) return true;
    return track.process.starts_with(kAscend) && track.label.starts_with("Stream");
  }

  // Rows such as "Group 0 Communication"; the rows of planes below repeat their parts.
  static bool carries_collectives(const Track& track) {
    return (track.process.starts_with("Communication") || track.process.starts_with("HCCL")) &&
           has(track.label, "Communication");
  }

  static void settle(Track& track) {
    const bool xla = track.process.starts_with(kXla);
    track.gpu = true;
    // A trace of Ascend's profiler is of one device, and does not number it.
    track.device = xla || is_rpd(track.process) ? device_number(track.process) : 0;
    track.label = fmt::format("{} {} · {}", xla && has(track.process, "TPU") ? "TPU" : "GPU",
                              track.device, track.label);
  }

  // Ascend's streams also show waits and notifications, which are no work.
  Kind kind_of(StringId name) {
    const auto [entry, is_new] = known_.try_emplace(name, Kind::other);
    if (!is_new) return entry->second;
    const std::string text = lowered(trace_.strings.text(name));
    if (has_any(text, {"event_", "notify_", "place_holder"})) return entry->second;
    const bool copies =
        std::ranges::any_of(std::array{"memcpy", "memset", "copy", "fillbuffer"},
                            [&](const char* start) { return text.starts_with(start); });
    return entry->second = copies ? Kind::memory : kinds_.kind(trace_.strings.text(name));
  }

  Trace& trace_;
  const KernelKinds& kinds_;
  std::set<std::string> with_streams_;  // processes
  std::vector<bool> of_rpd_;            // by track
  std::map<StringId, Kind> known_;
};

bool recognises(const Sniff& sniff) {
  return sniff.json && std::ranges::any_of(sniff.processes, [](const std::string& process) {
           return process.starts_with(kXla) || process == kAscend || is_rpd(process);
         });
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{.format = "JAX, XLA, Ascend or rpd",
                                          .classify = classify,
                                          .by_track = true,
                                          .steps = {"ProfilerStep#"}};
  // The names of the processes tell what an event is; they may come after the events.
  ImportOptions whole = options;
  whole.analysis = false;
  ASSAY_TRY(Trace trace, import_chrome_trace(path, kDialect, whole));
  Devices(trace, options.kinds).find();
  return trace;
}

}  // namespace

const Importer kDevices{"JAX, XLA, Ascend or rpd",
                        "JSON with processes /device:…, Ascend Hardware or GPU0", recognises,
                        import};

}  // namespace assay::timeline
