#include "chain/fleet/rendezvous.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <sstream>

#include "base/secret.h"

namespace assay::chain::fleet {
namespace {

constexpr stage::Seconds kBeatEvery{1};
constexpr stage::Seconds kTryEvery{0.3};
constexpr stage::Seconds kPartWithin{2};
constexpr std::size_t kLongestLine = 4096;
constexpr stage::Seconds kConnectWithin{1};
// Connections that say nothing must not keep a machine out: a stranger has this long, and the
// oldest goes when there are more.
constexpr stage::Seconds kIntroduceWithin{5};
constexpr std::size_t kMostStrangers = 64;

// The signal that ended the training, also where its launcher passed it on as an exit code: -9 as
// 247, and a shell's 137. 0: none.
int fatal_signal(const ExitStatus& status) {
  if (status.signal != 0) return status.signal;
  if (status.code >= 256 - 31) return 256 - status.code;
  return status.code > 128 && status.code <= 128 + 31 ? status.code - 128 : 0;
}

stage::Clock::time_point in(stage::Seconds length) {
  return stage::Clock::now() + std::chrono::duration_cast<stage::Clock::duration>(length);
}

// The IPv4 address of a host by name or number.
Result<sockaddr_in> resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) {
    return fail(fmt::format("the address of {} cannot be found", host));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

Result<Fd> listen_at(const sockaddr_in& address, const std::string& host, int port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), 64) != 0) {
    return errno_error(fmt::format("cannot listen at {}:{}", host, port));
  }
  return fd;
}

// Begins to connect; an empty descriptor when that fails at once.
Fd begin_to_connect(const sockaddr_in& address) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int begun =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return begun == 0 || errno == EINPROGRESS ? std::move(fd) : Fd();
}

// How a connection that was begun has come out; nullopt while nobody knows.
std::optional<bool> is_connected(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1) return std::nullopt;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

}  // namespace

bool LineSocket::send(const std::string& line) {
  if (!fd_) return false;
  const std::string text = line + "\n";
  // Lines are few and short: a full buffer means that the other side has not read for minutes.
  return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

bool LineSocket::receive(std::vector<std::string>& lines) {
  std::array<char, 4096> chunk;
  while (fd_) {
    const ssize_t got = ::read(fd_.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    partial_.append(chunk.data(), static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;) {
      lines.push_back(partial_.substr(0, end));
      partial_.erase(0, end + 1);
    }
    if (partial_.size() > kLongestLine) return false;
  }
  return false;
}

Result<Rendezvous> Rendezvous::open(const RendezvousOptions& options) {
  Rendezvous rendezvous;
  rendezvous.options_ = options;
  rendezvous.opened_ = rendezvous.next_try_ = rendezvous.next_beat_ = stage::Clock::now();
  // A name server may take long, so it is asked once, before anything waits for this machine.
  ASSAY_TRY(rendezvous.first_, resolve(options.hosts.front(), options.port));
  if (options.rank == 0) {
    if (options.token.empty()) {
      ASSAY_TRY(rendezvous.options_.token, new_secret());
      ASSAY_CHECK(write_secret(options.token_file, rendezvous.options_.token + "\n"));
    }
    ASSAY_TRY(rendezvous.listener_,
              listen_at(rendezvous.first_, options.hosts.front(), options.port));
    for (std::size_t rank = 1; rank < options.hosts.size(); ++rank) {
      rendezvous.peers_.emplace_back();
      rendezvous.peers_.back().rank = rank;
    }
  } else {
    rendezvous.peers_.emplace_back();
  }
  return rendezvous;
}

std::string Rendezvous::who(std::size_t rank) const {
  return fmt::format("node {} (rank {})", options_.hosts[rank], rank);
}

Result<bool> Rendezvous::gather() {
  auto all = try_to_gather();
  const bool over = !all || *all;
  std::error_code ignored;
  if (over && options_.rank == 0) std::filesystem::remove(options_.token_file, ignored);
  return all;
}

Result<bool> Rendezvous::try_to_gather() {
  if (started_) return true;
  ASSAY_TRY(started_, options_.rank == 0 ? gather_as_first() : gather_as_peer());
  looked_ = stage::Clock::now();
  if (started_) return true;
  if (stage::Clock::now() - opened_ < options_.join) return false;
  std::vector<std::string> absent;
  for (const Peer& peer : peers_) {
    if (!peer.here) absent.push_back(who(peer.rank));
  }
  if (absent.empty()) absent.push_back("another node");
  const bool no_secret = options_.rank != 0 && options_.token.empty();
  return fail(fmt::format(
      "{} never came within {:g} s{}", fmt::join(absent, ", "), options_.join.count(),
      no_secret ? fmt::format("; no secret came in {} (set ASSAY_FLEET_TOKEN to the same secret on "
                              "all machines where they share no folder)",
                              options_.token_file.string())
                : ""));
}

Result<bool> Rendezvous::gather_as_first() {
  for (Stranger& stranger : strangers_) {
    if (introduce(stranger.socket)) stranger.socket.close();
  }
  take_strangers();
  const auto now = stage::Clock::now();
  std::erase_if(strangers_,
                [&](const Stranger& stranger) { return !stranger.socket || now > stranger.until; });
  const bool all =
      std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.here; });
  if (!all) return false;
  for (Peer& peer : peers_) peer.socket.send("go");
  return true;
}

