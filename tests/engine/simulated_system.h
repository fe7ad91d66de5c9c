#pragma once

// A simulated operating system for the engine's shell: the real Session, SlotProcess, ForkServer
// and Process run over it unchanged. The linker replaces the system calls that decide what a
// program sees and when (-Wl,--wrap, see CMakeLists.txt): processes, readiness, time, and the
// results of reading and sending. Pipes and sockets are simulated_files.h; logs are real files.
//
// A seed decides everything: spurious and late readiness, EINTR, partial messages, the order in
// which the end of a process and of its connection are seen, calls that fail for want of
// descriptors or processes, time that jumps.

#include <poll.h>
#include <sys/epoll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "simulated_files.h"
#include "simulation.h"
#include "wire/frame.h"

namespace assay::testing {

// What the other end of a slot's connection does with its cases.
struct CaseAnswer {
  Nature nature = Nature::passes;
  wire::Bytes record;  // if it answers
};

class SimulatedSystem {
 public:
  // `answer` says what a case does in a slot. Only one lives at a time.
  SimulatedSystem(std::uint64_t seed, bool calm,
                  std::function<CaseAnswer(const wire::JobT&)> answer);
  SimulatedSystem(const SimulatedSystem&) = delete;
  SimulatedSystem& operator=(const SimulatedSystem&) = delete;
  ~SimulatedSystem();

  // The first broken rule, such as a call that blocks for ever.
  const std::optional<std::string>& wrong() const { return wrong_; }
  std::uint64_t calls() const { return calls_; }
  // Descriptors that the program has not closed. Ends the simulated processes.
  std::size_t left_open();
  // Lets `nanoseconds` pass, as in a slow disk or database.
  void pass(std::int64_t nanoseconds) { now_ns_ += nanoseconds; }
  // Whether a fault of these odds happens now. Never in a calm system.
  bool fault(std::uint64_t odds) { return !calm_ && chance_.one_in(odds); }
  Chance& chance() { return chance_; }
  // What a signal to the program calls; empty: nobody listens.
  std::function<void()> on_signal;

  // ---- called by the replaced system calls ----

  static SimulatedSystem* here();  // null in threads that are not simulated
  std::int64_t now_ns() const { return now_ns_; }
  SimulatedFiles& files() { return files_; }
  ssize_t read(int fd, void* bytes, std::size_t size, bool waits);
  ssize_t write(int fd, const void* bytes, std::size_t size, bool waits);
  void made_pipe(int writing);
  void made_sockets(int other);
  int fork_process();
  int close(int fd);
  int watch(int pid);  // pidfd_open
  int wait_for(int pid, int* status, int options);
  int send_signal(int pid, int number);
  int epoll_control(int operation, int fd, const epoll_event* event);
  int epoll_wait(epoll_event* events, int most, int timeout_ms);
  int poll(pollfd* fds, unsigned long count, int timeout_ms);
  bool interrupts();         // the call fails with EINTR
  void ready_later(int fd);  // a full socket takes bytes again
  bool out_of_system();      // the call fails for want of descriptors or processes

 private:
  struct Child {
    bool slot = false;
    Fd end;   // an event that is there once it has ended; copies are its pidfds
    Fd peer;  // the other end of its socket, or of a server's pipe
    bool ended = false;
    bool reaped = false;
    bool hangs = false;
    bool hears_stop = false;
    std::optional<int> dies;  // wait status, once it is seen
    bool said_hello = false;
    wire::FrameReader reader;
    std::deque<wire::JobT> cases;
    wire::Bytes outbox;
  };
  void step();
  void step_slot(Child& child);
  void step_server(Child& child);
  void take_message(Child& child, const wire::Bytes& message);
  void run_case(Child& child);
  void say(Child& child, const wire::Bytes& message);
  void flush(Child& child);
  void end(Child& child);
  void disturb(Child& child);
  void count_call();
  void see(int fd);

  Chance chance_;
  bool calm_;
  std::function<CaseAnswer(const wire::JobT&)> answer_;
  std::int64_t now_ns_ = 1'000'000'000'000;
  SimulatedFiles files_{[this](int fd) { see(fd); }};
  std::map<int, Child> children_;
  int next_pid_ = 5'000'000;     // above any real one
  std::deque<Fd> pipe_writers_;  // of the last pipes, for the process that is started next
  Fd socket_peer_;
  struct Watched {
    void* data;  // what epoll reports for the descriptor
    std::uint32_t events;
  };
  std::map<int, Watched> watched_;
  std::map<int, std::uint32_t> late_;  // events that nobody has seen yet, by descriptor
  std::uint64_t calls_ = 0;
  std::optional<std::string> wrong_;
};

// While it lives, this thread's calls are real.
class RealCalls {
 public:
  RealCalls();
  ~RealCalls();
  RealCalls(const RealCalls&) = delete;
  RealCalls& operator=(const RealCalls&) = delete;

 private:
  SimulatedSystem* system_;
};

}  // namespace assay::testing
