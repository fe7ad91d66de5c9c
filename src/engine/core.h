#pragma once

// The core of a run makes all decisions: which case runs where, which cases are retried, which case
// is blamed for a death, when and why the run ends.
//
// It receives events (a slot has answered or ended, time has passed) and returns actions (start a
// slot, send it cases, record a verdict). It owns no descriptor, starts no process, reads no clock
// and never blocks. session.cc performs the actions with real processes, tests/engine/simulation.cc
// with simulated ones.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/retries.h"
#include "schedule/queue.h"
#include "store/running_now.h"
#include "store/store.h"

namespace assay {

// Why a run ends. Only a stronger reason replaces another.
enum class StopReason {
  none,              // the run continues
  complete,          // no case is left
  stopped_on_error,  // --exit_on_error
  interrupted,       // by a first signal: running cases may end within some seconds
  trouble,           // the engine itself cannot continue
  stop_now,          // by a second signal
};

struct CoreConfig {
  std::size_t slots = 1;
  std::vector<std::string> servers;  // names of the fork servers
  bool exit_on_error = false;
  std::uint64_t most_failures = 0;  // stop after so many; 0: never
  std::string logs;                 // folder of the logs of lanes, slots and servers, for messages
  // Slots that start at the same time. The CUDA driver creates contexts serially, even across
  // processes, so more slots would only delay each other. A slot counts as started after
  // `begin_ms`.
  std::size_t begin_at_once = std::numeric_limits<std::size_t>::max();
  std::int64_t begin_ms = 2'000;
  // No sign of life for this long means that a slot or fork server is hung. They send one each
  // second.
  std::int64_t silence_ms = 60'000;
  std::int64_t import_ms = 180'000;  // for a fork server that was restarted
  // Time beyond the limit of a case, in which a fork server may restart and the slot reads and
  // compares the results.
  std::int64_t slack_ms = 600'000;
  // Lifetime of the store's leases, and the number of bundles that are claimed at once.
  std::optional<std::int64_t> lease_ms;
  std::size_t claim = 1;
  // What a lane has at most. A case that needs more is out of memory.
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  // Pause after a claim without a case, while others hold cases.
  std::int64_t claim_again_ms = 1'000;
};

// ---- actions ----

struct StartSlot {
  std::size_t slot;
};
struct SendLease {
  std::size_t slot;
  std::vector<wire::JobT> cases;
};
// Asks the slot to finish its batch, answer and exit.
struct SendStop {
  std::size_t slot;
};
struct KillSlot {
  std::size_t slot;
};
// Asks an idle slot to free its memory, because a case elsewhere may need all of it.
struct SendGiveBack {
  std::size_t slot;
};
struct KillServer {
  std::size_t server;
};
struct RestartServer {
  std::size_t server;
};
struct ClaimCases {
  std::size_t bundles;
};
struct RenewLeases {};
// A case has failed for the first time.
struct NoteFailure {
  std::uint64_t id;
  std::string how;
};
struct CommitStore {};
// Shows the user a line.
struct Tell {
  std::string line;
};
// Every case has a verdict, and all slots were asked to exit.
struct TellComplete {};
// The last action: release all leases and end the event loop.
struct FinishRun {};

// A Judged is to be recorded: its verdict is final.
using Action = std::variant<StartSlot, SendLease, SendStop, KillSlot, SendGiveBack, KillServer,
                            RestartServer, ClaimCases, RenewLeases, Judged, NoteFailure,
                            CommitStore, Tell, TellComplete, FinishRun>;

// ---- the core ----

class Core {
 public:
  Core(CoreConfig config, Queue queue);

  // The next action to perform; nullopt if there is none until the next event. Events may occur
  // between two actions.
  std::optional<Action> next_action();

  // ---- events ----

  // The run starts.
  void begin();
  // Sets the time between two commits to a shared store. Claims grow with it. It may change at any
  // time.
  void set_pace(std::int64_t pace_ms) { pace_ms_ = pace_ms; }
  // The results of ClaimCases: add() for each case, then claimed() with what the store still has.
  void add(wire::JobT claimed);
  void claimed(Supply supply);

