#include "timeline/analysis/insights.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/table.h"
#include "timeline/analysis/hang.h"
#include "timeline/analysis/kernel_comparison.h"
#include "timeline/analysis/report_text.h"
#include "timeline/analysis/reports.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

// Calls with the same operation, group and size.
struct CollectiveRow {
  std::size_t count = 0;
  Nanos transfer = 0;
  Nanos waiting = 0;
  double moved = 0;  // bytes
  const CollectiveCall* first = nullptr;
};

std::vector<CollectiveRow> rows_of(const CollectiveReport& report) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, CollectiveRow> rows;
  for (const CollectiveCall& call : report.calls) {
    CollectiveRow& row = rows[{call.name, call.group, call.bytes}];
    if (row.first == nullptr) row.first = &call;
    ++row.count;
    row.transfer += call.transfer;
    for (const CollectivePart& part : call.parts) row.waiting += part.waiting;
    row.moved += static_cast<double>(std::max<std::int64_t>(call.bytes, 0));
  }
  std::vector<CollectiveRow> sorted;
  sorted.reserve(rows.size());
  for (const auto& [key, row] : rows) sorted.push_back(row);
  std::ranges::stable_sort(sorted, std::greater{},
                           [](const CollectiveRow& row) { return row.transfer + row.waiting; });
  return sorted;
}

// The highest bus bandwidth of a call of each group, in GB/s.
std::map<std::string, double> best_of_groups(const CollectiveReport& report) {
  std::map<std::string, double> best;
  for (const CollectiveCall& call : report.calls) {
    if (call.bus_bandwidth <= 0) continue;
    double& group = best[call.group];
    group = std::max(group, call.bus_bandwidth);
  }
  return best;
}

std::string collective_table(const CollectiveReport& report) {
  Table table({"collective", "group", ">ranks:.0f", ">calls", ">bytes:.0f", ">transfer ms",
               ">waiting ms", ">alg GB/s:.2f", ">bus GB/s:.2f", ">group best:.2f", ">link:.0f"});
  std::map<std::string, double> best = best_of_groups(report);
  for (const CollectiveRow& row : rows_of(report)) {
    const CollectiveCall& call = *row.first;
    const double speed = if_known(
        call.bytes > 0, row.transfer > 0 ? row.moved / static_cast<double>(row.transfer) : 0);
    const bool grouped = call.group_size != kNone;
    table.row(call.name, call.group.substr(0, 15), if_known(grouped, call.group_size), row.count,
              if_known(call.bytes != kNone, static_cast<double>(call.bytes)), millis(row.transfer),
              millis(row.waiting), speed,
              if_known(grouped, speed * bus_factor(call.name, call.group_size)),
              if_known(best[call.group] > 0, best[call.group]), if_known(call.link > 0, call.link));
  }
  return section(table);
}

std::string straggler_table(const CollectiveReport& report, std::size_t top) {
  constexpr std::size_t kMostRanks = 16;
  Table table({"rank", ">came last", ">cost each ms", ">waited ms"});
  for (const Straggler& one : report.stragglers) {
    if (one.last == 0 && one.waited == 0) continue;
    table.row(one.rank, one.last, millis(one.cost), millis(one.waited));
  }
  std::string text = section(table, top);
  if (!report.missing_ranks.empty()) {
    text += fmt::format("no trace of rank {}: waiting for it counts as transfer\n",
                        listed(report.missing_ranks, kMostRanks, "..."));
  }
  std::size_t incomplete = 0;
  const CollectiveCall* first = nullptr;
  for (const CollectiveCall& call : report.calls) {
    const bool here = std::ranges::any_of(call.missing, [&](std::int32_t rank) {
      return !std::ranges::binary_search(report.missing_ranks, rank);
    });
    if (!here) continue;
    if (first == nullptr) first = &call;
    ++incomplete;
  }
  if (first != nullptr) {
    text += fmt::format(
        "{} calls lack a traced rank; the first is {} number {} of {}, without "
        "rank {}\n",
        incomplete, first->name, first->sequence, first->group,
        listed(first->missing, kMostRanks, "..."));
  }
  for (const std::string& note : report.notes) text += note + '\n';
  return text;
}

std::string kernel_table(const std::vector<KernelRow>& kernels) {
  Nanos all = 0;
  for (const KernelRow& row : kernels) all += row.total;
  Table table({"kernel or copy", ">count", ">total ms", ">%:.2f", ">mean us:.2f", ">step p50",
               ">step p99"});
  for (const KernelRow& row : kernels) {
    if (row.total == 0) break;
    const auto total = static_cast<double>(row.total);
    table.row(short_name(row.name), row.count, millis(row.total),
              100.0 * total / static_cast<double>(all),
              total / 1e3 / static_cast<double>(row.count), millis(row.step_p50),
              millis(row.step_p99));
  }
  return section(table);
}

