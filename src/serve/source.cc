#include "serve/source.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "serve/live_run.h"
#include "store/accommodations.h"
#include "store/open_store.h"
#include "store/postgres_store.h"

namespace assay {
namespace {

constexpr int kPageVersion = 1;
constexpr int kRowsOfPoll = 20'000;
constexpr std::int64_t kRateMs = 60'000;  // over which the rate is taken
constexpr std::int64_t kCountEveryMs = 60'000;
constexpr std::size_t kShownWorkers = 2'000;

using Properties = std::map<std::string, std::string>;

// What a page shows of them.
Result<Properties> facts_of(Store& store) {
  ASSAY_TRY(Properties properties, store.properties());
  properties.erase(std::string(kAccommodations));
  return properties;
}

Result<LiveRun> live_run_of(Properties properties) {
  ASSAY_TRY(Judging judging, judging_by({}, properties));
  return LiveRun(std::move(judging));
}

// Cases a second by this machine's own clock: those of workers may be wrong.
class Rate {
 public:
  void note(std::uint64_t finished) {
    const std::int64_t now = monotonic_ns() / 1'000'000;
    seen_.emplace_back(now, finished);
    while (seen_.size() > 2 && now - seen_.front().first > kRateMs) seen_.pop_front();
  }
  std::optional<double> per_second() const {
    if (seen_.size() < 2 || seen_.back().first - seen_.front().first < 1000) return std::nullopt;
    const auto ms = static_cast<double>(seen_.back().first - seen_.front().first);
    const auto cases =
        static_cast<double>(seen_.back().second) - static_cast<double>(seen_.front().second);
    return std::max(0.0, 1000 * cases / ms);
  }

 private:
  std::deque<std::pair<std::int64_t, std::uint64_t>> seen_;
};

class DatabaseSource final : public RunSource {
 public:
  DatabaseSource(std::unique_ptr<PostgresStore> store, Properties properties, LiveRun run)
      : store_(std::move(store)), properties_(std::move(properties)), run_(std::move(run)) {}

  Result<bool> poll() override {
    const std::int64_t now = monotonic_ns() / 1'000'000;
    ASSAY_TRY(unfinished_, store_->unfinished());
    if (!counted_ms_) {  // something to show at once; millions take seconds to be counted
      ASSAY_TRY(planned_, store_->planned_about());
      planned_ = std::max(planned_, unfinished_);
      ASSAY_TRY(workers_, store_->holders());
      counted_ms_ = now - kCountEveryMs;
      return true;
    }
    if (now - *counted_ms_ >= kCountEveryMs) {
      ASSAY_TRY(const StoreCounts counts, store_->counts());
      planned_ = counts.planned;
      counted_ms_ = now;
    }
    planned_ = std::max(planned_, unfinished_);
    rate_.note(planned_ - unfinished_);
    ASSAY_TRY(workers_, store_->holders());
    const std::uint64_t before = run_.cases();
    ASSAY_TRY(last_, store_->each_finished_after(
                         last_, kRowsOfPoll, [this](const FinishedCase& each) { run_.add(each); }));
    const bool more = run_.cases() - before == kRowsOfPoll;
    // A retest has taken results back: what was counted is counted anew.
    if (!more && run_.cases() > planned_ - unfinished_) {
      ASSAY_TRY(run_, live_run_of(properties_));
      last_ = 0;
      counted_ms_.reset();
    }
    return more;
  }

  nlohmann::json json() const override {
    nlohmann::json page = run_.json();
    page["version"] = kPageVersion;
    page["properties"] = properties_;
    page["planned"] = planned_;
    page["unfinished"] = unfinished_;
    if (const auto rate = rate_.per_second()) {
      page["rate"] = *rate;
      if (*rate > 0) page["eta_s"] = static_cast<double>(unfinished_) / *rate;
    }
    nlohmann::json& workers = page["workers"] = nlohmann::json::array();
    for (const PostgresStore::Holder& each : workers_) {
      if (workers.size() == kShownWorkers) break;
      workers.push_back({{"name", each.claimer},
                         {"bundles", each.bundles},
                         {"cases", each.cases},
                         {"seconds_left", each.seconds_left}});
    }
    page["worker_count"] = workers_.size();
    return page;
  }

 private:
  std::unique_ptr<PostgresStore> store_;
  Properties properties_;
  LiveRun run_;
  std::uint64_t planned_ = 0;
  std::uint64_t unfinished_ = 0;
  std::optional<std::int64_t> counted_ms_;
  std::int64_t last_ = 0;
  std::vector<PostgresStore::Holder> workers_;
  Rate rate_;
};

// The file of a run belongs to the process that works on it, so it is read when that is done, and
// again whenever it has changed.
class FolderSource final : public RunSource {
 public:
  explicit FolderSource(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<bool> poll() override {
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(folder_ / "run.db", error);
    if (error) return fail(fmt::format("there is no run in {}", folder_.string()));
    if (read_ && changed == changed_) return false;
    ASSAY_TRY(const std::unique_ptr<Store> store, open_store(folder_, StoreMode::existing));
    ASSAY_TRY(properties_, facts_of(*store));
    ASSAY_TRY(LiveRun run, live_run_of(properties_));
    ASSAY_TRY(counts_, store->counts());
    ASSAY_CHECK(store->each_finished([&](const FinishedCase& each) -> Status {
      run.add(each);
      return {};
    }));
    read_ = std::move(run);
    changed_ = changed;
    return false;
  }

  nlohmann::json json() const override {
    nlohmann::json page = read_ ? read_->json() : nlohmann::json::object();
    page["version"] = kPageVersion;
    page["properties"] = properties_;
    page["planned"] = counts_.planned;
    page["unfinished"] = counts_.planned - counts_.finished;
    return page;
  }

 private:
  std::filesystem::path folder_;
  std::filesystem::file_time_type changed_;
  Properties properties_;
  StoreCounts counts_;
  std::optional<LiveRun> read_;
};

}  // namespace

Result<std::unique_ptr<RunSource>> open_source(const std::string& where) {
  if (!is_store_address(where)) {
    if (!has_store(where)) return usage_error("there is no run in " + where);
    return std::make_unique<FolderSource>(where);
  }
  PostgresStore::Options options;
  options.read_only = true;
  options.patience = std::chrono::seconds(5);
  ASSAY_TRY(auto store, PostgresStore::open(where, StoreMode::existing, options));
  ASSAY_TRY(Properties properties, facts_of(*store));
  ASSAY_TRY(LiveRun run, live_run_of(properties));
  return std::make_unique<DatabaseSource>(std::move(store), std::move(properties), std::move(run));
}

}  // namespace assay
