#include "timeline/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/json.h"

namespace assay::timeline {
namespace {

using nlohmann::json;
constexpr double kNanosPerMicro = 1000.0;
constexpr double kMaxMicros = 4e15;  // 127 years; keeps the nanoseconds from overflowing

std::string machine_name(const json& value) {
  return value.is_number_integer() ? std::to_string(value.get<std::int64_t>())
                                   : value.get<std::string>();
}

Result<Nanos> micros(const json& value) {
  const double number = value.get<double>();
  if (!(std::abs(number) < kMaxMicros))
    return usage_error(fmt::format("{} µs is not a valid offset", number));
  return static_cast<Nanos>(std::llround(number * kNanosPerMicro));
}

Status apply_manifest(const std::filesystem::path& path, std::vector<MachineClock>& clocks) {
  ASSAY_TRY(const std::string text, read_file(path));
  try {
    const json manifest = parse_json(text);
    if (manifest.is_discarded()) return usage_error(path.string() + ": this is no JSON");
    if (manifest.at("version").get<int>() != 1) {
      return usage_error(fmt::format("{}: only version 1 is known", path.string()));
    }
    for (const json& entry : manifest.at("offsets")) {
      const std::string machine = machine_name(entry.at("machine"));
      const auto clock = std::ranges::find(clocks, machine, &MachineClock::machine);
      if (clock == clocks.end()) continue;
      ASSAY_TRY(clock->offset, micros(entry.at("offset_us")));
      ASSAY_TRY(clock->uncertainty, micros(entry.at("uncertainty_us")));
      clock->related = true;
      clock->source = "manifest";
    }
  } catch (const json::exception& error) {
    return usage_error(fmt::format("{}: {}", path.string(), error.what()));
  }
  // The first machine is the reference.
  const Nanos first = clocks.front().offset;
  for (MachineClock& clock : clocks) clock.offset -= first;
  clocks.front().related = true;
  return {};
}

// By pair of machines.
using Relations = std::map<std::pair<std::size_t, std::size_t>, ClockBounds>;

// Relates every machine to the first along the relations, adding up uncertainties.
void walk(const Relations& relations, std::string_view what, std::vector<MachineClock>& clocks) {
  clocks.front().related = true;
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [pair, bounds] : relations) {
      const auto [from, to] = pair;
      if (clocks[from].related == clocks[to].related) continue;
      if (bounds.low == std::numeric_limits<Nanos>::min() ||
          bounds.high == std::numeric_limits<Nanos>::max()) {
        continue;  // bounded on one side only
      }
      const bool forward = clocks[from].related;
      MachineClock& known = clocks[forward ? from : to];
      MachineClock& next = clocks[forward ? to : from];
      const Nanos middle = bounds.low + (bounds.high - bounds.low) / 2;
      next.offset = known.offset + (forward ? middle : -middle);
      next.uncertainty = known.uncertainty + (bounds.high - bounds.low + 1) / 2;
      next.related = true;
      next.source = fmt::format("{} {}", bounds.evidence, what);
      moved = true;
    }
  }
}

Status relate_by_probes(const std::filesystem::path& path, std::vector<MachineClock>& clocks) {
  ASSAY_TRY(const auto probes, read_probes(path));
  Relations relations;
  for (std::size_t a = 0; a < clocks.size(); ++a) {
    for (std::size_t b = a + 1; b < clocks.size(); ++b) {
      ASSAY_TRY(const ClockBounds bounds,
                bounds_of_probes(probes, clocks[a].machine, clocks[b].machine));
      if (bounds.evidence > 0) relations[{a, b}] = bounds;
    }
  }
  walk(relations, "probes", clocks);
  return {};
}

// When a stage could hand over the work of a (step, micro batch), or had taken it.
struct Handover {
  std::optional<Nanos> gave;
  std::optional<Nanos> took;
};
using Handovers = std::map<std::pair<std::int64_t, std::int32_t>, Handover>;

