#include "simulation.h"

namespace assay::testing {

std::uint64_t Chance::next() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31U);
}

bool SimulatedStore::free(int who, const Row& row, std::int64_t now) const {
  if (row.finished > 0) return false;
  return row.holder == 0 || (row.holder != who && lease_ms > 0 && now > row.held_until);
}

std::vector<wire::JobT> SimulatedStore::claim(int who, std::size_t most, std::int64_t now) {
  std::vector<wire::JobT> claimed;
  for (auto& [id, row] : rows) {
    if (claimed.size() == most) break;
    if (!free(who, row, now)) continue;
    row.holder = who;
    row.held_until = now + lease_ms;
    row.planned.attempt.epoch = ++row.epoch;
    claimed.push_back(row.planned);
  }
  return claimed;
}

Supply SimulatedStore::supply(int who) const {
  Supply left = Supply::none;
  for (const auto& [id, row] : rows) {
    if (row.holder == who || (row.finished > 0 && !row.pending)) continue;
    if (row.holder == 0) return Supply::more;
    left = Supply::held_elsewhere;
  }
  return left;
}

void SimulatedStore::renew(int who, std::int64_t now) {
  for (auto& [id, row] : rows) {
    if (row.holder == who) row.held_until = now + lease_ms;
  }
}

void SimulatedStore::release(int who) {
  for (auto& [id, row] : rows) {
    if (row.holder == who) row.holder = 0;
  }
}

bool SimulatedStore::finish(int who, std::uint64_t id, std::uint64_t epoch,
                            const Verdict& verdict) {
  Row& row = rows.at(id);
  if (row.holder != who || row.epoch != epoch || row.finished > 0) return false;
  ++row.finished;
  row.pending = true;
  row.verdict = verdict;
  return true;
}

void SimulatedStore::commit(int who) {
  for (auto& [id, row] : rows) {
    if (row.holder == who) row.pending = false;
  }
}

// The supervisor is gone. Its leases last until their end; without an end, the store was locked and
// is free again.
void SimulatedStore::lose_uncommitted(int who) {
  for (auto& [id, row] : rows) {
    if (row.holder != who) continue;
    if (row.pending) --row.finished;
    row.pending = false;
    row.holder = lease_ms == 0 ? 0 : kDead;
  }
}

std::size_t SimulatedStore::finished() const {
  std::size_t count = 0;
  for (const auto& [id, row] : rows) count += row.finished > 0 ? 1 : 0;
  return count;
}

}  // namespace assay::testing
