// What a database costs the workers of a run: simulated ones, each with a connection of its own,
// that sleep for as long as their cases would take. ASSAY_BENCH_STORE=postgresql://… names an empty
// schema, for one of the benchmarks (--benchmark_filter).

#include <benchmark/benchmark.h>

#include <algorithm>
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
constexpr std::chrono::seconds kLong{90};
// In these all connect and claim at once, and the processes of the server are new.
constexpr std::chrono::seconds kStart{20};
constexpr std::size_t kRecordBytes = 600;
constexpr std::chrono::milliseconds kTick{1000};  // how often an engine commits, usually

struct Spent {
  Clock::duration in_store{};
  Clock::duration in_all{};

  void add(const Spent& other) {
    in_store += other.in_store;
    in_all += other.in_all;
  }
  double percent() const {
    return 100 * static_cast<double>(in_store.count()) / static_cast<double>(in_all.count());
  }
};

struct Worker {
  Spent at_start;
  Spent later;
  std::uint64_t cases = 0;
};

struct Span {
  Clock::time_point started;
  Clock::time_point until;
};

constexpr std::chrono::milliseconds kBundle{2000};  // expected work in one

// Claims, "works" and commits as a supervisor with one slot does, until nothing is left or the time
// is over; at the store's pace, or always at the usual one.
Status work(const std::string& address, std::uint64_t case_us, bool paced, const Span& span,
            Worker& worker) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(address, StoreMode::existing));
  const std::vector<std::uint8_t> record(kRecordBytes, 7);
  const auto began = Clock::now();
  const auto timed = [&](auto&& call) {
    const auto before = Clock::now();
    auto result = call();
    Spent& spent = before < span.started ? worker.at_start : worker.later;
    spent.in_store += Clock::now() - before;
    return result;
  };
  while (Clock::now() < span.until) {
    std::vector<wire::JobT> jobs;
    const auto pace = paced ? store->pace() : kTick;
    const auto bundles = static_cast<std::size_t>(std::max<std::int64_t>(pace / kBundle, 1));
    ASSAY_TRY(const Supply supply, timed([&] {
                return store->claim(bundles, [&](wire::JobT job) -> Status {
                  jobs.push_back(std::move(job));
                  return {};
                });
              }));
    if (jobs.empty() && supply == Supply::none) break;
    const std::size_t in_a_tick = pace / std::chrono::microseconds(case_us);
    for (std::size_t i = 0; i < jobs.size();) {
      const std::size_t end = std::min(i + in_a_tick, jobs.size());
      std::this_thread::sleep_for(std::chrono::microseconds((end - i) * case_us));
      for (; i < end; ++i) {
        FinishedCase finished;
        finished.id = jobs[i].test_case.id;
        finished.text = jobs[i].test_case.text;
        finished.epoch = jobs[i].attempt.epoch;
        finished.took_us = case_us;
        finished.record = record;
        ASSAY_TRY(const bool ours, timed([&] { return store->finish(finished); }));
        worker.cases += ours ? 1 : 0;
      }
      if (i < jobs.size()) ASSAY_CHECK(timed([&] { return store->commit(); }));
    }
  }
  ASSAY_CHECK(timed([&] { return store->commit(); }));
  const auto ended = Clock::now();
  worker.at_start.in_all = std::max(span.started, began) - began;
  worker.later.in_all = ended - std::max(span.started, began);
  return {};
}

Status plan(const std::string& address, std::uint64_t case_us, std::uint64_t cases) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(address, StoreMode::create));
  const std::string text(100, 'x');
  for (std::uint64_t id = 1; id <= cases; ++id) {
    ASSAY_CHECK(store->add_case(wire::planned_case(id * 0x9e3779b97f4a7c15, text, 1, 1, case_us)));
  }
  return store->commit();
}

void Workers(benchmark::State& state) {
  const char* address = std::getenv("ASSAY_BENCH_STORE");
  if (address == nullptr) return state.SkipWithError("name a database with ASSAY_BENCH_STORE");
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto case_us = static_cast<std::uint64_t>(state.range(1)) * 1000;
  for ([[maybe_unused]] auto _ : state) {
    const Status planned =
        plan(address, case_us, 2 * count * (kLong / std::chrono::microseconds(case_us)));
    if (!planned) return state.SkipWithError(planned.error().message.c_str());
    std::vector<Worker> workers(count);
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    threads.reserve(count);
    const Span span{Clock::now() + kStart, Clock::now() + kLong};
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        // Workers of a cluster are not in step.
        std::this_thread::sleep_for(kTick * i / count);
        failed += work(address, case_us, state.range(2) != 0, span, workers[i]) ? 0 : 1;
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (failed > 0) return state.SkipWithError("a worker has failed");
    Worker all;
    for (const Worker& own : workers) {
      all.at_start.add(own.at_start);
      all.later.add(own.later);
      all.cases += own.cases;
    }
    state.counters["in_store_percent_at_start"] = all.at_start.percent();
    state.counters["in_store_percent"] = all.later.percent();
    all.later.add(all.at_start);
    state.counters["in_store_percent_of_all"] = all.later.percent();
    const std::chrono::duration<double> together = all.later.in_all;
    state.counters["cases_per_s"] =
        static_cast<double>(all.cases) / (together.count() / static_cast<double>(count));
  }
}
// Cases of 7 ms, as those of the public sample take on a slot of a CPU; and as many cases in all
// from a thousand workers.
BENCHMARK(Workers)
    ->ArgNames({"workers", "case_ms", "paced"})
    ->Args({64, 7, 1})
    ->Args({1000, 110, 0})
    ->Args({1000, 110, 1})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