// Accepts a bounded number, so that a flood of connections does not keep this loop busy.
void Rendezvous::take_strangers() {
  for (std::size_t taken = 0; taken < kMostStrangers; ++taken) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    LineSocket socket(std::move(fd));
    if (introduce(socket)) continue;
    if (strangers_.size() == kMostStrangers) strangers_.erase(strangers_.begin());
    strangers_.push_back({std::move(socket), in(kIntroduceWithin)});
  }
}

// Reads what a stranger says. True when it is no stranger any more: it became a peer, which owns
// the connection then, or it has left or said something else.
bool Rendezvous::introduce(LineSocket& stranger) {
  std::vector<std::string> lines;
  const bool open = stranger.receive(lines);
  for (Peer& peer : peers_) {
    const std::string hello = fmt::format("assay-rendezvous 1 {} {}", options_.token, peer.rank);
    if (lines.empty() || lines.front() != hello) continue;
    peer.socket = std::move(stranger);
    peer.here = true;
    return true;
  }
  return !open || !lines.empty();
}

// Goes on connecting to rank 0, and says hello once that has worked.
void Rendezvous::connect() {
  const auto now = stage::Clock::now();
  if (!connecting_ && now >= next_try_) {
    next_try_ = in(kTryEvery);
    connect_until_ = in(kConnectWithin);
    // A secret that an earlier run has left is refused, and read anew at the next try.
    if (!options_.token_file.empty()) {
      options_.token = read_secret(options_.token_file).value_or("");
      if (options_.token.empty()) return;
    }
    connecting_ = begin_to_connect(first_);
  }
  if (!connecting_) return;
  const std::optional<bool> connected = is_connected(connecting_.get());
  if (!connected && now < connect_until_) return;
  Fd fd = std::move(connecting_);
  if (!connected.value_or(false)) return;
  Peer& first = peers_.front();
  first.socket = LineSocket(std::move(fd));
  first.here =
      first.socket.send(fmt::format("assay-rendezvous 1 {} {}", options_.token, options_.rank));
}

Result<bool> Rendezvous::gather_as_peer() {
  Peer& first = peers_.front();
  if (!first.socket) connect();
  if (!first.socket) return false;
  std::vector<std::string> lines;
  if (!first.socket.receive(lines)) {
    first.socket.close();  // rank 0 was not ready for us: try again
    first.here = false;
  }
  const auto go = std::find(lines.begin(), lines.end(), "go");
  // A training that is over at once says so in the same breath.
  for (auto line = go; line != lines.end(); ++line) hear(first, *line);
  return go != lines.end();
}

void Rendezvous::add_to(std::vector<pollfd>& fds) const {
  if (!started_ && listener_) fds.push_back({listener_.get(), POLLIN, 0});
  if (connecting_) fds.push_back({connecting_.get(), POLLOUT, 0});
  for (const Stranger& stranger : strangers_) fds.push_back({stranger.socket.fd(), POLLIN, 0});
  for (const Peer& peer : peers_) {
    if (peer.socket) fds.push_back({peer.socket.fd(), POLLIN, 0});
  }
}

