#pragma once

// The store of a run whose cases are created while it runs: searches request cases, the engine
// claims them, and their results go back to the searches. Nothing is stored.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/rejudge.h"
#include "shrink/search.h"
#include "store/store.h"

namespace assay {

class ShrinkStore final : public Store {
 public:
  ShrinkStore(std::vector<ShrinkSearch>& searches, std::int64_t deadline_ns);

  // Visits the first requests of the searches; the run is planned from them.
  Status each_unfinished(const std::function<Status(const StoredCase&)>& visit) override;
  Result<Supply> claim(std::size_t most,
                       const std::function<Status(const ClaimedCase&)>& visit) override;
  Result<bool> finish(const Lease& lease, const FinishedCase& finished) override;

  Result<std::map<std::string, std::string>> properties() override {
    return std::map<std::string, std::string>();
  }
  Status set_property(std::string_view, std::string_view) override { return {}; }
  Result<std::string> agree_on(std::string_view, std::string_view value) override {
    return std::string(value);
  }
  std::uint64_t added() const override { return 0; }
  Result<StoreCounts> counts() override { return StoreCounts(); }
  Status add_case(const StoredCase&) override { return {}; }
  Status add_invalid(const InvalidLine&) override { return {}; }
  Status forget_invalid() override { return {}; }
  Result<std::int64_t> forget_finished(std::span<const Outcome>) override { return 0; }
  std::optional<std::chrono::milliseconds> lease_time() const override { return std::nullopt; }
  Status renew() override { return {}; }
  Status release_all() override { return {}; }
  Status commit() override { return {}; }
  Status each_finished_id(const std::function<void(std::uint64_t)>&) override { return {}; }
  Status each(const RunQuery&, const VisitFinished&) override { return {}; }
  Result<Tally> tally() override { return Tally(); }
  Status each_invalid(const std::function<Status(const InvalidLine&)>&) override { return {}; }

 private:
  // Takes new requests of the searches. A case that several searches request runs once.
  void collect();

  std::vector<ShrinkSearch>& searches_;
  std::int64_t deadline_ns_;
  std::map<std::uint64_t, std::string> wanted_;             // not yet claimed
  std::map<std::uint64_t, std::set<std::size_t>> waiting_;  // case → searches that wait for it
  std::map<std::uint64_t, std::string> texts_;              // texts of the claimed cases
};

}  // namespace assay
