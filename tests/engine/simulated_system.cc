#include "simulated_system.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "wire/job.h"
#include "wire/messages_generated.h"

namespace assay::testing {
namespace {

thread_local SimulatedSystem* current = nullptr;

constexpr std::uint64_t kMostCalls = 400'000;  // of one session; a normal one needs some thousands
constexpr std::int64_t kNsInMs = 1'000'000;
constexpr int kKilled = SIGKILL;
constexpr int kExitOne = 1 << 8;
constexpr const char* kHello =
    R"({"v":1,"framework":"fake","version":"1","python":"3","build":"b","machine":"m","apis":1,)"
    R"("devices":["cpu"],"executions":["eager"],"notes":{},"gradients":true,"uncompiled":""})"
    "\n";

wire::Bytes from_slot(flatbuffers::FlatBufferBuilder& builder, wire::FromSlotBody kind,
                      flatbuffers::Offset<void> body) {
  builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, kind, body));
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

wire::Bytes results_with(const wire::Bytes& record) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceVectorAlignment(record.size(), sizeof(std::uint8_t), 8);
  const auto data = builder.CreateVector(record);
  const auto records = builder.CreateVector(
      std::vector<flatbuffers::Offset<wire::RecordBytes>>{wire::CreateRecordBytes(builder, data)});
  return from_slot(builder, wire::FromSlotBody::Results,
                   wire::CreateResults(builder, records).Union());
}

}  // namespace

SimulatedSystem::SimulatedSystem(std::uint64_t seed, bool calm,
                                 std::function<CaseAnswer(const wire::JobT&)> answer)
    : chance_(seed), calm_(calm), answer_(std::move(answer)) {
  current = this;
}

SimulatedSystem::~SimulatedSystem() {
  left_open();
  current = nullptr;
}

std::size_t SimulatedSystem::left_open() {
  children_.clear();
  pipe_writers_.clear();
  socket_peer_ = Fd();
  return files_.open();
}

SimulatedSystem* SimulatedSystem::here() { return current; }

RealCalls::RealCalls() : system_(std::exchange(current, nullptr)) {}
RealCalls::~RealCalls() { current = system_; }

void SimulatedSystem::count_call() {
  if (++calls_ == kMostCalls) wrong_ = "the session does not end";
  // Nothing else ends a loop that asks for ever.
  if (calls_ > 2 * kMostCalls) std::abort();
}

// ---- processes ----

void SimulatedSystem::made_pipe(int writing) {
  pipe_writers_.emplace_back(files_.duplicate(writing));
  if (pipe_writers_.size() > 2) pipe_writers_.pop_front();
}

void SimulatedSystem::made_sockets(int other) {
  socket_peer_ = Fd(files_.duplicate(other));
  pipe_writers_.clear();
}

// The last pipe tells whether the program was started: closed, it was. For a server another pipe
// was made before that, for a slot a pair of sockets.
int SimulatedSystem::fork_process() {
  Child child;
  child.slot = socket_peer_ && pipe_writers_.size() == 1;
  if (!pipe_writers_.empty()) pipe_writers_.pop_back();
  if (child.slot) {
    child.peer = std::move(socket_peer_);
  } else if (!pipe_writers_.empty()) {
    child.peer = std::move(pipe_writers_.back());
  }
  pipe_writers_.clear();
  socket_peer_ = Fd();
  if (child.peer) (void)set_nonblocking(child.peer.get());
  child.end = Fd(files_.eventfd(0));
  children_.emplace(next_pid_, std::move(child));
  return next_pid_++;
}

int SimulatedSystem::close(int fd) {
  late_.erase(fd);
  watched_.erase(fd);
  return files_.close(fd);
}

int SimulatedSystem::watch(int pid) {
  const auto found = children_.find(pid);
  if (found == children_.end()) return errno = ESRCH, -1;
  return files_.duplicate(found->second.end.get());
}

int SimulatedSystem::wait_for(int pid, int* status, int options) {
  count_call();
  const auto found = children_.find(pid);
  if (found == children_.end() || found->second.reaped) return errno = ECHILD, -1;
  Child& child = found->second;
  if ((options & WNOHANG) == 0) {
    if (!child.dies) wrong_ = "it waits for a process that nobody has told to end";
    child.dies = child.dies.value_or(kKilled);
    while (!child.ended) end(child);
  }
  if (!child.ended) return 0;
  child.reaped = true;
  *status = child.dies.value_or(0);
  return pid;
}