void Rendezvous::hear(Peer& peer, const std::string& line) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word != "end") return;
  NodeEnd end;
  if (words >> end.status.code >> end.status.signal >> end.symptom) peer.end = end;
}

std::string Rendezvous::watch() {
  const stage::Clock::time_point now = stage::Clock::now();
  const bool beat = now >= next_beat_;
  if (beat) next_beat_ = in(kBeatEvery);
  watched_ += std::min<stage::Seconds>(now - looked_, kBeatEvery);
  looked_ = now;
  for (Peer& peer : peers_) {
    if (peer.end || peer.lost) continue;
    if (beat) peer.socket.send("beat");
    std::vector<std::string> lines;
    const bool open = peer.socket.receive(lines);
    if (!lines.empty()) peer.heard = watched_;
    for (const std::string& line : lines) hear(peer, line);
    if (peer.end) continue;
    if (!open) {
      peer.lost = true;
      return fmt::format("{} died: its connection closed", who(peer.rank));
    }
    if (watched_ - peer.heard >= options_.lost) {
      peer.lost = true;
      return fmt::format("{} was cut off: nothing heard of it for {:g} s", who(peer.rank),
                         options_.lost.count());
    }
  }
  for (const Peer& peer : peers_) {
    if (peer.end && !peer.end->status.ok()) {
      return fmt::format("{}: {}", who(peer.rank), peer.end->status.describe());
    }
  }
  return {};
}

void Rendezvous::announce(const NodeEnd& end) {
  for (Peer& peer : peers_) {
    peer.socket.send(
        fmt::format("end {} {} {}", end.status.code, end.status.signal, end.symptom ? 1 : 0));
  }
}

bool Rendezvous::all_ended() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.end.has_value() || peer.lost; });
}

void Rendezvous::part() {
  for (const Peer& peer : peers_) {
    if (peer.socket) ::shutdown(peer.socket.fd(), SHUT_WR);
  }
  const stage::Clock::time_point until = in(kPartWithin);
  const auto open = [](const Peer& peer) { return static_cast<bool>(peer.socket) && !peer.lost; };
  while (std::any_of(peers_.begin(), peers_.end(), open) && stage::Clock::now() < until) {
    std::vector<pollfd> fds;
    for (const Peer& peer : peers_) {
      if (open(peer)) fds.push_back({peer.socket.fd(), POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), 100);
    for (Peer& peer : peers_) {
      std::vector<std::string> lines;
      if (open(peer) && !peer.socket.receive(lines)) peer.socket.close();
    }
  }
}

std::string Rendezvous::verdict(const NodeEnd& own) const {
  std::string worst;
  int worst_guilt = 0;
  const auto weigh = [&](int guilt, const std::string& text) {
    if (guilt < worst_guilt) return;
    if (guilt > worst_guilt) worst.clear();
    worst_guilt = guilt;
    worst += (worst.empty() ? "" : "; ") + text;
  };
  const auto weigh_end = [&](std::size_t rank, const NodeEnd& end) {
    if (end.status.ok()) return;
    const int signal = fatal_signal(end.status);
    const int guilt = end.symptom ? 1 : signal == SIGKILL ? 3 : 2;
    const std::string killed = signal > 0 && end.status.signal == 0
                                   ? fmt::format(" (its training was killed by signal {})", signal)
                                   : "";
    weigh(guilt, fmt::format("{}: {}{}", who(rank), end.status.describe(), killed));
  };
  weigh_end(options_.rank, own);
  for (const Peer& peer : peers_) {
    if (peer.end) weigh_end(peer.rank, *peer.end);
    if (peer.lost) weigh(3, who(peer.rank) + " was lost");
  }
  return worst;
}

std::string interface_of(const std::string& address) {
  const auto wanted = resolve(address, 0);
  ifaddrs* list = nullptr;
  if (!wanted || ::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    std::memcpy(&own, entry->ifa_addr, sizeof own);
    if (own.sin_addr.s_addr == wanted->sin_addr.s_addr) return entry->ifa_name;
  }
  return {};
}

}  // namespace assay::chain::fleet
