#pragma once

// The core of a run: everything that decides. Which case runs where, what is tried again, who is to
// blame for a death, when the run ends and why.
//
// Events come in (a slot has answered, a slot has ended, time has passed, …), actions come out
// (start a slot, send it cases, record a verdict, …). The core owns no descriptor, starts no
// process, reads no clock and waits for nothing: session.cc performs its actions with real
// processes, and tests/engine/simulation.cc with simulated ones.

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
#include "store/store.h"

namespace assay {

// Why a run ends. A reason is only ever replaced by a stronger one.
enum class StopReason {
  none,              // it goes on
  complete,          // no case is left
  stopped_on_error,  // --exit_on_error
  interrupted,       // a first signal: running cases have a while
  trouble,           // the engine itself cannot go on
  stop_now,          // a second signal
};

struct CoreConfig {
  std::size_t slots = 1;
  std::vector<std::string> servers;  // what each fork server is called
  bool exit_on_error = false;
  std::string logs;  // where lanes, slots and servers write, for messages
  // Slots that begin at a time. On GPUs, where contexts are made one after another for whatever
  // process, more would only all be late. One that has not answered after `begin_ms` is at work.
  std::size_t begin_at_once = std::numeric_limits<std::size_t>::max();
  std::int64_t begin_ms = 2'000;
  // A slot or a fork server that has said nothing for so long hangs. They speak once a second.
  std::int64_t silence_ms = 60'000;
  std::int64_t import_ms = 180'000;  // for a fork server that was started again
  // What a slot may need for a case beyond the case's own limit: a fork server that starts again,
  // reading and comparing the results.
  std::int64_t slack_ms = 600'000;
  // How long the store's leases hold, and how many bundles are claimed at once.
  std::optional<std::int64_t> lease_ms;
  std::size_t claim = 1;
  // How long after a claim that brought nothing, while others hold cases.
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
// The slot finishes what it is at, answers, and leaves.
struct SendStop {
  std::size_t slot;
};
struct KillSlot {
  std::size_t slot;
};
// The slot has nothing to do and keeps no memory: what begins elsewhere may need all that there is.
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
struct RecordVerdict {
  wire::JobT ended;
  Verdict verdict;
  std::span<const std::uint8_t> record;  // as it came with the answer; empty where none came
};
struct CommitStore {};
struct Tell {
  std::string line;
};
// Every case has its verdict, and all slots have been told to leave.
struct TellComplete {};
// The last action. Slots that still run are to be killed, and all leases released.
struct FinishRun {};

using Action = std::variant<StartSlot, SendLease, SendStop, KillSlot, SendGiveBack, KillServer,
                            RestartServer, ClaimCases, RenewLeases, RecordVerdict, CommitStore,
                            Tell, TellComplete, FinishRun>;

// ---- the core ----

class Core {
 public:
  Core(CoreConfig config, Queue queue);

  // What to do next; nullopt: nothing until something happens. Events may come in between.
  std::optional<Action> next_action();

  // ---- events ----

  void begin();
  // How long to gather between two commits to a store that many share, and to have work claimed
  // for. May be said at any time.
  void set_pace(std::int64_t pace_ms) { pace_ms_ = pace_ms; }
  // Answers ClaimCases: each of the cases, so that nobody holds all of them a second time, and then
  // what is left.
  void add(wire::JobT claimed);
  void claimed(Supply supply);

  // A slot says that it lives.
  void slot_spoke(std::size_t slot);
  void slot_answered(std::size_t slot, std::span<const Answer> answers);
  // What a slot says makes no sense.
  void slot_talks_nonsense(std::size_t slot, const std::string& what);
  // Neither it nor another in its place can go on; its cases are not to blame.
  void slot_gives_up(std::size_t slot, const std::string& why);
  // The process has ended; `by_sigkill`: of a SIGKILL.
  void slot_gone(std::size_t slot, bool by_sigkill, const std::string& how);

  // A fork server that was started again has imported its framework.
  void server_ready(std::size_t server);
  void server_spoke(std::size_t server);
  void server_gone(std::size_t server, const std::string& how);

  // Time has passed: milliseconds on a clock that never goes back.
  void tick(std::int64_t now_ms);
  // The user wants the run to stop (Ctrl-C).
  void signal();
  // Something failed that the engine cannot do without: its store, a program that does not start.
  void fail(Error error);

  // ---- what has become of it ----

  // The case with this id and attempt, if this slot holds it.
  const wire::JobT* held(std::size_t slot, std::uint64_t id, std::uint32_t attempt) const;
  StopReason stop_reason() const { return stop_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  struct Slot {
    bool up = false;
    bool killed = false;  // by us: nobody else did it
    std::deque<wire::JobT> held;
    int deaths = 0;  // without an answer between them
    std::int64_t spoke_ms = 0;
    std::int64_t answered_ms = 0;          // or began to hold cases
    std::optional<std::int64_t> began_ms;  // nullopt: it has answered
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
  void ask_for_cases();
  void complete();
  void give_work();
  bool give_lease(std::size_t slot);
  bool may_begin() const;
  void have_memory_given_back(std::size_t but_for);
  static std::uint64_t work_us(const Slot& at);  // of what it holds
  bool work_left() const;
  bool all_slots_gone() const;

  void take(std::size_t slot, const Answer& answer);
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
  bool added_ = false;  // something, for the ClaimCases that is not answered yet
  bool recorded_since_claim_ = false;
  std::int64_t claim_again_ms_ = 0;

  // Our own clock: time in which we were not running ourselves counts as a moment, or a machine
  // that slept would look like one full of slots that hang.
  std::int64_t clock_ms_ = 0;
  std::optional<std::int64_t> ticked_ms_;
  std::int64_t renewed_ms_ = 0;
  std::int64_t committed_ms_ = 0;
  std::int64_t hurried_ms_ = 0;
  std::int64_t pace_ms_ = 1'000;

  StopReason stop_ = StopReason::none;
  std::int64_t stop_by_ms_ = 0;  // running cases have until then
  bool finished_ = false;
  std::optional<Error> error_;
};

}  // namespace assay
