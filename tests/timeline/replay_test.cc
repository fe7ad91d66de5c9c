// What-if analysis by replay, of steps whose right times follow from arithmetic.

#include "timeline/analysis/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

constexpr double kMilli = 1e6;

// An operation of a pipeline's only stage; times in milliseconds.
std::string operation(int copy, int stream, const char* name, int begin, int end) {
  return fmt::format(
      R"({{"name":"{0}","cat":"{0}","pid":{1},"tid":{2},"ts":{3},"dur":{4},"ph":"X",)"
      R"("args":{{"step":7,"mb_id":0,"seq_id":0}}}},)",
      name, copy, 5 * copy + stream, 1000 * begin, 1000 * (end - begin));
}

const ReplayShare* share_in(const std::vector<ReplayShare>& shares, const std::string& name) {
  const auto found = std::ranges::find(shares, name, &ReplayShare::name);
  return found == shares.end() ? nullptr : &*found;
}

// Copy 1 takes 20 + 40 ms where copy 0 takes 10 + 20; both then reduce for 5 ms and optimise for 5.
// Peers take 10 + 20 ms.
TEST(Replays, TellWhatEachPartCosts) {
  std::string text = "[";
  for (int copy = 0; copy < 2; ++copy) {
    const int length = copy == 0 ? 10 : 20;
    text += operation(copy, 0, "forward-compute", 0, length);
    text += operation(copy, 0, "backward-compute", length, 3 * length);
    text += operation(copy, 3, "grads-reduce-scatter", 3 * length, 65);
    text += operation(copy, 4, "optimizer", 65, 70);
    for (const auto& [stream, name] : {std::pair(0, "compute"), {3, "dp-comm"}, {4, "misc"}}) {
      text += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":)"
                          R"({{"name":"PP rank 0, TP rank 0, {}"}}}},)",
                          copy, 5 * copy + stream, name);
    }
  }
  text.back() = ']';
  test::TempFolder folder;
  const auto trace = load_traces(std::vector{test::write(folder / "a.json", text)}, {});
  ASSERT_TRUE(trace) << trace.error().message;
  const Analysis analysis = analyse(*trace);
  std::vector<Culprit> culprits;
  const Replay result = replay(*trace, analysis, collectives_of(*trace), culprits);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.recorded, 70 * kMilli);
  EXPECT_EQ(result.prompt, 70 * kMilli);
  EXPECT_EQ(result.ideal, 40 * kMilli);
  const ReplayShare* forward = share_in(result.types, "forward");
  ASSERT_NE(forward, nullptr);
  EXPECT_DOUBLE_EQ(forward->slowdown, (20 + 20 + 5 + 5) / 40.0);
  EXPECT_EQ(forward->without, (10 + 40 + 5 + 5) * kMilli);
  const ReplayShare* reduction = share_in(result.types, "grads-reduce-scatter");
  ASSERT_NE(reduction, nullptr);
  EXPECT_DOUBLE_EQ(reduction->slowdown, 1);
  ASSERT_EQ(result.devices.size(), 2U);
  EXPECT_EQ(result.devices[0].name, "rank 1 · GPU 0");
  EXPECT_DOUBLE_EQ(result.devices[0].slowdown, 70 / 40.0);
  EXPECT_EQ(result.devices[0].without, 40 * kMilli);
}

}  // namespace
}  // namespace assay::timeline