int SimulatedSystem::send_signal(int pid, int number) {
  const auto found = children_.find(std::abs(pid));
  if (found == children_.end() || found->second.reaped) return errno = ESRCH, -1;
  Child& child = found->second;
  if (number == SIGKILL && !child.dies) child.dies = kKilled;
  if (number == SIGTERM && !child.hangs) child.hears_stop = true;
  return 0;
}

// The end of the process is seen before or after that of its connection.
void SimulatedSystem::end(Child& child) {
  if (!child.ended && (!child.peer || chance_.one_in(2))) {
    child.ended = true;
    const std::uint64_t one = 1;
    write(child.end.get(), &one, sizeof one, false);
  } else {
    child.peer = Fd();
  }
}

// ---- the world ----

void SimulatedSystem::step() {
  for (auto& [pid, child] : children_) {
    if (child.reaped) {
      child.peer = Fd();
      continue;
    }
    if (!calm_ && chance_.one_in(4'000)) disturb(child);
    if (child.dies) {
      // Now and then a process waits for a disk, and no signal ends it for a while.
      if (!fault(60)) end(child);
    } else if (!child.ended && !child.hangs && chance_.one_in(2)) {
      child.slot ? step_slot(child) : step_server(child);
    }
  }
  if (on_signal && fault(3'000)) on_signal();
}

void SimulatedSystem::disturb(Child& child) {
  switch (chance_.below(4)) {
    case 0:
      child.hangs = true;
      break;
    case 1:
      child.dies = child.dies.value_or(kExitOne);
      break;
    case 2:
      child.dies = child.dies.value_or(kKilled);
      break;
    default:
      if (child.slot) child.outbox.insert(child.outbox.end(), {4, 0, 0, 0, 255, 255, 255, 255});
  }
}

void SimulatedSystem::step_server(Child& child) {
  if (child.hears_stop) {
    child.dies = 0;
    return;
  }
  if (!child.peer) return;
  if (child.said_hello) {
    if (chance_.one_in(3)) write(child.peer.get(), "\n", 1, false);
  } else if (chance_.one_in(4)) {
    child.said_hello = true;
    write(child.peer.get(), kHello, std::char_traits<char>::length(kHello), false);
  }
}

void SimulatedSystem::step_slot(Child& child) {
  if (!child.peer) return;
  const auto open = child.reader.feed(child.peer.get());
  while (true) {
    const auto message = child.reader.next();
    if (!message || !*message) break;
    take_message(child, **message);
  }
  if (!open || !*open) {
    child.dies = 0;
  } else if (!child.outbox.empty()) {
    flush(child);
  } else if (child.cases.empty() && child.hears_stop) {
    child.dies = 0;
  } else if (!child.cases.empty() && chance_.one_in(3)) {
    run_case(child);
  } else if (chance_.one_in(3)) {
    flatbuffers::FlatBufferBuilder builder;
    const auto alive = wire::CreateAlive(builder).Union();
    say(child, from_slot(builder, wire::FromSlotBody::Alive, alive));
  }
}

void SimulatedSystem::take_message(Child& child, const wire::Bytes& message) {
  const auto root = wire::open<wire::ToSlot>(message);
  if (!root) {
    wrong_ = "a slot gets a damaged message";
    return;
  }
  if ((*root)->body_type() == wire::ToSlotBody::Stop) child.hears_stop = true;
  const wire::Lease* lease = (*root)->body_as_Lease();
  if (lease == nullptr || lease->jobs() == nullptr) return;
  for (const wire::Job* job : *lease->jobs()) child.cases.push_back(wire::unpack(*job));
}

void SimulatedSystem::run_case(Child& child) {
  const CaseAnswer answer = answer_(child.cases.front());
  switch (answer.nature) {
    case Nature::kills_slot:
      child.dies = kExitOne;
      return;
    case Nature::hangs_slot:
    case Nature::silences_slot:
      child.hangs = true;
      return;
    case Nature::makes_nonsense:
      child.outbox.insert(child.outbox.end(), {4, 0, 0, 0, 255, 255, 255, 255});
      child.hangs = true;
      write(child.peer.get(), child.outbox.data(), child.outbox.size(), false);
      return;
    default:
      child.cases.pop_front();
      say(child, results_with(answer.record));
      if (fault(30)) say(child, results_with(answer.record));  // some answers come twice
  }
}

void SimulatedSystem::say(Child& child, const wire::Bytes& message) {
  wire::append_frame(child.outbox, message);
  flush(child);
}

// A message arrives in parts.
void SimulatedSystem::flush(Child& child) {
  const std::size_t most =
      chance_.one_in(3) ? 1 + chance_.below(child.outbox.size()) : child.outbox.size();
  const ssize_t sent = write(child.peer.get(), child.outbox.data(), most, false);
  if (sent > 0) child.outbox.erase(child.outbox.begin(), child.outbox.begin() + sent);
}

// ---- faults of calls ----

bool SimulatedSystem::interrupts() {
  count_call();
  return fault(10);
}

// A call without MSG_DONTWAIT, on a descriptor that is not O_NONBLOCK, waits.
ssize_t SimulatedSystem::read(int fd, void* bytes, std::size_t size, bool waits) {
  bool blocks = false;
  const ssize_t got = files_.read(fd, bytes, size, blocks);
  if (got < 0 && blocks && waits) wrong_ = "it reads what may not come";
  return got;
}

ssize_t SimulatedSystem::write(int fd, const void* bytes, std::size_t size, bool waits) {
  bool blocks = false;
  const ssize_t got = files_.write(fd, bytes, size, blocks);
  if (got < 0 && blocks && waits) wrong_ = "it waits for room in a full pipe";
  return got;
}

bool SimulatedSystem::out_of_system() { return fault(3'000); }

void SimulatedSystem::ready_later(int fd) {
  if (watched_.contains(fd)) late_[fd] |= EPOLLOUT;
}

// ---- readiness and time ----

// Edges, as EPOLLET reports them: what is there when a descriptor is watched, and what comes later.
int SimulatedSystem::epoll_control(int operation, int fd, const epoll_event* event) {
  late_.erase(fd);
  watched_.erase(fd);
  if (operation == EPOLL_CTL_DEL) return 0;
  watched_[fd] = {event->data.ptr, event->events | EPOLLERR | EPOLLHUP};
  see(fd);
  return 0;
}

void SimulatedSystem::see(int fd) {
  const auto watched = watched_.find(fd);
  if (watched == watched_.end()) return;
  if (const auto events = files_.ready(fd) & watched->second.events) late_[fd] |= events;
}

// Events are seen at once, later, or although nothing has happened.
int SimulatedSystem::epoll_wait(epoll_event* events, int most, int timeout_ms) {
  const std::int64_t until = now_ns_ + (timeout_ms < 0 ? INT64_MAX / 4 : timeout_ms * kNsInMs);
  while (true) {
    count_call();
    if (calls_ > kMostCalls && on_signal) on_signal();  // two signals end any loop
    if (chance_.one_in(2)) step();
    if (fault(50)) return errno = EINTR, -1;
    if (fault(10) && !watched_.empty()) {
      auto any = watched_.begin();
      std::advance(any, static_cast<std::ptrdiff_t>(chance_.below(watched_.size())));
      late_[any->first] |= EPOLLIN;
    }
    int seen = 0;
    for (auto at = late_.begin(); at != late_.end() && seen < most;) {
      if (!calm_ && chance_.one_in(3)) {
        ++at;
        continue;
      }
      events[seen].events = at->second;
      events[seen].data.ptr = watched_.at(at->first).data;
      ++seen;
      at = late_.erase(at);
    }
    if (seen > 0) {
      if (fault(4)) std::reverse(events, events + seen);
      return seen;
    }
    if (now_ns_ >= until) return 0;
    const std::int64_t most_ns = calm_ || !chance_.one_in(500) ? 400 * kNsInMs : 90'000 * kNsInMs;
    now_ns_ += std::min<std::int64_t>(
        until - now_ns_,
        1 + static_cast<std::int64_t>(chance_.below(static_cast<std::uint64_t>(most_ns))));
  }
}

int SimulatedSystem::poll(pollfd* fds, unsigned long count, int timeout_ms) {
  const std::int64_t until = now_ns_ + (timeout_ms < 0 ? INT64_MAX / 4 : timeout_ms * kNsInMs);
  while (true) {
    count_call();
    if (timeout_ms != 0) step();
    if (timeout_ms != 0 && fault(50)) return errno = EINTR, -1;
    int got = 0;
    for (unsigned long i = 0; i < count; ++i) {
      const std::uint32_t wanted = static_cast<std::uint32_t>(fds[i].events) | POLLERR | POLLHUP;
      fds[i].revents = static_cast<short>(files_.ready(fds[i].fd) & wanted);
      got += fds[i].revents != 0 ? 1 : 0;
    }
    if (got != 0 || now_ns_ >= until) return got;
    now_ns_ += std::min<std::int64_t>(until - now_ns_, 50 * kNsInMs);
  }
}

}  // namespace assay::testing
