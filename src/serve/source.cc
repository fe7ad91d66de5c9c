#include "serve/source.h"

#include <chrono>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "serve/live_run.h"
#include "serve/past_runs.h"
#include "store/folder_watch.h"
#include "store/open_store.h"
#include "store/past_folders.h"
#include "store/postgres_store.h"
#include "store/running_now.h"

namespace assay {
namespace {

constexpr int kRowsOfPoll = 20'000;
constexpr std::size_t kCasesOfLook = 20'000;  // cases that one poll of a folder reads
constexpr int kSampled = 16;                  // reads the record of one in 16 passes in a folder
constexpr std::int64_t kRateMs = 60'000;      // period over which the rate is averaged
constexpr std::int64_t kLongMs = 50;          // if reading the sums takes longer than this, …
constexpr std::int64_t kTimesAsLong = 10;     // … wait ten times as long before the next time
constexpr std::int64_t kOthersEveryMs = 600'000;  // interval at which other runs are read
constexpr std::size_t kShownWorkers = 2'000;

// Cases per second by this machine's clock, because the clocks of workers may be wrong.
class Rate {
 public:
  void note(std::uint64_t finished) {
    const std::int64_t now = monotonic_ns() / 1'000'000;
    seen_.emplace_back(now, finished);
    while (seen_.size() > 2 && now - seen_.front().first > kRateMs) seen_.pop_front();
  }
  // Adds the rate, and the time until `unfinished` cases are finished, if they are known.
  void put_into(nlohmann::json& page, std::uint64_t unfinished) const {
    const auto rate = per_second();
    if (!rate) return;
    page["rate"] = *rate;
    if (*rate > 0) page["eta_s"] = static_cast<double>(unfinished) / *rate;
  }

 private:
  std::optional<double> per_second() const {
    if (seen_.size() < 2 || seen_.back().first - seen_.front().first < 1000) return std::nullopt;
    const auto ms = static_cast<double>(seen_.back().first - seen_.front().first);
    const auto cases =
        static_cast<double>(seen_.back().second) - static_cast<double>(seen_.front().second);
    return std::max(0.0, 1000 * cases / ms);
  }

  std::deque<std::pair<std::int64_t, std::uint64_t>> seen_;
};

class DatabaseSource final : public RunSource {
 public:
  DatabaseSource(std::unique_ptr<PostgresStore> store, LiveRun run)
      : store_(std::move(store)), run_(std::move(run)) {}

  Result<bool> poll() override {
    const std::int64_t now = monotonic_ns() / 1'000'000;
    ASSAY_TRY(unfinished_, store_->unfinished());
    ASSAY_TRY(workers_, store_->holders());
    const bool first = !tally_until_ms_;
    if (first) {
      ASSAY_CHECK(store_->each_invalid([this](const InvalidLine& line) -> Status {
        run_.add(line);
        return {};
      }));
    }
    if (first || now >= *tally_until_ms_) ASSAY_CHECK(count());
    rate_.note(run_.cases());
    if (first) return true;  // shows the sums at once; reading the list takes longer
    std::size_t read = 0;
    ASSAY_TRY(last_, store_->each_listed_after(last_, kRowsOfPoll, run_.lists_passed(),
                                               [&](const FinishedCase& each) {
                                                 run_.list(each);
                                                 ++read;
                                               }));
    const bool more = read == kRowsOfPoll;
    if (!more && (!others_ms_ || now - *others_ms_ >= kOthersEveryMs)) {
      ASSAY_TRY(name_, store_->run_name());
      ASSAY_TRY(others_, store_->other_runs());
      others_ms_ = now;
    }
    return more;
  }