// Operations and bytes of kernels by call and by second.
std::string roofline_table(const std::vector<KernelRow>& kernels) {
  std::vector<const KernelRow*> counted;
  for (const KernelRow& row : kernels) {
    if (row.counted()) counted.push_back(&row);
  }
  std::ranges::stable_sort(counted, [](const KernelRow* a, const KernelRow* b) {
    const auto weight = [](const KernelRow& row) {
      return std::max(row.flop, 0.0) * static_cast<double>(row.count);
    };
    return a->total != b->total ? a->total > b->total : weight(*a) > weight(*b);
  });
  Table table({"kernel", ">calls", ">FLOP/call:.3g", ">bytes/call:.3g", ">FLOP/byte:.3g",
               ">TFLOP/s:.3g", ">GB/s:.3g"});
  for (const KernelRow* row : counted) {
    const double flops = row->rate(row->flop);
    const double speed = row->rate(row->bytes);
    table.row(short_name(row->name), row->count, if_known(row->flop >= 0, row->flop),
              if_known(row->bytes >= 0, row->bytes),
              if_known(row->flop >= 0 && row->bytes > 0, row->flop / row->bytes),
              if_known(flops > 0, flops / 1e3), if_known(speed > 0, speed));
  }
  return section(table);
}

// Sums the paths of all steps.
std::vector<PathShare> together(const std::vector<CriticalPath>& paths,
                                std::vector<PathShare> CriticalPath::*field) {
  std::map<std::string_view, Nanos> sums;
  for (const CriticalPath& path : paths) {
    for (const PathShare& share : path.*field) sums[share.what] += share.time;
  }
  std::vector<PathShare> shares;
  shares.reserve(sums.size());
  for (const auto& [what, time] : sums) shares.push_back({what, time});
  sort_shares(shares);
  return shares;
}

std::string path_table(const Insights& insights) {
  Nanos length = 0;
  for (const CriticalPath& path : insights.paths) length += path.length;
  if (length == 0) return {};
  std::string text = "\ncritical path";
  const auto percent = [&](Nanos time) {
    return 100.0 * static_cast<double>(time) / static_cast<double>(length);
  };
  const auto ranks = together(insights.paths, &CriticalPath::by_rank);
  for (std::size_t i = 0; i < ranks.size() && i < kMaxRows; ++i) {
    text += fmt::format("{} {} {:.1f}%", i == 0 ? " through" : ",", ranks[i].what,
                        percent(ranks[i].time));
  }
  text += '\n';
  const auto kernels = together(insights.paths, &CriticalPath::by_kernel);
  for (std::size_t i = 0; i < kernels.size() && i < kMaxRows / 2; ++i) {
    text += fmt::format("  {:>6.2f}%  {}\n", percent(kernels[i].time),
                        short_name(std::string(kernels[i].what)));
  }
  return text;
}

// What the hosts did in the longest waits of their GPUs.
std::string host_table(const Insights& insights) {
  Table table({"host, while GPUs waited", ">gaps", ">total ms"});
  for (const HostShare& one : insights.hosts) {
    table.row(short_name(one.what), one.gaps, millis(one.time));
  }
  return section(table);
}

// The streams with the deepest queues.
std::string queue_table(const Insights& insights) {
  std::vector<StreamQueue> deepest = insights.queues;
  std::ranges::stable_sort(deepest, std::greater{}, &StreamQueue::deepest);
  std::string text;
  for (std::size_t i = 0; i < deepest.size() && i < kMaxRows / 3; ++i) {
    const StreamQueue& queue = deepest[i];
    text += fmt::format("{}: up to {} launches queued, {:.1f} on average", queue.label,
                        queue.deepest, queue.mean);
    if (!queue.full.empty()) {
      text += fmt::format("; the queue was full for {:.3f} ms", millis(measure(queue.full)));
    }
    text += '\n';
  }
  return text.empty() ? text : '\n' + text;
}

ordered_json json_of(const CollectiveCall& call) {
  const ordered_json parts = json_list(call.parts, [](const CollectivePart& part) {
    return ordered_json{{"rank", part.rank},
                        {"begin_ns", part.begin},
                        {"end_ns", part.end},
                        {"waiting_ns", part.waiting}};
  });
  ordered_json object{{"name", call.name},
                      {"group", call.group},
                      {"sequence", call.sequence},
                      {"dtype", call.dtype},
                      {"algorithm", call.algorithm},
                      {"group_size", call.group_size},
                      {"bytes", call.bytes},
                      {"transfer_ns", call.transfer},
                      {"algorithm_bandwidth_gbps", call.algorithm_bandwidth},
                      {"bus_bandwidth_gbps", call.bus_bandwidth},
                      {"parts", parts},
                      {"missing_ranks", call.missing}};
  if (call.last != kNone) object["last_rank"] = call.last;
  if (call.link > 0) object["link_gbps"] = call.link;
  return object;
}

