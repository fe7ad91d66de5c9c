#include "campaign/queue.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace assay::campaign {

Queue::Queue(std::vector<QueuedUnit> models, const std::vector<std::size_t>& hosts,
             QueuePolicy policy)
    : policy_(policy) {
  for (QueuedUnit& queued : models) add(std::move(queued));
  for (const std::size_t host : hosts) {
    seats_.push_back({host, kNone});
    if (hosts_.size() <= host) hosts_.resize(host + 1);
  }
}

// New models first, then those that have failed before; within these the longest.
bool Queue::comes_before(const Model& a, const Model& b) const {
  const auto rank = [](const Model& model) {
    return std::tuple(model.queued.last, model.retried, -model.queued.seconds);
  };
  return rank(a) < rank(b);
}

bool Queue::is_free(const std::string& group) const {
  return group.empty() || std::ranges::none_of(models_, [&](const Model& model) {
           return model.state == State::running && model.queued.group == group;
         });
}

std::optional<std::size_t> Queue::lease(std::size_t seat, double now) {
  Host& host = hosts_[seats_[seat].host];
  if (stopped_ || seats_[seat].model != kNone || host.given_up || now < host.rests_until) return {};
  // One model tests whether a host is back.
  if (host.misses > 0 && host.running > 0) return {};
  std::size_t best = kNone;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const Model& model = models_[i];
    if (model.state != State::waiting || now < model.not_before) continue;
    if (best != kNone && !comes_before(model, models_[best])) continue;
    if (is_free(model.queued.group)) best = i;
  }
  if (best == kNone) return {};
  models_[best].state = State::running;
  ++models_[best].tries;
  seats_[seat].model = best;
  ++host.running;
  return best;
}

void Queue::miss(Host& host, double now) const {
  // Its other leases may report the same failure of the host.
  if (now < host.rests_until) return;
  host.given_up = ++host.misses >= policy_.most_misses;
  host.rests_until = now + policy_.rest * std::exp2(host.misses - 1);
}

void Queue::end(std::size_t seat, End end, double now) {
  Model& model = models_[std::exchange(seats_[seat].model, kNone)];
  Host& host = hosts_[seats_[seat].host];
  --host.running;
  model.state = State::waiting;
  switch (end) {
    case End::passed:
      model.state = State::passed;
      break;
    case End::failed:
      if (model.tries - model.losses > policy_.retries) model.state = State::failed;
      model.retried = true;
      break;
    case End::lost:
      model.not_before = now + policy_.hold;
      if (++model.losses >= policy_.most_losses) model.state = State::lost;
      break;
    case End::missed:
    case End::stopped:
      --model.tries;
      break;
  }
  if (end == End::lost || end == End::missed) {
    miss(host, now);
  } else if (end != End::stopped) {
    host.misses = 0;
    host.rests_until = 0;
  }
}

bool Queue::done() const {
  const auto runs = [](const Model& model) { return model.state == State::running; };
  if (std::ranges::any_of(models_, runs)) return false;
  const auto waits = [](const Model& model) { return model.state == State::waiting; };
  if (stopped_ || std::ranges::none_of(models_, waits)) return true;
  return std::ranges::all_of(hosts_, [](const Host& host) { return host.given_up; });
}

double Queue::next_time(double now) const {
  double next = std::numeric_limits<double>::infinity();
  const auto take = [&](double time) {
    if (time > now) next = std::min(next, time);
  };
  for (const Host& host : hosts_) take(host.rests_until);
  for (const Model& model : models_) {
    if (model.state == State::waiting) take(model.not_before);
  }
  return next;
}

}  // namespace assay::campaign
