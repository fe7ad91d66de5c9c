#include "lane/lane.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

#include "lane/address.h"
#include "lane/message.h"

namespace assay {
namespace {
// The kernel's count of processes killed for lack of memory; 0 if it has no such count.
std::uint64_t oom_kills() {
  const auto text = read_file("/proc/vmstat");
  constexpr std::string_view kLine = "\noom_kill ";
  const std::size_t at = text ? text->find(kLine) : std::string::npos;
  return at == std::string::npos ? 0
                                 : std::strtoull(text->c_str() + at + kLine.size(), nullptr, 10);
}

// A hung server is replaced after 1 min, and its successor has 3 min for the import. After that no
// server will come.
constexpr std::chrono::seconds kSpawnLimit{300};
// The limit for a server to report the end of a killed lane.
constexpr std::chrono::seconds kReapLimit{10};

std::chrono::milliseconds time_until(std::chrono::steady_clock::time_point when) {
  const auto left = when - std::chrono::steady_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left),
                  std::chrono::milliseconds(0));
}
}  // namespace

void Lane::kill() const {
  if (pidfd_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

Status Lane::stay_on(int core) const {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (::sched_setaffinity(pid_, sizeof cores, &cores) == 0) return {};
  return errno_error("keeping a lane on one core");
}

bool Lane::alive() const {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return pidfd_ && ::poll(&ended, 1, 0) == 0;
}

bool Lane::can_lend() const {
  const std::uint64_t address = arena_->header().address.load(std::memory_order_acquire);
  std::uint64_t seen = 0;
  return address != 0 &&
         read(address + offsetof(wire::ArenaHeader, address),
              std::as_writable_bytes(std::span(&seen, 1))) &&
         seen == address;
}

void Lane::wait_until_open(std::chrono::milliseconds limit) const {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (arena_->header().address.load(std::memory_order_acquire) == 0 && alive() &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Status Lane::read(std::uint64_t address, std::span<std::byte> to) const {
  while (!to.empty()) {
    const iovec local{to.data(), to.size()};
    // An address in the lane; never dereferenced here.
    void* const there = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    const iovec remote{there, to.size()};
    const ssize_t got = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
    if (got <= 0) return errno_error("reading a lane's memory");
    address += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
  // The lane's pid may have been reused.
  return alive() ? Status() : fail("a lane has ended with results that it lent");
}

// nullopt if the server has closed the connection.
Result<std::optional<ServerMessage>> LaneSource::receive(std::chrono::milliseconds limit) {
  ASSAY_TRY(std::optional<ServerMessage> message, receive_message(connection_.get(), limit));
  if (!message) connection_.reset();
  return message;
}

Result<Lane> LaneSource::spawn(std::shared_ptr<wire::Arena> arena, bool outside_mps) {
  if (!arena) {
    ASSAY_TRY(wire::Arena made, wire::Arena::create());
    arena = std::make_shared<wire::Arena>(std::move(made));
  }
  arena->header().running.store(wire::kIdle);
  arena->header().address.store(0);
  arena->header().end.store(0);
  const auto give_up = std::chrono::steady_clock::now() + kSpawnLimit;
  while (std::chrono::steady_clock::now() < give_up) {
    ASSAY_TRY(std::optional<Lane> lane, try_spawn(arena, outside_mps));
    if (lane) return std::move(*lane);
    // The server has died; the supervisor starts another at the same address.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return fail("no lane could be forked; the fork server keeps failing");
}

Result<std::optional<Lane>> LaneSource::try_spawn(const std::shared_ptr<wire::Arena>& arena,
                                                  bool outside_mps) {
  if (!connection_) {
    ASSAY_TRY(connection_, connect_to(address_));
  }
  ASSAY_TRY(FdPair ends, make_socket_pair());
  ASSAY_TRY(const Fd log, open_for_append(log_));
  const std::string request =
      nlohmann::json{{"v", kProtocol}, {"device", device_}, {"outside_mps", outside_mps}}.dump();
  std::vector<int> fds{ends.second.get(), arena->fd(), log.get()};
  if (inputs_) fds.push_back(inputs_->fd());
  if (!send_with_fds(connection_.get(), std::as_bytes(std::span(request)), fds)) {
    connection_.reset();
    return std::optional<Lane>();
  }
  const auto give_up = std::chrono::steady_clock::now() + kSpawnLimit;
  while (true) {
    ASSAY_TRY(std::optional<ServerMessage> message, receive(time_until(give_up)));
    if (!message) return std::optional<Lane>();
    if (message->json.empty()) {  // the server hangs; the supervisor replaces it
      connection_.reset();
      return std::optional<Lane>();
    }
    if (message->json.contains("error")) return fail(message->json["error"].dump());
    if (number_in(message->json, "pid") <= 0) continue;  // the end of an earlier lane
    if (message->fds.size() != 1) return fail("the fork server sent no pidfd");
    Lane lane;
    lane.pid_ = static_cast<pid_t>(number_in(message->json, "pid"));
    lane.pidfd_ = std::move(message->fds.front());
    lane.socket_ = std::move(ends.first);
    lane.arena_ = arena;
    const auto left = message->json.find("outside_mps");
    lane.outside_mps_ = left != message->json.end() && *left == true;
    lane.oom_kills_before_ = oom_kills();
    return std::optional<Lane>(std::move(lane));
  }
}

Result<std::optional<LaneExit>> LaneSource::wait_exit(const Lane& lane,
                                                      std::chrono::milliseconds limit) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  bool killed = false;
  while (connection_) {
    ASSAY_TRY(const std::optional<ServerMessage> message, receive(time_until(deadline)));
    if (!message) break;
    if (message->json.empty()) {
      if (killed) connection_.reset();  // the server hangs, not the lane
      lane.kill();
      killed = true;
      deadline = std::chrono::steady_clock::now() + kReapLimit;
      continue;
    }
    if (number_in(message->json, "exited") != lane.pid()) continue;
    return std::optional<LaneExit>(
        LaneExit{static_cast<int>(number_in(message->json, "signal")),
                 static_cast<int>(number_in(message->json, "code")),
                 static_cast<std::uint64_t>(number_in(message->json, "max_rss_kb")),
                 oom_kills() != lane.oom_kills_before_});
  }
  return std::optional<LaneExit>();
}

}  // namespace assay
