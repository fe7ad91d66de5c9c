// Kinds of causes, one small trace each: who is named, in which steps, why, and the step without.

#include <gmock/gmock.h>

#include <functional>

#include "rank_trace.h"
#include "support.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;
using testing::HasSubstr;

// What a rank does in a step, in microseconds: it loads, does something on the host, copies,
// computes, meets its group, and computes again.
struct Doing {
  int load = 20;
  int host = 0;
  int copy = 20;
  int compute = 200;
  int transfer = 40;
  int after = 20;  // the second kernel
  int pause = 0;   // of all ranks, after the step
  int grid = 1000;
  const char* did = "gc.collect";
};
constexpr int kUsual = 20 + 20 + 200 + 40 + 20 + 10;

struct Kind {
  const char* what;
  std::function<Doing(int rank, int step)> doing;
  const char* name = "";  // of the first culprit; empty: nobody
  const char* when = "";
  const char* cause = "";
  int without = kUsual;  // 0: not confirmed
  int ranks = 4;
  int steps = 12;
  int group = 0;          // ranks that meet; 0: all
  int per_host = 8;       // ranks of a host
  const char* told = "";  // in the first lines
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.what; }

class Kinds : public TheInsights, public testing::WithParamInterface<Kind> {
 protected:
  void run(const Kind& kind) {
    const int group = kind.group == 0 ? kind.ranks : kind.group;
    std::vector<RankTrace> traces;
    for (int rank = 0; rank < kind.ranks; ++rank) {
      traces.emplace_back(rank, kind.ranks, fmt::format("node{}", rank / kind.per_host));
    }
    int mark = 0;
    for (int step = 0; step < kind.steps; ++step) {
      std::vector<Doing> all;
      for (int rank = 0; rank < kind.ranks; ++rank) all.push_back(kind.doing(rank, step));
      const auto ready = [&](int rank) {
        const Doing& one = all[static_cast<std::size_t>(rank)];
        return mark + one.load + one.host + one.copy + one.compute;
      };
      std::vector<int> met;  // by group
      for (int first = 0; first < kind.ranks; first += group) {
        int last = 0;
        for (int rank = first; rank < first + group; ++rank) last = std::max(last, ready(rank));
        met.push_back(last + all[static_cast<std::size_t>(first)].transfer);
      }
      int end = 0;
      for (int rank = 0; rank < kind.ranks; ++rank) {
        const Doing& one = all[static_cast<std::size_t>(rank)];
        const int meeting = group < kind.ranks ? 5 : 0;  // of all, if groups met
        end = std::max(end, met[static_cast<std::size_t>(rank / group)] + one.after + meeting);
      }
      for (int rank = 0; rank < kind.ranks; ++rank) {
        write(traces[static_cast<std::size_t>(rank)], all[static_cast<std::size_t>(rank)], mark,
              met[static_cast<std::size_t>(rank / group)], end,
              members(rank / group * group, group),
              group < kind.ranks ? members(0, kind.ranks) : "", step);
      }
      if (all[0].pause > 0) {
        for (RankTrace& trace : traces) trace.range(all[0].did, end + 1, end + all[0].pause);
      }
      mark = end + 10 + all[0].pause;
    }
    std::vector<test::fs::path> paths;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      paths.push_back(test::write(folder_ / fmt::format("r{}.json", i), traces[i].text()));
    }
    LoadOptions options;
    options.import.analysis = true;
    auto trace = load_traces(paths, options);
    ASSERT_TRUE(trace) << trace.error().message;
    use(std::move(*trace));
  }

 private:
  static std::string members(int first, int count) {
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), first);
    return fmt::format("[{}]", fmt::join(ranks, ", "));
  }
  static void write(RankTrace& trace, const Doing& one, int mark, int met, int end,
                    const std::string& members, const std::string& all, int step) {
    trace.range(fmt::format("ProfilerStep#{}", step), mark, end + 10);
    trace.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", mark,
                mark + one.load - 2);
    int now = mark + one.load;
    if (one.host > 0) trace.range(one.did, now - 1, now + one.host - 2);
    now += one.host;
    trace.event(fmt::format(
        R"("cat":"cuda_runtime","name":"cudaMemcpyAsync","ts":{},"dur":1,"args":{{"correlation":{}}})",
        now - 1, 100'000 + now));
    trace.copy(now, one.copy, 100'000 + now);
    now += one.copy;
    trace.kernel("gemm", mark + one.load + one.host, now, now + one.compute, 0,
                 fmt::format(R"(,"grid":[{},1,1])", one.grid));
    now += one.compute;
    trace.collective("allreduce", now, met, 1000, members);
    trace.kernel("adam", now, met, met + one.after);
    if (!all.empty()) trace.collective("allreduce", met + one.after, end, 10, all);
  }
};

TEST_P(Kinds, AreNamed) {
  const Kind& kind = GetParam();
  run(kind);
  const std::string answer = answer_table(analysis_, insights_);
  EXPECT_THAT(answer, HasSubstr(kind.told));
  if (*kind.name == '\0') {
    EXPECT_THAT(insights_.culprits, testing::IsEmpty()) << answer;
    return;
  }
  ASSERT_FALSE(insights_.culprits.empty()) << answer;
  EXPECT_THAT(answer, testing::Not(HasSubstr("pause:")));
  const Culprit& first = insights_.culprits[0];
  EXPECT_EQ(first.name, kind.name) << answer;
  EXPECT_EQ(first.when, kind.when) << answer;
  EXPECT_THAT(first.cause, HasSubstr(kind.cause)) << answer;
  if (kind.without == 0) return;
  EXPECT_NEAR(static_cast<double>(first.without) / 1e3, kind.without, 0.01 * kind.without)
      << answer;
}

Doing slow(int times_100) { return {.compute = 2 * times_100}; }

INSTANTIATE_TEST_SUITE_P(
    Causes, Kinds,
    testing::Values(
        Kind{"noise", [](int r, int s) { return Doing{.compute = 200 + (7 * r + 5 * s) % 5}; }},
        Kind{"a fast rank", [](int r, int) { return slow(r == 1 ? 70 : 100); }},
        Kind{"one step", [](int r, int s) { return slow(r == 3 && s == 6 ? 250 : 100); }, "rank 3",
             "step 6", "slow GPU: the same kernels take 2.36 times as long"},
        Kind{"every third step",
             [](int r, int s) { return slow(r == 1 && s % 3 == 1 ? 200 : 100); }, "rank 1",
             "every 3 steps from step 1", "slow GPU"},
        Kind{"over", [](int r, int s) { return slow(r == 0 && s < 4 ? 150 : 100); }, "rank 0",
             "steps 0 to 3", "slow GPU"},
        Kind{"two of different size",
             [](int r, int) { return slow(r == 1   ? 180
                                          : r == 2 ? 150
                                                   : 100); }, "rank 1",
             "since step 0", "slow GPU", kUsual + 100},
        Kind{"moving", [](int r, int s) { return slow(r == s % 6 ? 160 : 100); },
             "ranks 0, 1, 2, 3, 4, 5 in turn", "since step 0", "slow GPU", kUsual, 6},
        Kind{"more tokens for an expert",
             [](int r, int) {
               return Doing{.compute = r == 2 ? 300 : 200, .grid = r == 2 ? 1500 : 1000};
             },
             "rank 2", "since step 0",
             "more work than its peers: the same kernels have 1.50 times the work"},
        Kind{"padding of all ranks",
             [](int, int s) { return Doing{.compute = s == 5 ? 500 : 200}; }, "all ranks", "step 5",
             "compute", 0},
        Kind{"garbage", [](int r, int s) { return Doing{.host = r == 1 && s == 7 ? 900 : 0}; },
             "rank 1", "step 7", "the host was in gc.collect"},
        Kind{"garbage of the only rank", [](int, int s) { return Doing{.host = s == 7 ? 900 : 0}; },
             "rank 0", "step 7", "the host was in gc.collect", kUsual, 1},
        Kind{"a late host", [](int r, int) { return Doing{.host = r == 1 ? 80 : 0, .did = "log"}; },
             "rank 1", "since step 0", "host: late launches"},
        Kind{"a data loader", [](int r, int) { return Doing{.load = r == 3 ? 120 : 20}; }, "rank 3",
             "since step 0", "data loader"},
        Kind{"copies", [](int r, int s) { return Doing{.copy = r == 2 && s > 3 ? 90 : 20}; },
             "rank 2", "since step 4", "slow copies"},
        Kind{"a slow host", [](int r, int) { return slow(r / 2 == 1 ? 130 : 100); }, "host node1",
             "since step 0", "slow GPU", kUsual, 6, 12, 0, 2},
        Kind{"a slow link", [](int r, int) { return Doing{.transfer = r / 2 == 2 ? 160 : 40}; },
             "ranks 4, 5", "since step 0", "slow link: allreduce of 4000 bytes", kUsual + 5, 8, 12,
             2},
        Kind{"a link for some steps",
             [](int r, int s) { return Doing{.transfer = r / 2 == 1 && s < 5 ? 120 : 40}; },
             "ranks 2, 3", "steps 0 to 4", "slow link", kUsual + 5, 8, 12, 2},
        Kind{"a step of slow communication",
             [](int, int s) { return Doing{.transfer = s == 8 ? 400 : 40}; }, "ranks 0, 1, 2, 3",
             "step 8", "slow link"},
        Kind{.what = "checkpoints",
             .doing =
                 [](int, int s) {
                   return Doing{.pause = s % 4 == 2 ? 3000 : 0, .did = "save_checkpoint"};
                 },
             .told = "pause: nothing runs for 3.000 ms after each of the steps 2, 6, 10: the host "
                     "was in save_checkpoint"},
        Kind{.what = "a checkpoint",
             .doing =
                 [](int, int s) {
                   return Doing{.pause = s == 4 ? 3000 : 0, .did = "save_checkpoint"};
                 },
             .told = "pause: nothing runs for 3.000 ms after step 4: the host was in "
                     "save_checkpoint"}),
    [](const testing::TestParamInfo<Kind>& kind) {
      std::string name(kind.param.what);
      std::ranges::replace(name, ' ', '_');
      return name;
    });

}  // namespace
}  // namespace assay::timeline