// `kind` is "forward" or "backward". The begin of a send is stricter evidence than the end of the
// job before it, and the end of a receive stricter than the begin of the job after it.
Handovers handovers_of(const Trace& trace, std::uint32_t track, std::string_view kind) {
  Handovers result;
  // The n-th occurrence belongs to step n.
  std::map<std::pair<StringId, std::int32_t>, std::int64_t> seen;
  const std::string send = fmt::format("send_{}", kind);
  const std::string receive = fmt::format("recv_{}", kind);
  for (const Slice& slice : trace.slices) {
    if (slice.track != track || slice.micro_batch == kNone) continue;
    const std::string_view type = trace.strings.text(slice.category);
    if (type != kind && type != send && type != receive) continue;
    const std::int64_t step = seen[{slice.category, slice.micro_batch}]++;
    Handover& handover = result[{step, slice.micro_batch}];
    if (type == send) {
      handover.gave = slice.begin;
    } else if (type == receive) {
      handover.took = slice.end;
    } else {
      if (!handover.gave) handover.gave = slice.end;
      if (!handover.took) handover.took = slice.begin;
    }
  }
  return result;
}

// `taker` cannot take work before `giver` hands it over. Each side has its own clock.
template <typename Tighten>
void compare_handovers(const Handovers& giver, const Handovers& taker, Tighten tighten) {
  for (const auto& [key, given] : giver) {
    const auto taken = taker.find(key);
    if (taken == taker.end() || !given.gave || !taken->second.took) continue;
    tighten(*given.gave, *taken->second.took);
  }
}

Status relate_by_pairs(const Trace& trace, std::vector<MachineClock>& clocks) {
  // The stages are the ranks, or the logs, in their order.
  const bool named = std::ranges::any_of(trace.tracks, &Track::jobs);
  std::vector<std::uint32_t> stages;
  for (std::uint32_t i = 0; i < trace.tracks.size(); ++i) {
    if (trace.tracks[i].gpu && trace.tracks[i].jobs == named) stages.push_back(i);
  }
  std::ranges::stable_sort(stages, {}, [&](std::uint32_t i) { return trace.tracks[i].rank; });
  const auto machine_index = [&](std::uint32_t track) {
    const auto found =
        std::ranges::find(clocks, trace.tracks[track].machine, &MachineClock::machine);
    return static_cast<std::size_t>(found - clocks.begin());
  };
  Relations relations;
  for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
    const std::size_t a = machine_index(stages[s]);
    const std::size_t b = machine_index(stages[s + 1]);
    if (a == b) continue;
    ClockBounds& bounds = relations[{a, b}];  // b's time + offset = a's time
    compare_handovers(handovers_of(trace, stages[s], "forward"),
                      handovers_of(trace, stages[s + 1], "forward"), [&](Nanos gave, Nanos took) {
                        bounds.low = std::max(bounds.low, gave - took);
                        ++bounds.evidence;
                      });
    compare_handovers(handovers_of(trace, stages[s + 1], "backward"),
                      handovers_of(trace, stages[s], "backward"), [&](Nanos gave, Nanos took) {
                        bounds.high = std::min(bounds.high, took - gave);
                        ++bounds.evidence;
                      });
    if (bounds.low > bounds.high) {
      return fail(fmt::format("the sends and receives of {} and {} contradict each other by {:.3f} "
                              "µs: they are not neighbouring stages, or a clock was set",
                              trace.tracks[stages[s]].label, trace.tracks[stages[s + 1]].label,
                              static_cast<double>(bounds.low - bounds.high) / kNanosPerMicro),
                  ErrorKind::usage);
    }
  }
  walk(relations, "send/receive pairs", clocks);
  return {};
}

}  // namespace

Result<ClockBounds> bounds_of_probes(std::span<const ClockProbe> probes, const std::string& from,
                                     const std::string& to) {
  ClockBounds bounds;
  for (const ClockProbe& probe : probes) {
    // Messages arrive after they are sent: t1 <= t2 + offset and t3 + offset <= t4.
    Nanos low = probe.t1 - probe.t2;
    Nanos high = probe.t4 - probe.t3;
    if (probe.from == to && probe.to == from) {
      std::swap(low, high);
      low = -low;
      high = -high;
    } else if (probe.from != from || probe.to != to) {
      continue;
    }
    bounds.low = std::max(bounds.low, low);
    bounds.high = std::min(bounds.high, high);
    ++bounds.evidence;
  }
  if (bounds.low > bounds.high) {
    return usage_error(fmt::format(
        "the clock probes between machines {} and {} contradict each other: a clock was set or "
        "drifts; use --clock-manifest",
        from, to));
  }
  return bounds;
}

