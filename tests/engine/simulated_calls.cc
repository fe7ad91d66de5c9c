// The system calls that a simulated system answers. Threads without one get the real calls.

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>

#include "base/log_cap.h"
#include "base/orphans.h"
#include "base/private_folder.h"
#include "base/signal_watch.h"
#include "simulated_system.h"

using assay::testing::SimulatedFiles;
using assay::testing::SimulatedSystem;

namespace {

// Part of what is there.
std::size_t part_of(SimulatedSystem& system, std::size_t size) {
  return size > 1 && system.fault(8) ? 1 + system.chance().below(size) : size;
}

// Whether the descriptor is one of the system's own.
bool is_simulated(const SimulatedSystem* system, int fd) {
  return system != nullptr && SimulatedFiles::has(fd);
}

}  // namespace

// What replaces a C++ function has its mangled name and returns what it returns.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif
extern "C" {

pid_t __real_fork();
pid_t __real_waitpid(pid_t pid, int* status, int options);
int __real_kill(pid_t pid, int number);
int __real_setpgid(pid_t pid, pid_t group);
long __real_syscall(long number, ...);
int __real_pipe2(int* ends, int flags);
int __real_socketpair(int domain, int type, int protocol, int* ends);
int __real_eventfd(unsigned count, int flags);
int __real_close(int fd);
int __real_fcntl(int fd, int command, ...);
int __real_ioctl(int fd, unsigned long request, ...);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, epoll_event* event);
int __real_epoll_wait(int epoll, epoll_event* events, int most, int timeout);
int __real_poll(pollfd* fds, nfds_t count, int timeout);
ssize_t __real_read(int fd, void* bytes, std::size_t size);
ssize_t __real_write(int fd, const void* bytes, std::size_t size);
ssize_t __real_send(int socket, const void* bytes, std::size_t size, int flags);
ssize_t __real_recv(int socket, void* bytes, std::size_t size, int flags);
int __real_clock_gettime(clockid_t clock, timespec* now);
int __real_timerfd_create(int clock, int flags);

pid_t __wrap_fork() {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_fork();
  return system->out_of_system() ? (errno = EAGAIN, -1) : system->fork_process();
}

pid_t __wrap_waitpid(pid_t pid, int* status, int options) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_waitpid(pid, status, options);
  return system->wait_for(pid, status, options);
}

int __wrap_kill(pid_t pid, int number) {
  SimulatedSystem* const system = SimulatedSystem::here();
  return system == nullptr ? __real_kill(pid, number) : system->send_signal(pid, number);
}

int __wrap_setpgid(pid_t pid, pid_t group) {
  return SimulatedSystem::here() == nullptr ? __real_setpgid(pid, group) : 0;
}

long __wrap_syscall(long number, ...) {
  va_list words;
  va_start(words, number);
  long word[6];
  for (long& each : word) each = va_arg(words, long);
  va_end(words);
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr || number != SYS_pidfd_open) {
    return __real_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
  }
  if (system->out_of_system()) return errno = EMFILE, -1;
  return system->watch(static_cast<int>(word[0]));
}

int __wrap_pipe2(int* ends, int flags) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_pipe2(ends, flags);
  if (system->out_of_system()) return errno = EMFILE, -1;
  system->files().pipe(ends);
  system->made_pipe(ends[1]);
  return 0;
}

int __wrap_socketpair(int domain, int type, int protocol, int* ends) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_socketpair(domain, type, protocol, ends);
  if (system->out_of_system()) return errno = EMFILE, -1;
  system->files().socketpair(ends);
  system->made_sockets(ends[1]);
  return 0;
}

int __wrap_eventfd(unsigned count, int flags) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_eventfd(count, flags);
  const int made = system->files().eventfd(count);
  system->files().set_flags(made, O_NONBLOCK);
  return made;
}

int __wrap_close(int fd) {
  SimulatedSystem* const system = SimulatedSystem::here();
  return is_simulated(system, fd) ? system->close(fd) : __real_close(fd);
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list words;
  va_start(words, command);
  const long word = va_arg(words, long);
  va_end(words);
  SimulatedSystem* const system = SimulatedSystem::here();
  if (!is_simulated(system, fd)) return __real_fcntl(fd, command, word);
  if (command == F_GETFL) return system->files().flags(fd);
  if (command == F_SETFL) system->files().set_flags(fd, static_cast<int>(word));
  return 0;
}

// Asio's O_NONBLOCK.
int __wrap_ioctl(int fd, unsigned long request, void* word) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (!is_simulated(system, fd)) return __real_ioctl(fd, request, word);
  system->files().set_flags(fd, O_NONBLOCK);
  return 0;
}

ssize_t __wrap_read(int fd, void* bytes, std::size_t size) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system != nullptr && system->interrupts()) return errno = EINTR, -1;
  return is_simulated(system, fd) ? system->read(fd, bytes, size, true)
                                  : __real_read(fd, bytes, size);
}