ordered_json json_of(const std::vector<PathShare>& shares) {
  return json_list(shares, [](const PathShare& share) {
    return ordered_json{{"what", share.what}, {"time_ns", share.time}};
  });
}

ordered_json json_of(const Insights& insights) {
  ordered_json object;
  const Quality& quality = insights.quality;
  object["quality"] = {{"lost_launches", quality.lost_launches},
                       {"lost_launches_ns", quality.lost_time},
                       {"hollow_steps", quality.hollow_steps},
                       {"hollow_steps_ns", quality.hollow_time},
                       {"overlapping_kernels", quality.overlapping},
                       {"overlapping_kernels_ns", quality.overlapping_time},
                       {"dropped_records", quality.dropped},
                       {"lines", quality.lines()}};
  object["culprits"] = json_list(insights.culprits, [](const Culprit& one) {
    ordered_json culprit{
        {"kind", one.kind},          {"name", one.name},           {"cause", one.cause},
        {"ranks", one.ranks},        {"since_step", one.since},    {"when", one.when},
        {"steps", one.steps.size()}, {"operation", one.operation}, {"excess_ns", one.excess}};
    if (one.without != kNone) culprit["step_without_ns"] = one.without;
    if (one.without_one != kNone) culprit["step_without_one_ns"] = one.without_one;
    return culprit;
  });
  object["stragglers"] = json_list(insights.collectives.stragglers, [](const Straggler& one) {
    return ordered_json{{"rank", one.rank},
                        {"came_last", one.last},
                        {"cost_others_ns", one.cost},
                        {"waited_ns", one.waited}};
  });
  object["groups"] = json_list(best_of_groups(insights.collectives), [](const auto& group) {
    return ordered_json{{"group", group.first}, {"best_bus_bandwidth_gbps", group.second}};
  });
  object["missing_ranks"] = insights.collectives.missing_ranks;
  object["kernels"] = json_list(insights.kernels, [](const KernelRow& row) {
    ordered_json kernel{{"name", row.name},           {"kind", name(row.kind)},
                        {"count", row.count},         {"total_ns", row.total},
                        {"longest_ns", row.longest},  {"step_p50_ns", row.step_p50},
                        {"step_p99_ns", row.step_p99}};
    if (row.flop >= 0) kernel["flop_per_call"] = row.flop;
    if (row.bytes >= 0) kernel["bytes_per_call"] = row.bytes;
    return kernel;
  });
  object["flops"] = flop_json(insights.flops);
  object["memory"] = memory_json(insights.memory);
  object["launch_queues"] = json_list(insights.queues, [](const StreamQueue& queue) {
    return ordered_json{{"stream", queue.label},
                        {"deepest", queue.deepest},
                        {"mean", queue.mean},
                        {"full_ns", measure(queue.full)}};
  });
  object["critical_path"] = json_list(insights.paths, [](const CriticalPath& path) {
    return ordered_json{{"step", path.step},
                        {"length_ns", path.length},
                        {"by_rank", json_of(path.by_rank)},
                        {"by_kernel", json_of(path.by_kernel)}};
  });
  if (!insights.hang.empty()) object["flight_recorder"] = insights.hang;
  object["host_while_waiting"] = json_list(insights.hosts, [](const HostShare& one) {
    return ordered_json{{"what", one.what}, {"gaps", one.gaps}, {"time_ns", one.time}};
  });
  if (!insights.serving.empty()) object["inference"] = serving_json(insights.serving);
  if (insights.replay.recorded > 0) object["replay"] = replay_json(insights.replay);
  return object;
}

// What the host did in each pause.
std::map<std::size_t, std::string> pauses_of(const Trace& trace, const Analysis& analysis) {
  std::map<std::size_t, std::string> pauses;
  std::optional<KernelComparison> comparison;
  for (std::size_t i = 0; i + 1 < analysis.pauses.size(); ++i) {
    if (analysis.pauses[i] == 0) continue;
    if (!comparison) comparison.emplace(trace, analysis);
    pauses[i] = comparison->host_in_gap(0, i, i + 1);
  }
  return pauses;
}

}  // namespace

