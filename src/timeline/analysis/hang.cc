#include "timeline/analysis/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "timeline/names.h"

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
    // Of a rank without a call nobody knows which the others ended with it: the first that they did
    // not end counts.
    if (!calls.empty() && calls.rbegin()->first < last) consider(calls.rbegin()->first + 1);
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
  const bool sends = has(name, "send ");
  const auto mine = number_behind<std::int32_t>(name, sends ? "send " : "recv ");
  const auto other = number_behind<std::int32_t>(name, sends ? "->" : "<-");
  if (mine < 0 || other < 0) return std::nullopt;
  return sends ? Transfer{mine, other, true} : Transfer{other, mine, false};
}

// A group as an entry names it. PyTorch's gloo has the default group without a name.
const ProcessGroup* group_of(const Source& source, const std::string& name) {
  const auto own = source.groups.find(name);
  if (own != source.groups.end()) return &own->second;
  const auto nameless = source.groups.find("");
  return nameless == source.groups.end() ? nullptr : &nameless->second;
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
    const ProcessGroup* const group = group_of(trace_.sources[entry.source], entry.group);
    const auto global = [&](std::int32_t rank) {
      if (group == nullptr || rank < 0) return rank;
      const auto& ranks = group->ranks;
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

struct Groups {
  std::map<std::string, GroupCalls> calls;  // without transfers
  std::map<std::string, std::set<std::int32_t>> members;
  std::map<std::string, std::string> names;

  explicit Groups(const Trace& trace) {
    for (const Source& source : trace.sources) {
      for (const auto& [name, group] : source.groups) {
        if (!name.empty()) members[name].insert(group.ranks.begin(), group.ranks.end());
      }
    }
    for (const FlightEntry& entry : trace.flight) {
      const Source& source = trace.sources[entry.source];
      if (!entry.description.empty()) names[entry.group] = entry.description;
      if (entry.p2p) continue;
      calls[entry.group][source.rank][entry.sequence] = &entry;
      if (const ProcessGroup* group = group_of(source, entry.group)) {
        members[entry.group].insert(group->ranks.begin(), group->ranks.end());
      }
    }
    for (auto& [name, group] : calls) {
      // A member whose dump has no call of this group made none.
      for (const Source& source : trace.sources) {
        if (source.dump && members[name].contains(source.rank)) group[source.rank];
      }
    }
  }
  std::string name_of(const std::string& group) const {
    const auto name = names.find(group);
    return name == names.end() ? group : name->second;
  }
};

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// Adds where the waiting ranks are, and where the missing ones were last.
void add_places(const Trace& trace, const Groups& groups, const std::string& group, Hang& hang) {
  std::map<std::string, std::vector<std::int32_t>> waiting;
  for (const std::int32_t rank : hang.waiting) {
    const FlightEntry* call = groups.calls.at(group).at(rank).at(hang.sequence);
    if (!call->frame.empty()) waiting[call->frame].push_back(rank);
  }
  for (const auto& [frame, ranks] : waiting) {
    hang.places.push_back(
        fmt::format("{} wait{} at {}", ranks_text(ranks), ranks.size() == 1 ? "s" : "", frame));
  }
  hang.blames = hang.not_called.empty();
  for (const std::int32_t rank : hang.not_called) {
    const FlightEntry* last = nullptr;
    const FlightEntry* open = nullptr;
    for (const FlightEntry& entry : trace.flight) {
      if (trace.sources[entry.source].rank != rank) continue;
      if (last == nullptr || entry.created >= last->created) last = &entry;
      if (entry.state != FlightState::completed && open == nullptr) open = &entry;
    }
    hang.blames |= open == nullptr;
    hang.victims += open != nullptr ? 1 : 0;
    if (last == nullptr) continue;
    const FlightEntry& shown = open != nullptr ? *open : *last;
    hang.places.push_back(fmt::format("rank {} {} {} number {} of {}{}", rank,
                                      open != nullptr ? "waits in" : "last called", shown.name,
                                      shown.sequence, groups.name_of(shown.group),
                                      shown.frame.empty() ? "" : " at " + shown.frame));
  }
}

// Everybody leaves these together, so a rank that has left proves that all had called.
bool ends_together(const std::string& name) {
  return has_any(name, {"all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter",
                        "all_to_all", "alltoall", "barrier"});
}

// "[[1024]] Float of rank 0, 2; [[2048]] Float of rank 1", or empty where all agree.
std::string differences(const std::map<std::int32_t, const FlightEntry*>& calls) {
  std::map<std::tuple<std::string, std::int64_t, std::string, std::int64_t>,
           std::vector<std::int32_t>>
      kinds;
  for (const auto& [rank, call] : calls) {
    kinds[{call->name, call->elements, call->dtype, call->root}].push_back(rank);
  }
  if (kinds.size() < 2) return {};
  std::string text;
  for (const auto& [kind, ranks] : kinds) {
    const FlightEntry& call = *calls.at(ranks.front());
    text += fmt::format("{}{} ha{} {} {}{}", text.empty() ? "" : ", ", ranks_text(ranks),
                        ranks.size() == 1 ? "s" : "ve", call.name, call.shapes,
                        call.root == kNone ? "" : fmt::format(" root {}", call.root));
  }
  return text;
}

}  // namespace

std::vector<Mismatch> find_mismatches(const Trace& trace) {
  std::vector<Mismatch> mismatches;
  const Groups groups(trace);
  for (const auto& [name, group] : groups.calls) {
    std::map<std::int64_t, std::map<std::int32_t, const FlightEntry*>> by_sequence;
    for (const auto& [rank, calls] : group) {
      for (const auto& [sequence, call] : calls) by_sequence[sequence][rank] = call;
    }
    for (const auto& [sequence, calls] : by_sequence) {
      const std::string text = differences(calls);
      if (text.empty()) continue;
      mismatches.push_back({groups.name_of(name), sequence, text});
      break;
    }
  }
  return mismatches;
}

std::vector<Hang> find_hangs(const Trace& trace) {
  std::vector<Hang> hangs;
  Groups groups(trace);
  for (const auto& [name, group] : groups.calls) {
    const auto open = first_open(group);
    if (!open) continue;
    const auto& members = groups.members[name];
    Hang hang = describe(group, *open, {members.begin(), members.end()});
    // The missing rank's dump is older than the others.
    if (hang.waiting.empty() && !hang.completed.empty() && ends_together(hang.name)) continue;
    hang.group = groups.name_of(name);
    add_places(trace, groups, name, hang);
    hangs.push_back(std::move(hang));
  }
  for (Hang& hang : TransferHangs(trace).find()) hangs.push_back(std::move(hang));
  std::ranges::stable_sort(hangs, {},
                           [](const Hang& hang) { return std::pair(!hang.blames, hang.victims); });
  return hangs;
}

std::string hang_table(const Trace& trace) {
  if (trace.flight.empty()) return {};
  const std::vector<Hang> hangs = find_hangs(trace);
  std::string text;
  for (const Mismatch& one : find_mismatches(trace)) {
    text += fmt::format("{}: the ranks differ in collective number {}: {}\n", one.group,
                        one.sequence, one.text);
  }
  if (hangs.empty()) return text + "flight recorder: all collectives ended\n";
  for (const Hang& hang : hangs) {
    text += fmt::format("{} number {} of {} does not end", hang.name, hang.sequence, hang.group);
    const auto say = [&](const std::vector<std::int32_t>& ranks, const char* one,
                         const char* many) {
      if (!ranks.empty())
        text += fmt::format("; {} {}", ranks_text(ranks), ranks.size() == 1 ? one : many);
    };
    say(hang.not_called, "has not called it", "have not called it");
    say(hang.no_dump, "left no dump", "left no dump");
    say(hang.waiting, "waits in it", "wait in it");
    say(hang.completed, "is through", "are through");
    for (const std::string& other : hang.other_calls) text += "; " + other;
    text += '\n';
    for (const std::string& place : hang.places) text += "  " + place + '\n';
  }
  return text;
}

}  // namespace assay::timeline
