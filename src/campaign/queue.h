#pragma once

// Decides which unit (a model, or a round) runs where and when. It does no I/O and reads no clock,
// so a simulation can drive it through failures that machines rarely show. Times are seconds of any
// steady clock.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::campaign {

struct QueuedUnit {
  std::string group;   // models of one group write to one folder and run one at a time; "": none
  double seconds = 0;  // expected; the longest runs first
  bool last = false;   // runs after all others: it failed for many nights
};

struct QueuePolicy {
  int retries = 0;      // of a model that failed
  int most_losses = 3;  // a model that was lost so often has ended
  int most_misses = 3;  // a host that was lost or not reached so often in a row is given up
  double hold = 0;      // seconds until a lost model starts elsewhere; it may still run there
  double rest = 5;      // seconds until a host is asked again; doubles with each miss
};

class Queue {
 public:
  // How a model's run on a seat ended.
  enum class End : std::uint8_t {
    passed,
    failed,
    lost,     // the seat vanished while the model ran
    missed,   // the seat could not be reached; the model never started
    stopped,  // by the user
  };
  enum class State : std::uint8_t { waiting, running, passed, failed, lost };

  // `hosts` has the host of each seat, by number.
  Queue(std::vector<QueuedUnit> models, const std::vector<std::size_t>& hosts, QueuePolicy policy);

  // Adds a model, whose number is the next one.
  void add(QueuedUnit queued) { models_.emplace_back().queued = std::move(queued); }
  // Leases a model to the seat, or nothing if the seat is busy or rests, or if no model fits now.
  std::optional<std::size_t> lease(std::size_t seat, double now);
  // Ends the seat's lease.
  void end(std::size_t seat, End end, double now);
  // Leases nothing from now on.
  void stop() { stopped_ = true; }

  // True once nothing runs and nothing can start any more.
  bool done() const;
  // The next time at which lease() may succeed without an end().
  double next_time(double now) const;

  State state(std::size_t model) const { return models_[model].state; }
  int tries(std::size_t model) const { return models_[model].tries; }
  bool given_up(std::size_t host) const { return hosts_[host].given_up; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Model {
    QueuedUnit queued;
    State state = State::waiting;
    int tries = 0;  // that started
    int losses = 0;
    double not_before = 0;
    bool retried = false;
  };
  struct Host {
    int misses = 0;   // in a row
    int running = 0;  // leases
    double rests_until = 0;
    bool given_up = false;
  };
  struct Seat {
    std::size_t host = 0;
    std::size_t model = kNone;  // leased
  };

  bool comes_before(const Model& a, const Model& b) const;
  bool is_free(const std::string& group) const;
  void miss(Host& host, double now) const;

  std::vector<Model> models_;
  std::vector<Host> hosts_;
  std::vector<Seat> seats_;
  QueuePolicy policy_;
  bool stopped_ = false;
};

}  // namespace assay::campaign
