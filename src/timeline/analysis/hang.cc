#include "timeline/analysis/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace assay::timeline {
namespace {

using RankCalls = std::map<std::int64_t, const FlightEntry*>;  // in one group, by sequence
using GroupCalls = std::map<std::int32_t, RankCalls>;          // by rank

// The first call that some rank did not end or did not make.
std::optional<std::int64_t> first_open(const GroupCalls& group) {
  std::optional<std::int64_t> first;
  std::int64_t last = 0;
  for (const auto& [rank, calls] : group) {
    if (!calls.empty()) last = std::max(last, calls.rbegin()->first);
  }
  const auto consider = [&](std::int64_t sequence) {
    if (!first || sequence < *first) first = sequence;
  };
  for (const auto& [rank, calls] : group) {
    for (const auto& [sequence, entry] : calls) {
      if (entry->state != FlightState::completed) consider(sequence);
    }
    const std::int64_t own = calls.empty() ? kNone : calls.rbegin()->first;
    if (own < last) consider(own + 1);
  }
  return first;
}

Hang describe(const GroupCalls& group, std::int64_t sequence,
              const std::vector<std::int32_t>& members) {
  Hang hang;
  hang.sequence = sequence;
  std::map<std::string, std::size_t> names;
  for (const auto& [rank, calls] : group) {
    const auto call = calls.find(sequence);
    if (call == calls.end()) {
      // A dump has only the last calls; earlier ones have ended.
      const bool before = !calls.empty() && sequence < calls.begin()->first;
      (before ? hang.completed : hang.not_called).push_back(rank);
      continue;
    }
    ++names[call->second->name];
    const bool ended = call->second->state == FlightState::completed;
    (ended ? hang.completed : hang.waiting).push_back(rank);
  }
  const auto most =
      std::ranges::max_element(names, {}, [](const auto& entry) { return entry.second; });
  if (most != names.end()) hang.name = most->first;
  for (const auto& [rank, calls] : group) {
    const auto call = calls.find(sequence);
    if (call != calls.end() && call->second->name != hang.name) {
      hang.other_calls.push_back(fmt::format("rank {} called {}", rank, call->second->name));
    }
  }
  for (const std::int32_t rank : members) {
    if (!group.contains(rank)) hang.no_dump.push_back(rank);
  }
  return hang;
}

// "nccl:send 0->1", "nccl:recv 1<-0": the ranks of a transfer.
struct Transfer {
  std::int32_t from = kNone;
  std::int32_t to = kNone;
  bool sends = false;
};
std::optional<Transfer> parse_transfer(std::string_view name) {
  Transfer transfer;
  const std::size_t at = std::min(name.find("send "), name.find("recv "));
  if (at == std::string_view::npos) return std::nullopt;
  transfer.sends = name.substr(at, 4) == "send";
  const std::string_view rest = name.substr(at + 5);
  std::int32_t mine = kNone;
  std::int32_t other = kNone;
  const auto first = std::from_chars(rest.data(), rest.data() + rest.size(), mine);
  const auto left = static_cast<std::size_t>(rest.data() + rest.size() - first.ptr);
  if (first.ec != std::errc() || left < 3) return std::nullopt;
  const std::string_view arrow(first.ptr, 2);
  if (arrow != (transfer.sends ? "->" : "<-")) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 2, rest.data() + rest.size(), other);
  if (second.ec != std::errc()) return std::nullopt;
  transfer.from = transfer.sends ? mine : other;
  transfer.to = transfer.sends ? other : mine;
  return transfer;
}

// Finds sends and receives that did not end, with the missing rank.
class TransferHangs {
 public:
  explicit TransferHangs(const Trace& trace) : trace_(trace) {
    for (const FlightEntry& entry : trace.flight) {
      if (!entry.p2p || entry.state == FlightState::completed) continue;
      if (const auto transfer = parse_transfer(entry.name)) take(entry, *transfer);
    }
  }

