#pragma once

// Drives the engine's core with simulated slots, fork servers, store and clock. They fail in every
// known way, as a seed decides. The same seed gives the same schedule.

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/core.h"

namespace assay::testing {

// The number in an environment variable; `otherwise` if it is not set.
inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  std::uint64_t next();                                                // splitmix64
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }  // 0 … bound - 1
  bool one_in(std::uint64_t odds) { return below(odds) == 0; }

 private:
  std::uint64_t state_;
};

// The behaviour of a case whenever it runs.
enum class Nature { passes, fails, flaky, kills_slot, hangs_slot, silences_slot, makes_nonsense };

inline bool answers(Nature nature) {
  return nature == Nature::passes || nature == Nature::fails || nature == Nature::flaky;
}

// Several supervisors' view of a store: leases with epochs and an end, and verdicts that are lost
// with a claimer that had not committed them.
class SimulatedStore {
 public:
  static constexpr int kUs = 1;
  static constexpr int kOther = 2;
  static constexpr int kDead = 3;
  struct Row {
    wire::JobT planned;
    Nature nature = Nature::passes;
    std::uint64_t epoch = 0;
    int holder = 0;
    std::int64_t held_until = 0;
    bool pending = false;  // finished, not yet committed
    int finished = 0;      // times
    int slots_lost = 0;    // while they held it, in this session
    Verdict verdict;
  };

  std::map<std::uint64_t, Row> rows;
  std::int64_t lease_ms = 0;  // 0: leases do not end

  std::vector<wire::JobT> claim(int who, std::size_t most, std::int64_t now);
  Supply supply(int who) const;
  void renew(int who, std::int64_t now);
  void release(int who);
  bool finish(int who, std::uint64_t id, std::uint64_t epoch, const Verdict& verdict);
  void commit(int who);
  void lose_uncommitted(int who);
  std::size_t finished() const;

 private:
  bool free(int who, const Row& row, std::int64_t now) const;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, bool trace = false);

  // Runs sessions until every case has ended; returns the first broken rule, if any.
  std::optional<std::string> run();
  std::uint64_t steps() const { return steps_; }

 private:
  struct Slot {
    bool up = false;
    bool hangs = false;  // sends nothing at all
    bool busy = false;   // sends signs of life, but no answer
    bool nonsense = false;
    bool told_to_stop = false;
    bool killed = false;
    std::uint64_t number = 0;           // of all slots that were started
    std::optional<std::int64_t> began;  // on the core's clock; nullopt: it has answered
    std::vector<wire::JobT> queue;      // not run yet
    std::vector<Judged> on_the_way;     // not delivered to the core yet
  };
  struct Server {
    bool up = true;
    bool ready = true;
    bool hangs = false;
    bool killed = false;
  };

  bool run_session(bool calm);
  void step();
  void pass_time();
  void run_case(std::size_t slot);
  void deliver(std::size_t slot);
  void end_slot(std::size_t slot, bool by_sigkill);
  void disturb();
  void disturb_slot(std::size_t slot);
  void disturb_server(std::size_t server);
  void give_up(std::size_t slot);
  void other_claimer();
  Judged answer_to(const wire::JobT& queued);

  void act();
  void perform(const StartSlot& action);
  void perform(const SendLease& action);
  void perform(const SendStop& action);
  void perform(const SendGiveBack& action);
  void perform(const KillSlot& action);
  void perform(const KillServer& action);
  void perform(const RestartServer& action);
  void perform(const ClaimCases& action);
  void perform(const RenewLeases& action);
  void perform(const Judged& action);
  void perform(const NoteFailure& action);
  void perform(const CommitStore& action);
  void perform(const Tell& action);
  void perform(const TellComplete& action);
  void perform(const FinishRun& action);

  bool servers_ready() const;
  std::size_t slots_that_begin() const;
  void check_memory();
  void check_given_back(std::size_t runs);
  void check_shared_process(const std::vector<wire::JobT>& cases);
  bool has_room(std::size_t slot, std::uint64_t id) const;
  void check_nobody_sleeps();
  void check_verdict(const SimulatedStore::Row& row, const Judged& action);
  void expect(bool holds, const char* what);
  template <typename... Words>
  void note(fmt::format_string<Words...> line, Words&&... words) {
    if (!trace_) return;
    fmt::print("{:>9} {}\n", now_, fmt::format(line, std::forward<Words>(words)...));
  }

  Chance chance_;
  Chance rare_;  // draws for faults that were added later, so that seeds keep their schedules
  bool trace_;
  SimulatedStore store_;
  MemoryBudget budget_;
  bool others_ = false;

  std::optional<Core> core_;
  std::vector<Slot> slots_;
  std::vector<Server> servers_;
  struct Held {
    std::size_t slot;
    std::uint64_t bytes;
    std::uint32_t attempt;
    bool alone;  // no other case was held meanwhile
  };
  std::map<std::uint64_t, Held> in_use_;  // the cases that slots hold
  std::set<std::uint64_t> unended_;       // claimed by the core, without a verdict
  std::set<std::uint64_t> short_of_memory_;
  std::set<std::size_t> gave_back_;         // slots without a case since then
  std::set<std::uint64_t> had_all_memory_;  // and ran out of it
  std::set<std::uint64_t> recorded_;        // in this session
  struct Ran {
    std::uint64_t slot;  // by its number
    std::uint64_t step;
  };
  std::map<std::uint64_t, Ran> first_ran_;  // slot and step of its first attempt
  std::uint64_t slots_started_ = 0;
  std::int64_t now_ = 0;
  std::int64_t core_now_ = 0;  // without the time in which the machine slept
  bool ticked_ = false;        // in this session
  std::size_t begin_at_once_ = 0;
  int faults_left_ = 0;
  int signals_ = 0;
  bool disk_full_ = false;
  bool calm_ = false;
  bool ended_ = false;
  bool complete_ = false;  // as the core reported
  StopReason strongest_ = StopReason::none;
  std::uint64_t steps_ = 0;
  std::optional<std::string> wrong_;
};

}  // namespace assay::testing
