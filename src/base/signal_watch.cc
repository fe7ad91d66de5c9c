#include "base/signal_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/interruption.h"

namespace assay {
namespace {

constexpr int kInterrupted = 130;  // as shells tell of SIGINT
constexpr int kLookMs = 50;
constexpr std::string_view kBlocked =
    "\nassay: the run waits for its database or its disk; it ends within 5 s, or at once at "
    "another "
    "Ctrl-C. What is stored stays; the same command goes on from there.\n";

// Where the handler counts; -1: nobody watches.
std::atomic<int> counter{-1};

extern "C" void count_signal(int) {
  const int saved = errno;
  const std::uint64_t one = 1;
  if (const int fd = counter; fd >= 0) (void)!::write(fd, &one, sizeof one);
  errno = saved;
}

}  // namespace

Result<std::unique_ptr<SignalWatch>> SignalWatch::start(std::function<void()> deliver,
                                                        Limits limits) {
  Fd signals(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signals) return errno_error("eventfd");
  Fd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return errno_error("eventfd");
  return std::unique_ptr<SignalWatch>(
      new SignalWatch(std::move(deliver), limits, std::move(signals), std::move(stop)));
}

SignalWatch::SignalWatch(std::function<void()> deliver, Limits limits, Fd signals, Fd stop)
    : deliver_(std::move(deliver)),
      limits_(limits),
      signals_(std::move(signals)),
      stop_(std::move(stop)),
      thread_([this] { watch(); }) {
  counter = signals_.get();
  struct sigaction action {};
  action.sa_handler = &count_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &old_int_);
  ::sigaction(SIGTERM, &action, &old_term_);
}

SignalWatch::~SignalWatch() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
  counter = -1;
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void SignalWatch::watch() {
  std::uint64_t delivered = 0;
  std::uint64_t taken = 0;
  auto since = std::chrono::steady_clock::now();  // a signal waits, or the last one was taken
  while (true) {
    std::array<pollfd, 2> ready{{{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    (void)::poll(ready.data(), ready.size(), delivered > taken ? kLookMs : -1);
    if (ready[1].revents != 0) return;
    const auto now = std::chrono::steady_clock::now();
    const std::uint64_t taken_now = taken_;
    if (taken_now != taken || delivered == taken) since = now;
    taken = taken_now;
    std::uint64_t come = 0;
    if (::read(signals_.get(), &come, sizeof come) == sizeof come) {
      delivered += come;
      for (; come > 0; --come) deliver_();
    }
    if (delivered > taken) look(delivered - taken, now - since);
  }
}

void SignalWatch::look(std::uint64_t waiting, std::chrono::steady_clock::duration since) {
  if (since < limits_.loop) return;
  if (!std::exchange(told_, true)) {
    (void)!::write(STDERR_FILENO, kBlocked.data(), kBlocked.size());
    interrupt_sockets();
  }
  if (waiting > 1 || since >= limits_.end) ::_exit(kInterrupted);
}

}  // namespace assay