  // The slot gave a sign of life.
  void slot_spoke(std::size_t slot);
  // The slot sent answers, which count as a sign of life.
  void slot_answered(std::size_t slot, std::vector<Judged> answers);
  // The slot sent an invalid message.
  void slot_sent_invalid(std::size_t slot, const std::string& what);
  // Neither this slot nor another in its place can continue. Its cases are not to blame.
  void slot_gives_up(std::size_t slot, const std::string& why);
  // The slot's process has ended, as `how` describes. `by_sigkill`: by SIGKILL.
  void slot_gone(std::size_t slot, bool by_sigkill, const std::string& how);

  // A restarted fork server has imported its framework.
  void server_ready(std::size_t server);
  // A fork server gave a sign of life.
  void server_spoke(std::size_t server);
  // A fork server's process has ended, as `how` describes.
  void server_gone(std::size_t server, const std::string& how);

  // Time has passed. `now_ms` comes from a monotonic clock.
  void tick(std::int64_t now_ms);
  // The user wants the run to stop (Ctrl-C).
  void signal();
  // The engine cannot continue: its store fails, or a program does not start.
  void fail(Error error);

  // ---- state ----

  // The case with this id and attempt if this slot holds it, otherwise nullptr.
  const wire::JobT* held(std::size_t slot, std::uint64_t id, std::uint32_t attempt) const;
  // The case that each slot works on.
  std::vector<RunningCase> running() const;
  // Why the run ends or has ended.
  StopReason stop_reason() const { return stop_; }
  // The first error of the engine, if there was one.
  const std::optional<Error>& error() const { return error_; }

 private:
  struct Slot {
    bool up = false;
    bool killed = false;  // by the engine itself
    std::deque<wire::JobT> held;
    int deaths = 0;  // in a row, without an answer
    std::int64_t spoke_ms = 0;
    std::int64_t answered_ms = 0;          // last answer, or when it got cases while idle
    std::optional<std::int64_t> began_ms;  // start of the process; nullopt after its first answer
  };
  struct Server {
    bool ready = true;
    bool killed = false;
    int deaths = 0;
    std::int64_t spoke_ms = 0;
  };

  void go_on();
  void claim_more();
  bool renew(const wire::JobT& claimed);
  void record_too_large(const wire::JobT& claimed, std::uint64_t needed);
  void ask_for_cases();
  void complete();
  void give_work();
  bool give_lease(std::size_t slot);
  bool may_begin() const;
  void have_memory_given_back(std::size_t but_for);
  static std::uint64_t work_us(const Slot& at);  // expected, of the cases that it holds
  bool work_left() const;
  bool all_slots_gone() const;

  void take(std::size_t slot, Judged judged);
  void record(Judged ended);
  void run_again(const wire::JobT& lost, bool alone, std::uint32_t most_losses);
  void end_silent_slots();
  void end_silent_servers();
  void kill(std::size_t slot, std::string why);
  std::int64_t longest_wait_ms(const Slot& at) const;

  void stop(StopReason why);
  void finish();
  template <typename Kind>
  void act(Kind action);

  CoreConfig config_;
  Queue queue_;
  Retries retries_;
  std::vector<Slot> slots_;
  std::vector<Server> servers_;
  std::deque<Action> actions_;

  Supply supply_ = Supply::more;
  bool claiming_ = false;
  bool added_ = false;  // the current claim has given a case
  bool recorded_since_claim_ = false;
  std::int64_t claim_again_ms_ = 0;

  // The core's own clock. It counts a long pause between two ticks as a short one, because after
  // the machine was suspended all slots would look hung.
  std::int64_t clock_ms_ = 0;
  std::optional<std::int64_t> ticked_ms_;
  std::int64_t renewed_ms_ = 0;
  std::int64_t committed_ms_ = 0;
  std::int64_t hurried_ms_ = 0;
  std::int64_t pace_ms_ = 1'000;

  StopReason stop_ = StopReason::none;
  std::uint64_t failures_ = 0;   // failed verdicts of this run
  std::int64_t stop_by_ms_ = 0;  // deadline of running cases
  bool finished_ = false;
  std::optional<Error> error_;
};

}  // namespace assay
