// A fork server in a process of its own, whose lanes answer as a test wants.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "lane/address.h"
#include "lane/message.h"
#include "slot/batch.h"

namespace assay {

inline wire::Bytes answer(std::uint32_t index = 0, wire::Status status = wire::Status::ok) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateReply(builder, wire::kMessageVersion, index, status));
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

// The main function of a lane; `number` counts the lanes of its server from 0.
using LaneMain = void (*)(int number, int socket, const wire::ArenaHeader& header);

// Answers each batch of one job after a while.
inline void answer_batches(int socket, const wire::ArenaHeader&) {
  while (true) {
    const auto batch = wire::receive_frame(socket);
    if (!batch || !*batch) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!wire::send_frame(socket, answer())) return;
  }
}

// Answers every job by its text: "no kernel", "no memory", "dies", "silent", "hangs", "a second",
// or a result. The first lane does not send its answer to "reply lost". Has no kernel for a job to
// try unfilled.
inline void answer_by_text(int number, int socket, const wire::ArenaHeader& header) {
  auto& running = const_cast<wire::ArenaHeader&>(header).running;
  while (true) {
    const auto bytes = wire::receive_frame(socket);
    if (!bytes || !*bytes) return;
    const auto batch = wire::open<wire::Batch>(**bytes);
    for (std::uint32_t i = 0; i < (*batch)->jobs()->size(); ++i) {
      running.store(i);
      const std::string_view text = (*batch)->jobs()->Get(i)->test_case()->text()->string_view();
      if (text == "dies") std::_Exit(1);
      if (text == "silent") {
        const_cast<wire::ArenaHeader&>(header).started_ns.store(monotonic_ns());
        running.store(wire::kIdle);
        std::_Exit(0);
      }
      if (text == "hangs") ::pause();
      if (text == "a second") std::this_thread::sleep_for(std::chrono::seconds(1));
      if (text == "reply lost" && number == 0) continue;
      const bool unfilled =
          (*batch)->jobs()->Get(i)->attempt()->start() == wire::Start::test_lane_unfilled;
      const bool none = text == "no kernel" || unfilled;
      const wire::Status status = none                  ? wire::Status::no_kernel
                                  : text == "no memory" ? wire::Status::out_of_memory
                                                        : wire::Status::ok;
      if (!wire::send_frame(socket, answer(i, status))) return;
    }
  }
}

// Dies of every job that the test lane cannot run, which shows whether it got one.
inline void dies_of_what_none_can(int, int socket, const wire::ArenaHeader& header) {
  auto& running = const_cast<wire::ArenaHeader&>(header).running;
  while (true) {
    const auto bytes = wire::receive_frame(socket);
    if (!bytes || !*bytes) return;
    const auto batch = wire::open<wire::Batch>(**bytes);
    for (std::uint32_t i = 0; i < (*batch)->jobs()->size(); ++i) {
      running.store(i);
      if ((*batch)->jobs()->Get(i)->test_case()->text()->string_view() == "no kernel")
        std::_Exit(1);
      if (!wire::send_frame(socket, answer(i))) return;
    }
  }
}

// Forks lanes for one slot, as python/assay/server.py does.
class Server {
 public:
  Server(int listener, LaneMain lane) : listener_(listener), lane_(lane) {}

  void serve() {
    connection_ = Fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    while (true) {
      pollfd wait{connection_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 10) > 0 && !fork_lane()) return;
      int status = 0;
      while (true) {
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid <= 0) break;
        send({{"v", kProtocol},
              {"exited", pid},
              {"signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0},
              {"code", WIFEXITED(status) ? WEXITSTATUS(status) : 0}});
      }
    }
  }

 private:
  bool fork_lane() {
    std::array<char, 4096> buffer;
    auto request = receive_with_fds(connection_.get(), std::as_writable_bytes(std::span(buffer)));
    if (!request || request->bytes == 0 || request->fds.size() != 3) return false;
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto arena = wire::Arena::map(std::move(request->fds[1]));
      wire::ArenaHeader& header = arena->header();
      header.address.store(reinterpret_cast<std::uintptr_t>(&header));
      header.running.store(0);
      lane_(lanes_, request->fds[0].get(), header);
      std::_Exit(0);
    }
    ++lanes_;
    // The lane has acted before the slot hears of it.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    send({{"v", kProtocol}, {"pid", pid}}, pidfd.get());
    return true;
  }

  void send(const nlohmann::json& message, int fd = -1) const {
    const std::string text = message.dump();
    const std::span<const int> fds(&fd, fd >= 0 ? 1 : 0);
    (void)send_with_fds(connection_.get(), std::as_bytes(std::span(text)), fds);
  }

  int listener_;
  LaneMain lane_;
  Fd connection_;
  int lanes_ = 0;
};

// A fork server in its own process, which ends with this object.
class ServerProcess {
 public:
  explicit ServerProcess(LaneMain lane) {
    auto bound = listen_anywhere(8);
    address_ = bound->address;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      Server(bound->socket.get(), lane).serve();
      std::_Exit(0);
    }
    ::setpgid(pid_, pid_);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  LaneSeat seat(const std::string& label) const {
    wire::LaneSpecT spec;
    spec.label = label;
    return {spec, LaneSource(address_, "cpu", "/dev/null"), std::nullopt, nullptr, nullptr};
  }

 private:
  std::string address_;
  pid_t pid_ = -1;
};

}  // namespace assay
