// What a database costs the workers of a run: simulated ones, each with a connection of its own,
// that sleep for as long as their cases would take. ASSAY_BENCH_STORE=postgresql://… names an empty
// schema.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "store/open_store.h"
#include "store/store.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kCaseUs = 7'000;  // as cases of the public sample take on a slot of a CPU
constexpr std::size_t kRecordBytes = 600;
constexpr std::chrono::milliseconds kTick{1000};  // how often an engine commits

struct Spent {
  Clock::duration in_store{};
  Clock::duration in_all{};
  std::uint64_t cases = 0;
};

// Claims, "works" and commits as a supervisor with one slot does, until nothing is left or the time
// is over.
Status work(const std::string& address, Clock::time_point until, Spent& spent) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(address, StoreMode::existing));
  const std::vector<std::uint8_t> record(kRecordBytes, 7);
  const auto began = Clock::now();
  const auto timed = [&](auto&& call) {
    const auto before = Clock::now();
    auto result = call();
    spent.in_store += Clock::now() - before;
    return result;
  };
  while (Clock::now() < until) {
    std::vector<Lease> leases;
    ASSAY_TRY(const Supply supply, timed([&] {
                return store->claim(1, [&](const ClaimedCase& each) -> Status {
                  leases.push_back(each.lease);
                  return {};
                });
              }));
    if (leases.empty() && supply == Supply::none) break;
    const std::size_t at_once = kTick / std::chrono::microseconds(kCaseUs);
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if (i % at_once == 0) std::this_thread::sleep_for(kTick);
      FinishedCase finished;
      finished.took_us = kCaseUs;
      finished.record = record;
      ASSAY_TRY(const bool ours, timed([&] { return store->finish(leases[i], finished); }));
      spent.cases += ours ? 1 : 0;
      if (i % at_once == at_once - 1) ASSAY_CHECK(timed([&] { return store->commit(); }));
    }
  }
  ASSAY_CHECK(timed([&] { return store->commit(); }));
  spent.in_all = Clock::now() - began;
  return {};
}

Status plan(const std::string& address, std::uint64_t cases) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(address, StoreMode::create));
  const std::string text(100, 'x');
  for (std::uint64_t id = 1; id <= cases; ++id) {
    ASSAY_CHECK(store->add_case({id * 0x9e3779b97f4a7c15, text, 1, 1, kCaseUs}));
  }
  return store->commit();
}

void Workers(benchmark::State& state) {
  const char* address = std::getenv("ASSAY_BENCH_STORE");
  if (address == nullptr) return state.SkipWithError("name a database with ASSAY_BENCH_STORE");
  const auto count = static_cast<std::size_t>(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    const Status planned = plan(address, count * 10'000);
    if (!planned) return state.SkipWithError(planned.error().message.c_str());
    std::vector<Spent> spent(count);
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    const auto until = Clock::now() + std::chrono::seconds(30);
    for (Spent& own : spent) {
      threads.emplace_back([&] { failed += work(address, until, own) ? 0 : 1; });
    }
    for (std::thread& thread : threads) thread.join();
    if (failed > 0) return state.SkipWithError("a worker has failed");
    Spent all;
    for (const Spent& own : spent) {
      all.in_store += own.in_store;
      all.in_all += own.in_all;
      all.cases += own.cases;
    }
    const auto seconds = [](Clock::duration time) {
      return std::chrono::duration<double>(time).count();
    };
    state.counters["in_store_percent"] = 100 * seconds(all.in_store) / seconds(all.in_all);
    state.counters["cases_per_s"] =
        static_cast<double>(all.cases) / (seconds(all.in_all) / static_cast<double>(count));
  }
}
BENCHMARK(Workers)->Arg(64)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