  std::vector<Hang> find() const {
    std::vector<Hang> hangs;
    for (const auto& [key, sides] : open_) {
      const auto& [group, from, to] = key;
      const FlightEntry& entry = *(sides.send != nullptr ? sides.send : sides.receive);
      Hang hang;
      hang.group = entry.description.empty() ? entry.group : entry.description;
      hang.name = fmt::format("transfer {}->{}", from, to);
      hang.sequence = entry.sequence;
      for (const auto& [rank, side] : {std::pair(from, sides.send), std::pair(to, sides.receive)}) {
        auto& list = side != nullptr ? hang.waiting : dumped(rank) ? hang.not_called : hang.no_dump;
        list.push_back(rank);
      }
      hangs.push_back(std::move(hang));
    }
    return hangs;
  }

 private:
  struct Sides {
    const FlightEntry* send = nullptr;
    const FlightEntry* receive = nullptr;
  };

  void take(const FlightEntry& entry, const Transfer& transfer) {
    const auto& groups = trace_.sources[entry.source].groups;
    const auto group = groups.find(entry.group);
    const auto global = [&](std::int32_t rank) {
      if (group == groups.end() || rank < 0) return rank;
      const auto& ranks = group->second.ranks;
      return static_cast<std::size_t>(rank) < ranks.size() ? ranks[static_cast<std::size_t>(rank)]
                                                           : rank;
    };
    Sides& sides = open_[{entry.group, global(transfer.from), global(transfer.to)}];
    const FlightEntry*& side = transfer.sends ? sides.send : sides.receive;
    if (side == nullptr || entry.sequence < side->sequence) side = &entry;
  }

  bool dumped(std::int32_t rank) const {
    return std::ranges::find(trace_.sources, rank, &Source::rank) != trace_.sources.end();
  }

  const Trace& trace_;
  std::map<std::tuple<std::string, std::int32_t, std::int32_t>, Sides> open_;
};

}  // namespace

std::vector<Hang> find_hangs(const Trace& trace) {
  std::map<std::pair<std::string, bool>, GroupCalls> groups;
  std::map<std::string, std::set<std::int32_t>> members;
  std::map<std::string, std::string> names;
  for (const Source& source : trace.sources) {
    for (const auto& [name, group] : source.groups) {
      members[name].insert(group.ranks.begin(), group.ranks.end());
    }
  }
  for (const FlightEntry& entry : trace.flight) {
    const std::int32_t rank = trace.sources[entry.source].rank;
    groups[{entry.group, entry.p2p}][rank][entry.sequence] = &entry;
    if (!entry.description.empty()) names[entry.group] = entry.description;
  }
  std::vector<Hang> hangs;
  for (auto& [key, group] : groups) {
    const auto& [name, p2p] = key;
    if (p2p) continue;  // handled by TransferHangs
    // A member whose dump has no call of this group made none.
    for (const Source& source : trace.sources) {
      if (members[name].contains(source.rank)) group[source.rank];
    }
    const auto open = first_open(group);
    if (!open) continue;
    Hang hang = describe(group, *open, {members[name].begin(), members[name].end()});
    hang.group = names.contains(name) ? names[name] : name;
    hangs.push_back(std::move(hang));
  }
  for (Hang& hang : TransferHangs(trace).find()) hangs.push_back(std::move(hang));
  return hangs;
}

std::string hang_table(const Trace& trace) {
  if (trace.flight.empty()) return {};
  const std::vector<Hang> hangs = find_hangs(trace);
  if (hangs.empty()) return "flight recorder: all collectives ended\n";
  std::string text;
  for (const Hang& hang : hangs) {
    text += fmt::format("{}: {} number {} does not end", hang.group, hang.name, hang.sequence);
    const auto say = [&](const std::vector<std::int32_t>& ranks, const char* what) {
      if (!ranks.empty()) text += fmt::format("; rank {} {}", fmt::join(ranks, ", "), what);
    };
    say(hang.not_called, "has not called it");
    say(hang.no_dump, "left no dump");
    say(hang.waiting, "waits in it");
    say(hang.completed, "is through");
    for (const std::string& other : hang.other_calls) text += "; " + other;
    text += '\n';
  }
  return text;
}

}  // namespace assay::timeline