ssize_t __wrap_write(int fd, const void* bytes, std::size_t size) {
  SimulatedSystem* const system = SimulatedSystem::here();
  return is_simulated(system, fd) ? system->write(fd, bytes, size, true)
                                  : __real_write(fd, bytes, size);
}

ssize_t __wrap_recv(int socket, void* bytes, std::size_t size, int flags) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_recv(socket, bytes, size, flags);
  if (system->interrupts()) return errno = EINTR, -1;
  return system->read(socket, bytes, part_of(*system, size), (flags & MSG_DONTWAIT) == 0);
}

ssize_t __wrap_send(int socket, const void* bytes, std::size_t size, int flags) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_send(socket, bytes, size, flags);
  if (system->interrupts()) return errno = EINTR, -1;
  if (system->fault(10)) {
    system->ready_later(socket);
    return errno = EAGAIN, -1;
  }
  return system->write(socket, bytes, part_of(*system, size), (flags & MSG_DONTWAIT) == 0);
}

int __wrap_epoll_create1(int flags) {
  SimulatedSystem* const system = SimulatedSystem::here();
  return system == nullptr ? __real_epoll_create1(flags) : system->files().eventfd(0);
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_epoll_ctl(epoll, operation, fd, event);
  return system->epoll_control(operation, fd, event);
}

int __wrap_epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_epoll_wait(epoll, events, most, timeout);
  return system->epoll_wait(events, most, timeout);
}

int __wrap_poll(pollfd* fds, nfds_t count, int timeout) {
  SimulatedSystem* const system = SimulatedSystem::here();
  return system == nullptr ? __real_poll(fds, count, timeout) : system->poll(fds, count, timeout);
}

// Asio then asks for time-outs of epoll_wait().
int __wrap_timerfd_create(int clock, int flags) {
  if (SimulatedSystem::here() == nullptr) return __real_timerfd_create(clock, flags);
  return errno = EINVAL, -1;
}

int __real_nanosleep(const timespec* time, timespec* left);
int __wrap_nanosleep(const timespec* time, timespec* left) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_nanosleep(time, left);
  system->pass(time->tv_sec * 1'000'000'000 + time->tv_nsec);
  return 0;
}

int __wrap_clock_gettime(clockid_t clock, timespec* now) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real_clock_gettime(clock, now);
  now->tv_sec = system->now_ns() / 1'000'000'000;
  now->tv_nsec = system->now_ns() % 1'000'000'000;
  return 0;
}

// ---- functions of src/base ----

std::chrono::steady_clock::time_point __real__ZNSt6chrono3_V212steady_clock3nowEv();
std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system == nullptr) return __real__ZNSt6chrono3_V212steady_clock3nowEv();
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(system->now_ns()));
}

void __wrap__ZN5assay13adopt_orphansEv() {}

void __wrap__ZN5assay17continue_after_usEi(pid_t) {}

assay::OrphanSweep __wrap__ZN5assay13sweep_orphansEv() {
  SimulatedSystem* const system = SimulatedSystem::here();
  return {{}, system == nullptr || !system->fault(3)};
}

// What a program only writes takes a disk's time and decides nothing.
assay::Status
__real__ZN5assay10write_fileERKNSt10filesystem7__cxx114pathESt17basic_string_viewIcSt11char_traitsIcEE(
    const std::filesystem::path& path, std::string_view text);
assay::Status
__wrap__ZN5assay10write_fileERKNSt10filesystem7__cxx114pathESt17basic_string_viewIcSt11char_traitsIcEE(
    const std::filesystem::path& path, std::string_view text) {
  if (SimulatedSystem::here() != nullptr) return {};
  return __real__ZN5assay10write_fileERKNSt10filesystem7__cxx114pathESt17basic_string_viewIcSt11char_traitsIcEE(
      path, text);
}

using Folder = assay::Result<assay::PrivateFolder>;
Folder
__wrap__ZN5assay13PrivateFolder4makeESt17basic_string_viewIcSt11char_traitsIcEENSt10filesystem7__cxx114pathE(
    std::string_view, std::filesystem::path) {
  return {};
}

assay::Status __wrap__ZN5assay8cap_logsERKNSt10filesystem7__cxx114pathEm(
    const std::filesystem::path&, std::uint64_t) {
  return {};
}

using Watch = assay::Result<std::unique_ptr<assay::SignalWatch>>;
Watch __real__ZN5assay11SignalWatch5startESt8functionIFvvEENS0_6LimitsE(
    std::function<void()> deliver, assay::SignalWatch::Limits limits);
Watch __wrap__ZN5assay11SignalWatch5startESt8functionIFvvEENS0_6LimitsE(
    std::function<void()> deliver, assay::SignalWatch::Limits limits) {
  SimulatedSystem* const system = SimulatedSystem::here();
  if (system != nullptr) system->on_signal = deliver;
  const assay::testing::RealCalls real;  // its thread is not simulated
  return __real__ZN5assay11SignalWatch5startESt8functionIFvvEENS0_6LimitsE(std::move(deliver),
                                                                           limits);
}

}  // extern "C"
