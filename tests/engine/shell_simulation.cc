#include "shell_simulation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "../verdict/record.h"

namespace assay::testing {
namespace {

constexpr int kMostSessions = 40;
constexpr int kCalmFrom = 4;
constexpr std::int64_t kNsInMs = 1'000'000;
constexpr std::int64_t kLeaseMs = 30'000;

Nature nature_of(std::uint64_t draw) {
  if (draw < 70) return Nature::passes;
  if (draw < 82) return Nature::fails;
  if (draw < 92) return Nature::kills_slot;
  if (draw < 95) return Nature::hangs_slot;
  return draw < 98 ? Nature::silences_slot : Nature::makes_nonsense;
}

wire::Bytes record_of(const wire::JobT& job, bool passes) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<wire::LaneRecord>> lanes{
      add_lane(builder, {}, "paddle", wire::Role::test),
      add_lane(builder, {}, "torch", wire::Role::reference)};
  const std::vector<flatbuffers::Offset<wire::Comparison>> outputs{
      add_leaf(builder, measured_leaf<float>(DType::float32, {1}, {passes ? 1.0F : 2.0F}))};
  const std::vector<flatbuffers::Offset<wire::Pair>> pairs{
      wire::CreatePair(builder, 0, 1, builder.CreateVector(outputs))};
  const auto values = builder.CreateString("usual");
  const auto lane_vector = builder.CreateVector(lanes);
  const auto pair_vector = builder.CreateVector(pairs);
  const auto trials = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Trial>>{
      wire::CreateTrial(builder, values, lane_vector, pair_vector)});
  const bool fresh = job.attempt.isolation != wire::Isolation::shared;
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, job.test_case.id, job.attempt.number,
                                    fresh, 0, trials, 0.01, 0.01));
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

// The next free descriptor: a session that leaks one changes it.
int next_descriptor() {
  const Fd probe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return probe.get();
}

}  // namespace

// A store that is slow, and fails now and then.
class ShellSimulation::Database final : public RunClaims {
 public:
  Database(ShellSimulation& run, SimulatedSystem& system) : run_(run), system_(system) {}

  Result<Supply> claim(std::size_t bundles, const VisitJob& visit) override {
    ASSAY_CHECK(visit_database());
    for (wire::JobT& job : rows().claim(SimulatedStore::kUs, bundles, now_ms())) {
      job.test_case.text = run_.texts_[job.test_case.id];
      job.test_case.work_us = 1'000;
      ASSAY_CHECK(visit(std::move(job)));
    }
    return rows().supply(SimulatedStore::kUs);
  }
  std::optional<std::chrono::milliseconds> lease_time() const override {
    if (run_.store_.lease_ms == 0) return std::nullopt;
    return std::chrono::milliseconds(run_.store_.lease_ms);
  }
  Status renew() override {
    ASSAY_CHECK(visit_database());
    rows().renew(SimulatedStore::kUs, now_ms());
    return {};
  }
  Status release_all() override {
    ASSAY_CHECK(visit_database());
    rows().release(SimulatedStore::kUs);
    return {};
  }
  Result<bool> finish(const FinishedCase& finished) override {
    const Nature nature = rows().rows.at(finished.id).nature;
    const Outcome outcome = finished.verdict.outcome;
    const bool answers = nature == Nature::passes || nature == Nature::fails;
    const Outcome right = nature == Nature::passes ? Outcome::pass : Outcome::mismatch;
    if (answers && outcome != right && outcome != Outcome::crash) {
      run_.wrong_ = fmt::format("case {} gets the verdict {}", finished.id, name(outcome));
    }
    if (!answers && outcome == Outcome::pass) run_.wrong_ = "a case passes that never answered";
    return rows().finish(SimulatedStore::kUs, finished.id, finished.epoch, finished.verdict);
  }
  Status commit() override {
    ASSAY_CHECK(visit_database());
    rows().commit(SimulatedStore::kUs);
    return {};
  }

