#include "timeline/analysis/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "timeline/analysis/peaks.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

using Names = std::span<const std::pair<std::string_view, std::string_view>>;

// The name of the first part that the text has, or `otherwise`.
std::string_view first_of(const Names& names, std::string_view text,
                          std::string_view otherwise = {}) {
  for (const auto& [part, name] : names) {
    if (has(text, part)) return name;
  }
  return otherwise;
}

// Maps the names of PyTorch's functions to one name for each collective.
std::string_view plain_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kNames{{
      {"allreduce", "allreduce"},
      {"all_reduce", "allreduce"},
      {"allgather", "allgather"},
      {"all_gather", "allgather"},
      {"reduce_scatter", "reducescatter"},
      {"reducescatter", "reducescatter"},
      {"alltoall", "alltoall"},
      {"all_to_all", "alltoall"},
      {"broadcast", "broadcast"},
      {"barrier", "barrier"},
      {"send", "send"},
      {"recv", "recv"},
      {"gather", "gather"},
      {"scatter", "scatter"},
      {"reduce", "reduce"},
  }};
  return first_of(kNames, name, name);
}

// The parts of "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(…)".
struct KernelName {
  std::string operation;
  std::string algorithm;
  std::string dtype;
};
KernelName read_kernel_name(std::string_view kernel) {
  KernelName result;
  kernel = kernel.substr(0, kernel.find('('));
  if (!has(kernel, "nccl")) return result;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOperations{
      {{"AllReduce", "allreduce"},
       {"AllGather", "allgather"},
       {"ReduceScatter", "reducescatter"},
       {"Broadcast", "broadcast"},
       {"SendRecv", "sendrecv"},
       {"Reduce_", "reduce"}}};
  result.operation = first_of(kOperations, kernel);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAlgorithms{
      {{"RING", "Ring"},
       {"TREE", "Tree"},
       {"COLLNET", "CollNet"},
       {"NVLS", "NVLS"},
       {"PAT", "PAT"}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kProtocols{
      {{"_LL128", "LL128"}, {"_LL", "LL"}, {"_SIMPLE", "SIMPLE"}}};
  result.algorithm = first_of(kAlgorithms, kernel);
  const std::string_view protocol = first_of(kProtocols, kernel);
  if (!result.algorithm.empty() && !protocol.empty()) result.algorithm += ", ";
  result.algorithm += protocol;
  // "…_Sum_bf16_…", "…_Sum_float(…": the last word that names a type.
  for (std::size_t at = kernel.find('_'); at != std::string_view::npos; at = kernel.find('_', at)) {
    ++at;
    const std::string_view word = kernel.substr(at, kernel.find('_', at) - at);
    if (element_bytes(word) > 0) result.dtype = word;
  }
  return result;
}

// All-reduces of vLLM, SGLang, PyTorch's symmetric memory and TensorRT-LLM, which are not NCCL's.
bool reduces_over_all(std::string_view kernel) {
  return has(kernel, "cross_device_reduce") || has(kernel, "one_shot_all_reduce") ||
         has(kernel, "two_shot_all_reduce");
}

bool is_one_way(std::string_view name) { return name == "send" || name == "recv"; }

// Matches the kernels of several ranks to one call: by group and position.
struct Key {
  std::string group;
  std::string ranks;
  std::int64_t place = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

class Finder {
 public:
  explicit Finder(const Trace& trace) : trace_(trace) {
    for (const Source& source : trace.sources) {
      if (source.rank != kNone) ranks_.insert(source.rank);
    }
    for (const Collective& one : trace.collectives) {
      if (one.peer == kNone) continue;
      const auto text = [&](StringId id) { return std::string(trace.strings.text(id)); };
      const auto& members = members_of({text(one.group), text(one.ranks)});
      if (std::ranges::find(members, one.peer) == members.end()) positions_.insert(one.ranks);
    }
  }

  CollectiveReport find() {
    for (std::size_t i = 0; i < trace_.slices.size(); ++i) take(i);
    for (auto& [key, call] : calls_) {
      settle(key, call);
      report_.calls.push_back(std::move(call));
    }
    std::ranges::sort(report_.calls, {},
                      [](const CollectiveCall& call) { return call.parts.front().begin; });
    for (auto& [rank, straggler] : stragglers_) {
      straggler.rank = rank;
      report_.stragglers.push_back(straggler);
    }
    std::ranges::sort(report_.stragglers, [](const Straggler& a, const Straggler& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.rank < b.rank;
    });
    report_.missing_ranks.assign(missing_ranks_.begin(), missing_ranks_.end());
    if (mismatched_ > 0) {
      report_.notes.push_back(
          fmt::format("{} calls of a group differ between ranks: the traces cover different times",
                      mismatched_));
    }
    return std::move(report_);
  }

 private:
  void take(std::size_t index) {
    const Slice& slice = trace_.slices[index];
    const Track& track = trace_.tracks[slice.track];
    if (slice.kind != Kind::communication || !track.gpu || track.jobs) return;
    const std::uint32_t of_detail =
        slice.detail == kNoIndex ? kNoIndex : trace_.details[slice.detail].collective;
    const KernelName kernel = read_kernel_name(trace_.strings.text(slice.name));
    CollectiveCall call;
    Key key;
    call.algorithm = kernel.algorithm;
    if (of_detail != kNoIndex) {
      describe(trace_.collectives[of_detail], kernel, call, key);
      if (is_one_way(call.name)) pair_up(trace_.collectives[of_detail], track.rank, call, key);
    } else if (!kernel.operation.empty()) {
      call.name = kernel.operation;
      key.group = "?" + call.name;
    } else if (const auto name = trace_.strings.text(slice.name); reduces_over_all(name)) {
      describe_custom(name, track, call, key);
    } else {
      return;  // the library does not order its collectives
    }
    // Without a known rank, the source cannot be matched.
    if (track.rank == kNone) key.ranks = fmt::format("{} {}", track.machine, track.source);
    if (of_detail != kNoIndex && trace_.collectives[of_detail].numbered) {
      key.place = trace_.collectives[of_detail].sequence;
    } else {
      key.place = places_[{track.rank, track.device, key.group, key.ranks}]++;
    }
    CollectivePart part{
        .rank = track.rank, .slice = index, .begin = slice.begin, .end = slice.end, .waiting = 0};
    const auto [entry, is_new] = calls_.try_emplace(key, call);
    if (!is_new && (entry->second.name != call.name || entry->second.bytes != call.bytes)) {
      ++mismatched_;
    }
    entry->second.parts.push_back(part);
  }

  void describe(const Collective& collective, const KernelName& kernel, CollectiveCall& call,
                Key& key) const {
    const auto text = [&](StringId id) { return std::string(trace_.strings.text(id)); };
    call.name = plain_name(text(collective.name));
    call.group = text(collective.description);
    call.dtype = text(collective.dtype);
    if (call.dtype.empty()) call.dtype = kernel.dtype;
    call.group_size = collective.group_size;
    call.bytes = bytes_of(collective, call);
    key.group = text(collective.group);
    key.ranks = text(collective.ranks);
  }

  // vLLM's all-reduce names the number of its ranks, which follow each other on a host:
  // "cross_device_reduce_1stage<__nv_bfloat16, 2>(…". Others are of all ranks of a host.
  static void describe_custom(std::string_view kernel, const Track& track, CollectiveCall& call,
                              Key& key) {
    call.name = "allreduce";
    call.group = "custom";
    const std::string_view head = kernel.substr(0, kernel.find('('));
    const std::size_t comma = head.rfind(", ");
    const auto sizes = comma < head.size() ? numbers_in<std::int32_t>(head.substr(comma))
                                           : std::vector<std::int32_t>();
    key.group = fmt::format("?custom {}", track.machine);
    if (sizes.empty() || sizes.front() < 2 || track.rank == kNone) return;
    call.group_size = sizes.front();
    key.group += fmt::format(" {}", track.rank / call.group_size);
  }

  // A send meets the receive between the same ranks. Without a known peer, it meets none.
  void pair_up(const Collective& collective, std::int32_t own, CollectiveCall& call, Key& key) {
    const std::vector<std::int32_t>& members = members_of(key);
    const std::string_view name = trace_.strings.text(collective.name);
    std::int32_t peer = collective.peer;
    bool position = positions_.contains(collective.ranks);
    if (peer == kNone) {  // PyTorch's ranges: "nccl:send 0->1", "nccl:recv 1<-0"
      peer = number_behind(name, has(name, "->") ? "->" : "<-", peer);
      position = true;
    }
    const bool sends = call.name == "send";
    call.name = "sendrecv";
    if (peer == kNone && members.size() == 2) {
      peer = members[members[0] == own ? 1 : 0];
    } else if (position && peer >= 0 && static_cast<std::size_t>(peer) < members.size()) {
      peer = members[static_cast<std::size_t>(peer)];
    }
    if (own == kNone || (peer == kNone && call.group_size == 2)) return;
    if (peer != kNone) call.group_size = 2;
    key.ranks = peer == kNone ? fmt::format("[{}]", own)
                              : fmt::format("[{}, {}]", sends ? own : peer, sends ? peer : own);
  }

  // The larger of input and output; kNone if unknown.
  static std::int64_t bytes_of(const Collective& collective, const CollectiveCall& call) {
    if (collective.bytes != kNone) return collective.bytes;
    std::int64_t elements = std::max(collective.in_elements, collective.out_elements);
    constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
    const std::int64_t size = element_bytes(call.dtype);
    if (elements < 0 || elements > kMaxElements || size == 0) return kNone;
    // The output has the parts of all ranks.
    if (call.name == "allgather" && collective.out_elements == kNone) {
      if (collective.group_size < 1) return kNone;
      elements *= collective.group_size;
    }
    return elements * size;
  }

  void settle(const Key& key, CollectiveCall& call) {
    call.sequence = key.place;
    std::ranges::sort(call.parts, [](const CollectivePart& a, const CollectivePart& b) {
      return std::tie(a.rank, a.begin) < std::tie(b.rank, b.begin);
    });
    find_missing(key, call);
    find_waiting(call);
    call.link = link_of(call);
    const double seconds = static_cast<double>(call.transfer) / 1e9;
    if (call.bytes > 0 && seconds > 0) {
      call.algorithm_bandwidth = static_cast<double>(call.bytes) / 1e9 / seconds;
      if (call.group_size != kNone) {
        call.bus_bandwidth = call.algorithm_bandwidth * bus_factor(call.name, call.group_size);
      }
    }
  }

  // Of GPUs of one host and kind, if all ranks of the group are known.
  double link_of(const CollectiveCall& call) const {
    if (call.parts.size() != static_cast<std::size_t>(std::max(call.group_size, 0))) return 0;
    std::set<std::pair<std::string_view, std::string_view>> seen;  // host and device
    for (const CollectivePart& part : call.parts) {
      const Track& track = trace_.tracks[trace_.slices[part.slice].track];
      if (track.source >= trace_.sources.size() || track.machine.empty()) return 0;
      seen.emplace(track.machine, trace_.sources[track.source].device);
    }
    return seen.size() == 1 ? peak_of(seen.begin()->second, "").link : 0;
  }

  // The members of a call's group. Kineto shortens long lists ("[0, 1, ..., 63]"): pg_config has
  // all.
  const std::vector<std::int32_t>& members_of(const Key& key) {
    const auto [entry, is_new] = members_.try_emplace({key.group, key.ranks});
    if (!is_new) return entry->second;
    entry->second = numbers_in<std::int32_t>(key.ranks);
    if (!has(key.ranks, "...")) return entry->second;
    for (const Source& source : trace_.sources) {
      const auto group = source.groups.find(key.group);
      if (group == source.groups.end()) continue;
      if (group->second.ranks.size() > entry->second.size()) entry->second = group->second.ranks;
    }
    return entry->second;
  }

  void find_missing(const Key& key, CollectiveCall& call) {
    if (call.parts.front().rank == kNone) return;
    for (const std::int32_t rank : members_of(key)) {
      if (std::ranges::binary_search(call.parts, rank, {}, &CollectivePart::rank)) continue;
      call.missing.push_back(rank);
      if (!ranks_.contains(rank)) missing_ranks_.insert(rank);
    }
  }

  void find_waiting(CollectiveCall& call) {
    const auto length = [](const CollectivePart& part) { return part.end - part.begin; };
    auto& parts = call.parts;
    call.transfer = parts.front().end - parts.front().begin;
    if (parts.size() < 2) return;
    const bool known = trace_.one_clock && !trace_.clocks_assumed;
    const auto last = known ? std::ranges::max_element(parts, {}, &CollectivePart::begin)
                            : std::ranges::min_element(parts, {}, length);
    call.transfer = last->end - last->begin;
    if (!known) {
      // A kernel that is longer than the shortest one waited, but nobody knows for whom.
      for (CollectivePart& part : parts) part.waiting = length(part) - call.transfer;
      return;
    }
    const auto first = std::ranges::min_element(parts, {}, &CollectivePart::begin);
    // Who comes within a microsecond of the others is not late: ties are ties.
    constexpr Nanos kTie = 1000;
    const bool tie = last->begin - first->begin < kTie;
    if (!tie) call.last = last->rank;
    Nanos waited = 0;
    for (CollectivePart& part : parts) {
      part.waiting = std::clamp<Nanos>(last->begin - part.begin, 0, length(part));
      stragglers_[part.rank].waited += part.waiting;
      waited += part.waiting;
      // The transfer lasts at least as long as any rank's kernel without its waiting.
      call.transfer = std::max(call.transfer, length(part) - part.waiting);
    }
    if (tie) return;
    Straggler& late = stragglers_[last->rank];
    ++late.last;
    late.cost += waited / static_cast<Nanos>(parts.size() - 1);
  }

  const Trace& trace_;
  std::set<std::int32_t> ranks_;
  std::set<StringId> positions_;  // lists of ranks whose peers are positions in them
  std::map<Key, CollectiveCall> calls_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string, std::string>, std::int64_t> places_;
  std::map<std::int32_t, Straggler> stragglers_;
  std::map<std::pair<std::string, std::string>, std::vector<std::int32_t>> members_;
  std::set<std::int32_t> missing_ranks_;
  std::uint64_t mismatched_ = 0;
  CollectiveReport report_;
};

}  // namespace

CollectiveReport collectives_of(const Trace& trace) { return Finder(trace).find(); }

std::int64_t element_bytes(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 28> kSizes{{
      {"Float8", 1},        {"Float", 4},
      {"float", 4},         {"BFloat16", 2},
      {"bfloat16", 2},      {"Half", 2},
      {"half", 2},          {"Double", 8},
      {"double", 8},        {"Int", 4},
      {"int", 4},           {"Long", 8},
      {"long", 8},          {"Short", 2},
      {"long int", 8},      {"f32", 4},
      {"f64", 8},           {"f16", 2},
      {"bf16", 2},          {"i32", 4},
      {"u32", 4},           {"i64", 8},
      {"u64", 8},           {"short int", 2},
      {"ComplexFloat", 8},  {"ComplexDouble", 16},
      {"c10::BFloat16", 2}, {"c10::Half", 2},
  }};
  for (const auto& [name, size] : kSizes) {
    if (dtype == name || (name == "Float8" && dtype.starts_with(name))) return size;
  }
  for (const std::string_view byte : {"Byte", "Char", "Bool", "byte", "char", "bool",
                                      "unsigned char", "signed char", "i8", "u8"}) {
    if (dtype == byte) return 1;
  }
  return 0;
}

double bus_factor(std::string_view collective, std::int32_t ranks) {
  if (ranks < 2) return 1;
  const auto n = static_cast<double>(ranks);
  if (collective == "allreduce") return 2 * (n - 1) / n;
  for (const std::string_view name :
       {"allgather", "reducescatter", "alltoall", "gather", "scatter"}) {
    if (collective == name) return (n - 1) / n;
  }
  return 1;
}

}  // namespace assay::timeline
