#pragma once

// Drives the engine's shell, the real Session over a simulated system, as simulation.h drives its
// core: several sessions of a run, each with faults from a seed, until every case has ended.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "engine/session.h"
#include "simulated_system.h"
#include "simulation.h"

namespace assay::testing {

class ShellSimulation {
 public:
  // `folder` is for logs; several simulations may share it.
  ShellSimulation(std::uint64_t seed, const std::filesystem::path& folder);

  // Runs sessions until every case has ended; returns the first broken rule, if any.
  std::optional<std::string> run();
  std::uint64_t calls() const { return calls_; }

 private:
  class Database;
  bool run_session(bool calm);
  bool run_session(SimulatedSystem& system);
  CaseAnswer answer_to(const wire::JobT& job);

  Chance chance_;
  RunConfig config_;
  SimulatedStore store_;
  std::map<std::uint64_t, std::string> texts_;
  std::uint64_t calls_ = 0;
  std::optional<std::string> wrong_;
};

}  // namespace assay::testing