 private:
  SimulatedStore& rows() { return run_.store_; }
  std::int64_t now_ms() const { return system_.now_ns() / kNsInMs; }
  Status visit_database() {
    const std::uint64_t most_ms = system_.fault(200) ? 200'000 : 20;
    system_.pass(static_cast<std::int64_t>(system_.chance().below(most_ms)) * kNsInMs);
    if (system_.fault(2'000)) return fail("the database: it is gone");
    return {};
  }

  ShellSimulation& run_;
  SimulatedSystem& system_;
};

ShellSimulation::ShellSimulation(std::uint64_t seed, const std::filesystem::path& folder)
    : chance_(seed) {
  config_.folder = folder;
  config_.settings.mode = "accuracy";
  config_.memory_budget = 1'000;
  config_.silence_ms = 8'000;
  if (chance_.one_in(2)) store_.lease_ms = kLeaseMs;
  const std::uint64_t cases = chance_.below(12);
  for (std::uint64_t id = 1; id <= cases; ++id) {
    SimulatedStore::Row row;
    row.planned.test_case.id = id;
    row.planned.test_case.elements = 1 + chance_.below(100);
    row.planned.test_case.bytes = 1 + chance_.below(600);
    row.nature = nature_of(chance_.below(100));
    store_.rows.emplace(id, row);
    texts_.emplace(id, fmt::format("paddle.abs(Tensor([{}], \"float32\"))", id));
  }
}

CaseAnswer ShellSimulation::answer_to(const wire::JobT& job) {
  const Nature nature = store_.rows.at(job.test_case.id).nature;
  return {nature, record_of(job, nature == Nature::passes)};
}

std::optional<std::string> ShellSimulation::run() {
  const int before = next_descriptor();
  for (int session = 0; session < kMostSessions; ++session) {
    const bool complete = run_session(session >= kCalmFrom);
    // What was not committed is lost, and all leases end before the next session.
    for (auto& [id, row] : store_.rows) {
      if (std::exchange(row.pending, false)) --row.finished;
      row.holder = 0;
    }
    if (wrong_) return fmt::format("session {}: {}", session, *wrong_);
    if (next_descriptor() != before) return fmt::format("session {} leaks descriptors", session);
    if (!complete) continue;
    for (const auto& [id, row] : store_.rows) {
      if (row.finished != 1) {
        return fmt::format("complete, and case {} ended {} times", id, row.finished);
      }
    }
    return std::nullopt;
  }
  return "some case never ended";
}

// Returns whether the session reports that it is complete.
bool ShellSimulation::run_session(bool calm) {
  SimulatedSystem system(chance_.next(), calm,
                         [this](const wire::JobT& job) { return answer_to(job); });
  const bool complete = run_session(system);
  calls_ += system.calls();
  if (system.wrong()) wrong_ = wrong_.value_or(*system.wrong());
  if (system.left_open() > 0) wrong_ = wrong_.value_or("it leaks a pipe or a socket");
  return complete;
}

bool ShellSimulation::run_session(SimulatedSystem& system) {
  Database database(*this, system);
  config_.slots = static_cast<std::uint32_t>(1 + chance_.below(3));
  std::vector<ForkServer> servers;
  std::vector<wire::LaneSpecT> lanes(2);
  for (const char* name : {"paddle", "torch"}) {
    const LanePackage package{config_.folder, config_.folder};
    FrameworkConfig framework;
    framework.name = name;
    framework.python = "/bin/true";  // nothing is started
    auto server = ForkServer::start(framework, package, config_.folder / "server.log");
    if (!server || !server->wait_ready(std::chrono::minutes(3))) return false;
    servers.push_back(std::move(*server));
  }
  Totals totals;
  const RunObserver observer;
  Recorder recorder(config_, *Policies::parse("version = 1\n", "policies", {}), database, totals,
                    observer);
  Session session(config_, recorder, database, observer, std::move(servers), std::move(lanes), {});
  const auto ending = session.run();
  system.on_signal = {};
  return ending && *ending == RunEnding::complete;
}

}  // namespace assay::testing
