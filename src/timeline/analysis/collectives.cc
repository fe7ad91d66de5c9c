#include "timeline/analysis/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

namespace assay::timeline {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Maps the names of PyTorch's functions to one name for each collective.
std::string_view plain_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kNames{{
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
      {"reduce", "reduce"},
  }};
  for (const auto& [part, plain] : kNames) {
    if (has(name, part)) return plain;
  }
  return name;
}

std::vector<std::int32_t> numbers_in(std::string_view text) {
  std::vector<std::int32_t> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::int32_t number = 0;
    const auto result = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (result.ec != std::errc()) {
      ++at;
      continue;
    }
    numbers.push_back(number);
    at = static_cast<std::size_t>(result.ptr - text.data());
  }
  return numbers;
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
  for (const auto& [part, name] : kOperations) {
    if (!has(kernel, part)) continue;
    result.operation = name;
    break;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAlgorithms{
      {{"RING", "Ring"},
       {"TREE", "Tree"},
       {"COLLNET", "CollNet"},
       {"NVLS", "NVLS"},
       {"PAT", "PAT"}}};
  for (const auto& [part, name] : kAlgorithms) {
    if (has(kernel, part)) result.algorithm = name;
  }
  for (const std::string_view protocol : {"LL128", "LL", "SIMPLE"}) {
    if (!has(kernel, fmt::format("_{}", protocol))) continue;
    result.algorithm += fmt::format("{}{}", result.algorithm.empty() ? "" : ", ", protocol);
    break;
  }
  // "…_Sum_bf16_…", "…_Sum_float(…": the last word that names a type.
  for (std::size_t at = kernel.find('_'); at != std::string_view::npos; at = kernel.find('_', at)) {
    ++at;
    const std::string_view word = kernel.substr(at, kernel.find('_', at) - at);
    if (element_bytes(word) > 0) result.dtype = word;
  }
  return result;
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
  }

  CollectiveReport find() {
    for (std::size_t i = 0; i < trace_.slices.size(); ++i) take(i);
    for (auto& [key, call] : calls_) {
      settle(key, call);
      report_.calls.push_back(std::move(call));
    }
    std::sort(report_.calls.begin(), report_.calls.end(),
              [](const CollectiveCall& a, const CollectiveCall& b) {
                return a.parts.front().begin < b.parts.front().begin;
              });
    for (auto& [rank, straggler] : stragglers_) {
      straggler.rank = rank;
      report_.stragglers.push_back(straggler);
    }
    std::sort(report_.stragglers.begin(), report_.stragglers.end(),
              [](const Straggler& a, const Straggler& b) {
                return a.cost != b.cost ? a.cost > b.cost : a.rank < b.rank;
              });
    report_.missing_ranks.assign(missing_ranks_.begin(), missing_ranks_.end());
    if (mismatched_ > 0) {
      report_.notes.push_back(fmt::format(
          "{} calls of a group are not the same on all ranks: the traces begin or end apart",
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
    } else if (!kernel.operation.empty()) {
      call.name = kernel.operation;
      key.group = "?" + call.name;
    } else {
      return;  // the library does not order its collectives
    }
    // Without a known rank, the source cannot be matched.
    if (track.rank == kNone) key.ranks = fmt::format("{} {}", track.machine, track.source);
    auto& place = places_[{track.rank, track.device, key.group, key.ranks}];
    key.place = place++;
    CollectivePart part{
        .rank = track.rank, .slice = index, .begin = slice.begin, .end = slice.end, .waiting = 0};
    const auto [entry, is_new] = calls_.try_emplace(key, call);
    const bool pair = is_one_way(entry->second.name) && is_one_way(call.name);
    if (!is_new &&
        ((entry->second.name != call.name && !pair) || entry->second.bytes != call.bytes)) {
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
    std::sort(call.parts.begin(), call.parts.end(),
              [](const CollectivePart& a, const CollectivePart& b) {
                return std::tie(a.rank, a.begin) < std::tie(b.rank, b.begin);
              });
    find_missing(key, call);
    find_waiting(call);
    const double seconds = static_cast<double>(call.transfer) / 1e9;
    if (call.bytes > 0 && seconds > 0) {
      call.algorithm_bandwidth = static_cast<double>(call.bytes) / 1e9 / seconds;
      if (call.group_size != kNone) {
        call.bus_bandwidth = call.algorithm_bandwidth * bus_factor(call.name, call.group_size);
      }
    }
  }

  void find_missing(const Key& key, CollectiveCall& call) {
    for (const std::int32_t rank : numbers_in(key.ranks)) {
      const bool here =
          std::any_of(call.parts.begin(), call.parts.end(),
                      [rank](const CollectivePart& part) { return part.rank == rank; });
      if (here || call.parts.front().rank == kNone) continue;
      call.missing.push_back(rank);
      if (!ranks_.contains(rank)) missing_ranks_.insert(rank);
    }
  }

  void find_waiting(CollectiveCall& call) {
    const auto later = [](const CollectivePart& a, const CollectivePart& b) {
      return a.begin < b.begin;
    };
    const auto longer = [](const CollectivePart& a, const CollectivePart& b) {
      return a.end - a.begin < b.end - b.begin;
    };
    auto& parts = call.parts;
    call.transfer = parts.front().end - parts.front().begin;
    if (parts.size() < 2) return;
    const auto last = trace_.one_clock ? std::max_element(parts.begin(), parts.end(), later)
                                       : std::min_element(parts.begin(), parts.end(), longer);
    call.last = last->rank;
    call.transfer = last->end - last->begin;
    Straggler& straggler = stragglers_[last->rank];
    ++straggler.last;
    for (CollectivePart& part : parts) {
      const Nanos took = part.end - part.begin;
      const Nanos waited = trace_.one_clock ? last->begin - part.begin : took - call.transfer;
      part.waiting = std::clamp<Nanos>(waited, 0, took);
      straggler.cost += part.waiting;
      stragglers_[part.rank].waited += part.waiting;
      // The transfer lasts at least as long as any rank's kernel without its waiting.
      if (trace_.one_clock) call.transfer = std::max(call.transfer, took - part.waiting);
    }
  }

  const Trace& trace_;
  std::set<std::int32_t> ranks_;
  std::map<Key, CollectiveCall> calls_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string, std::string>, std::int64_t> places_;
  std::map<std::int32_t, Straggler> stragglers_;
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
  for (const std::string_view name : {"allgather", "reducescatter", "alltoall"}) {
    if (collective == name) return (n - 1) / n;
  }
  return 1;
}

}  // namespace assay::timeline