Insights insights_of(const Trace& trace, const Analysis& analysis, double peak) {
  Insights insights;
  insights.quality = quality_of(trace, analysis);
  insights.collectives = collectives_of(trace);
  insights.culprits = culprits_of(trace, analysis, insights.collectives);
  insights.replay = replay(trace, analysis, insights.collectives, insights.culprits);
  keep_costly(analysis, insights.culprits);
  insights.kernels = kernels_of(trace);
  insights.flops = flops_of(trace, analysis, peak);
  insights.memory = memory_peaks(trace);
  insights.paths = critical_paths(trace, analysis, insights.collectives);
  insights.pauses = pauses_of(trace, analysis);
  insights.hosts = host_shares(trace, analysis);
  insights.serving = serving_phases(trace, analysis);
  insights.queues = stream_queues(trace);
  insights.hang = hang_table(trace);
  return insights;
}

std::string quality_table(const Quality& quality) {
  std::string text;
  for (const std::string& line : quality.lines()) text += "  " + line + '\n';
  return text.empty() ? text : "trace quality:\n" + text;
}

std::string insights_table(const Insights& insights, std::size_t top) {
  return serving_table(insights.serving) + replay_table(insights.replay) + path_table(insights) +
         host_table(insights) + collective_table(insights.collectives) +
         straggler_table(insights.collectives, top) + kernel_table(insights.kernels) +
         roofline_table(insights.kernels) + flop_table(insights.flops) + queue_table(insights) +
         memory_table(insights.memory);
}

std::string culprit_line(const Culprit& one) {
  std::string text = fmt::format("slow: {}, {}: {}; {:.3f} ms a step more than {}", one.name,
                                 one.when, one.cause, millis(one.excess),
                                 one.kind == "step" ? "the median step"
                                 : one.itself       ? "in its other steps"
                                                    : "its peers");
  if (one.without != kNone) text += fmt::format(", {:.3f} ms a step without", millis(one.without));
  if (one.without_one != kNone) {
    text += fmt::format(", {:.3f} ms without one of them", millis(one.without_one));
  }
  return text;
}

namespace {

// The pauses that no culprit explains; those alike share a line.
std::string pause_lines(const Analysis& analysis, const Insights& insights) {
  struct Alike {
    std::string did;
    Nanos least = 0;
    Nanos most = 0;
    std::vector<std::int32_t> steps = {};
  };
  std::vector<Alike> lines;
  for (const auto& [step, did] : insights.pauses) {
    const Nanos pause = analysis.pauses[step];
    const bool told = std::ranges::any_of(insights.culprits, [&](const Culprit& one) {
      const bool waits = one.part == Culprit::Part::host || one.part == Culprit::Part::step;
      return waits && (one.in_step(step) || one.in_step(step + 1)) && 5 * one.excess > 4 * pause;
    });
    if (told) continue;
    auto same = std::ranges::find_if(lines, [&](const Alike& one) {
      return one.did == did && 5 * std::abs(one.least - pause) <= one.least;
    });
    if (same == lines.end()) same = lines.insert(same, {did, pause, pause});
    same->least = std::min(same->least, pause);
    same->most = std::max(same->most, pause);
    same->steps.push_back(static_cast<std::int32_t>(analysis.steps[step].number));
  }
  std::string text;
  for (const Alike& one : lines) {
    const std::string most =
        100 * one.most > 101 * one.least ? fmt::format("to {:.3f} ", millis(one.most)) : "";
    text +=
        fmt::format("pause: nothing runs for {:.3f} {}ms after {} {}{}\n", millis(one.least), most,
                    one.steps.size() == 1 ? "step" : "each of the steps", listed(one.steps),
                    one.did.empty() ? "" : ": the host was in " + short_name(one.did));
  }
  return text;
}

}  // namespace

std::string answer_table(const Analysis& analysis, const Insights& insights, std::size_t top) {
  std::string text = insights.hang;
  for (std::size_t i = 0; i < insights.culprits.size() && i < top; ++i) {
    text += culprit_line(insights.culprits[i]) + '\n';
  }
  text += pause_lines(analysis, insights);
  if (text.empty() && analysis.devices.size() > 1) {
    text = "no rank, host, stage, link or step stands out\n";
  }
  text += serving_advice(insights.serving, insights.kernels);
  return text.empty() ? text : text + '\n';
}

std::string insights_members(const Insights& insights, bool calls) {
  const std::string rest = dumped(json_of(insights), 1);
  if (!calls) return rest.substr(1, rest.size() - 2);
  // Dumped one by one: a single JSON value of all calls would take more memory than the trace.
  std::string text = "\n \"collectives\": [";
  for (std::size_t i = 0; i < insights.collectives.calls.size(); ++i) {
    text += i == 0 ? "\n  " : ",\n  ";
    text += dumped(json_of(insights.collectives.calls[i]));
  }
  text += "\n ],";
  return text.append(rest, 1, rest.size() - 2);
}

}  // namespace assay::timeline
