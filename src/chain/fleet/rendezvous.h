#pragma once

// How the machines of one training stage keep in touch: rank 0 listens, the others come, all start
// together, beat, and say how they ended. One that never comes, dies or falls silent is known by
// name within a limit, over the same network that the training uses.
//
// Protocol, version 1: lines of text over TCP. A peer says `assay-rendezvous 1 TOKEN RANK`; rank 0
// answers `go` once all have come; both say `beat` every second, and at the end `end CODE SIGNAL
// SYMPTOM` (SYMPTOM 1: the training complained of losing another machine).

#include <netinet/in.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::fleet {

struct RendezvousOptions {
  std::vector<std::string> hosts;  // addresses by rank
  std::size_t rank = 0;
  int port = 6790;
  std::string token;                 // the secret that the machines share; keeps strangers out
  std::filesystem::path token_file;  // where rank 0 leaves a new secret, if `token` is empty
  stage::Seconds join{120};          // for all to come
  stage::Seconds lost{15};           // of silence before a machine is given up
};

struct NodeEnd {
  ExitStatus status;
  bool symptom = false;
};

// One line-by-line connection.
class LineSocket {
 public:
  LineSocket() = default;
  explicit LineSocket(Fd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }
  // False when the other side is gone.
  bool send(const std::string& line);
  // The whole lines that have come; false when the other side has closed.
  bool receive(std::vector<std::string>& lines);

 private:
  Fd fd_;
  std::string partial_;
};

class Rendezvous {
 public:
  static Result<Rendezvous> open(const RendezvousOptions& options);

  // Goes on gathering; true once all are here and `go` was given. Fails when the join limit is
  // over, naming who has not come.
  Result<bool> gather();
  void add_to(std::vector<pollfd>& fds) const;

  // After the start: beats, listens, and tells of the first machine that is lost or has failed.
  // `complaint` stays empty while all is well.
  std::string watch();
  // How long it has been watched. A machine that stood still meanwhile (a paused virtual machine)
  // has not watched: the others may have stood still with it, and their silence says nothing.
  stage::Seconds watched() const { return watched_; }
  // Tells the others how this machine ended.
  void announce(const NodeEnd& end);
  // All others have said how they ended.
  bool all_ended() const;
  // Says goodbye: nothing more is sent, and what others still send is read to its end, for a moment
  // at most. A connection that is closed with something unread is reset, and the reset would take
  // our last words with it before they are read over there.
  void part();
  // Who is to blame, of the machines that have ended badly, with our own end among them: those that
  // were lost or killed before those that failed, and these before those whose training complained
  // of a lost peer.
  std::string verdict(const NodeEnd& own) const;

 private:
  struct Peer {
    std::size_t rank = 0;
    LineSocket socket;
    bool here = false;
    bool lost = false;
    stage::Seconds heard{0};  // when, on the clock of watched()
    std::optional<NodeEnd> end;
  };

  Rendezvous() = default;
  std::string who(std::size_t rank) const;
  Result<bool> try_to_gather();
  bool introduce(LineSocket& stranger);
  void take_strangers();
  void connect();
  Result<bool> gather_as_first();
  Result<bool> gather_as_peer();
  void hear(Peer& peer, const std::string& line);

  struct Stranger {
    LineSocket socket;
    stage::Clock::time_point until;  // when its time to introduce itself is over
  };

  RendezvousOptions options_;
  sockaddr_in first_{};  // where rank 0 listens
  Fd listener_;
  Fd connecting_;  // to rank 0, not yet established
  stage::Clock::time_point connect_until_;
  std::vector<Stranger> strangers_;  // connected, not yet introduced; the oldest first
  std::vector<Peer> peers_;          // rank 0: all others; else rank 0 alone
  bool started_ = false;
  stage::Clock::time_point opened_;
  stage::Clock::time_point next_try_;
  stage::Clock::time_point next_beat_;
  stage::Clock::time_point looked_;
  stage::Seconds watched_{0};
};

// The name of the network interface of this machine that has an address; empty when none has.
std::string interface_of(const std::string& address);

}  // namespace assay::chain::fleet