Result<std::vector<ClockProbe>> read_probes(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path));
  std::vector<ClockProbe> probes;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    if (end > at) {
      try {
        const json entry = parse_json(std::string_view(text).substr(at, end - at));
        if (entry.is_discarded()) {
          return usage_error(fmt::format("{}:{}: this is no JSON", path.string(), line));
        }
        probes.push_back({machine_name(entry.at("from")), machine_name(entry.at("to")),
                          entry.at("t1").get<Nanos>(), entry.at("t2").get<Nanos>(),
                          entry.at("t3").get<Nanos>(), entry.at("t4").get<Nanos>()});
        const ClockProbe& probe = probes.back();
        constexpr Nanos kMax = std::numeric_limits<Nanos>::max() / 4;
        const auto wild = [](Nanos t) { return t < 0 || t > kMax * 2; };
        if (wild(probe.t1) || wild(probe.t2) || wild(probe.t3) || wild(probe.t4)) {
          return usage_error(fmt::format("{}:{}: time out of range", path.string(), line));
        }
      } catch (const json::exception& error) {
        return usage_error(fmt::format("{}:{}: {}", path.string(), line, error.what()));
      }
    }
    at = end + 1;
  }
  return probes;
}

Result<std::vector<MachineClock>> relate_clocks(std::span<const std::string> machines,
                                                const ClockOptions& options,
                                                const Trace* pipeline) {
  std::vector<MachineClock> clocks;
  for (const std::string& machine : machines) clocks.push_back({.machine = machine, .source = ""});
  if (clocks.size() < 2) return clocks;
  clocks.front().source = "reference";
  if (!options.manifest.empty()) ASSAY_CHECK(apply_manifest(options.manifest, clocks));
  if (!options.probes.empty()) ASSAY_CHECK(relate_by_probes(options.probes, clocks));
  if (options.pairs && pipeline != nullptr) ASSAY_CHECK(relate_by_pairs(*pipeline, clocks));
  return clocks;
}

std::vector<std::string> machines_of(std::span<const Track> tracks) {
  std::vector<std::string> machines;
  for (const Track& track : tracks) {
    if (!track.gpu && track.machine.empty()) continue;
    if (std::ranges::find(machines, track.machine) == machines.end()) {
      machines.push_back(track.machine);
    }
  }
  return machines;
}

std::vector<std::string> describe_clocks(std::span<const MachineClock> clocks) {
  std::vector<std::string> lines;
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    const MachineClock& clock = clocks[i];
    if (clock.related) {
      lines.push_back(fmt::format(
          "machine {}: clock shifted by {:+.3f} µs ± {:.3f} µs to match machine {} ({})",
          clock.machine, static_cast<double>(clock.offset) / kNanosPerMicro,
          static_cast<double>(clock.uncertainty) / kNanosPerMicro, clocks.front().machine,
          clock.source));
    } else {
      lines.push_back(fmt::format(
          "warning: the clocks of machines {} and {} are not related; machine {} "
          "keeps its own clock, so do not compare times across them (see --clock-probes, "
          "--clock-manifest, --clock-pairs)",
          clocks.front().machine, clock.machine, clock.machine));
    }
  }
  return lines;
}

Status relate_clocks(Trace& trace, const ClockOptions& options) {
  if (!options.any()) {
    relate_by_collectives(trace);
    return {};
  }
  ASSAY_TRY(const std::vector<MachineClock> clocks,
            relate_clocks(machines_of(trace.tracks), options, &trace));
  const auto offset_of = [&](const std::string& machine) {
    for (const MachineClock& clock : clocks) {
      if (clock.machine == machine) return clock.offset;
    }
    return Nanos{0};
  };
  std::vector<Nanos> of_track;
  std::vector<Nanos> of_source;
  of_track.reserve(trace.tracks.size());
  of_source.reserve(trace.sources.size());
  for (const Track& track : trace.tracks) of_track.push_back(offset_of(track.machine));
  for (const Source& source : trace.sources) of_source.push_back(offset_of(source.host));
  trace.shift(of_track, of_source);
  for (std::size_t i = 1; i < clocks.size(); ++i) trace.one_clock &= clocks[i].related;
  const auto notes = describe_clocks(clocks);
  trace.notes.insert(trace.notes.end(), notes.begin(), notes.end());
  trace.sort();
  return {};
}

}  // namespace assay::timeline