  nlohmann::json json() const override {
    nlohmann::json page = run_.json();
    page["version"] = kPageVersion;
    page["begun"] = begun_;
    page["planned"] = run_.cases() + unfinished_;
    page["unfinished"] = unfinished_;
    rate_.put_into(page, unfinished_);
    page["name"] = name_;
    if (others_ms_) put_history(others_, run_.totals(name_), page);
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

  Result<std::vector<CaseList::Part>> parts() override { return run_.listed().parts(); }

 private:
  // Reads the sums. If a retest has removed results, the next polls read the list again.
  Status count() {
    const std::int64_t began = monotonic_ns() / 1'000'000;
    ASSAY_TRY(Tally tally, store_->tally());
    const std::int64_t now = monotonic_ns() / 1'000'000;
    const bool again = tally_until_ms_ && tally.taken_back() != run_.tally().taken_back();
    tally_until_ms_ = now - began > kLongMs ? now + kTimesAsLong * (now - began) : now;
    if (again) {
      run_ = LiveRun(run_.properties());
      ++begun_;
      last_ = 0;
      tally_until_ms_.reset();
    }
    run_.set_tally(std::move(tally));
    return {};
  }

  std::unique_ptr<PostgresStore> store_;
  std::uint64_t begun_ = 0;  // how often the list was started again
  LiveRun run_;
  std::uint64_t unfinished_ = 0;
  std::optional<std::int64_t>
      tally_until_ms_;     // when to read the sums again; nullopt: not read yet
  std::int64_t last_ = 0;  // position of the last listed case
  std::vector<PostgresStore::Holder> workers_;
  Rate rate_;
  std::string name_;
  std::vector<RunTotals> others_;
  std::optional<std::int64_t> others_ms_;  // when others_ were read
};

// Reads the file of a run, possibly while another process writes it.
class FolderSource final : public RunSource {
 public:
  explicit FolderSource(std::filesystem::path folder)
      : folder_(std::move(folder)), watch_(folder_, kSampled) {}

  Result<bool> poll() override {
    ASSAY_TRY(const RunNews news, watch_.news(kCasesOfLook));
    const bool another = run_ && (news.begun_again || news.counts.planned != counts_.planned ||
                                  news.properties != run_->properties());
    if (another) {  // start again with the first case
      watch_.begin_again();
      run_.reset();
      return true;
    }
    if (!run_) {
      auto begun = begun_run(news.properties);
      if (!begun) {
        watch_.begin_again();
        return tl::unexpected(begun.error());
      }
      run_ = std::move(*begun);
      ++begun_;
    }
    counts_ = news.counts;
    for (const FinishedCase& each : news.cases) run_->add(each);
    rate_.note(counts_.finished);
    const bool more = news.cases.size() == kCasesOfLook;
    const std::int64_t now = monotonic_ns() / 1'000'000;
    if (!more && (!others_ms_ || now - *others_ms_ >= kOthersEveryMs)) {
      others_ = runs_beside(folder_);
      others_ms_ = now;
    }
    return more;
  }

  nlohmann::json json() const override {
    nlohmann::json page = run_ ? run_->json() : nlohmann::json::object();
    page["version"] = kPageVersion;
    if (!run_) return page;
    page["begun"] = begun_;
    page["planned"] = counts_.planned;
    page["unfinished"] = counts_.planned - counts_.finished;
    rate_.put_into(page, counts_.planned - counts_.finished);
    for (const RunningCase& each : read_running(folder_)) {
      page["running"].push_back({{"case", each.text}, {"seconds", each.seconds}});
    }
    page["name"] = folder_name(folder_);
    if (others_ms_) put_history(others_, run_->totals(folder_name(folder_)), page);
    return page;
  }

  Result<std::vector<CaseList::Part>> parts() override {
    if (!run_) return std::vector<CaseList::Part>();
    return run_->listed().parts();
  }

 private:
  Result<LiveRun> begun_run(const LiveRun::Properties& properties) const {
    LiveRun run(properties);
    ASSAY_TRY(const std::vector<InvalidLine> lines, watch_.invalid());
    for (const InvalidLine& line : lines) run.add(line);
    return run;
  }

  std::filesystem::path folder_;
  FolderWatch watch_;
  std::uint64_t begun_ = 0;  // how often it was started again
  StoreCounts counts_;
  std::optional<LiveRun> run_;
  Rate rate_;
  std::vector<RunTotals> others_;
  std::optional<std::int64_t> others_ms_;  // when others_ were read
};

}  // namespace

Result<std::unique_ptr<RunSource>> open_source(const std::string& where) {
  if (!is_store_address(where)) {
    if (!has_store(where)) {
      return usage_error("there is no run in " + where + "; name the folder of a run");
    }
    return std::make_unique<FolderSource>(where);
  }
  PostgresStore::Options options;
  options.read_only = true;
  options.patience = std::chrono::seconds(5);
  ASSAY_TRY(auto store, PostgresStore::open(where, StoreMode::existing, options));
  ASSAY_TRY(LiveRun::Properties properties, store->properties());
  return std::make_unique<DatabaseSource>(std::move(store), LiveRun(std::move(properties)));
}

}  // namespace assay
