// From a corpus to a queue.

#include "engine/plan.h"

#include <gmock/gmock.h>

#include "../store/folder.h"
#include "engine/lane_plan.h"
#include "schedule/cost.h"
#include "store/sqlite_store.h"

namespace assay {
namespace {

// A run's own folder does not keep the expected times of its cases.
TEST(ClaimCases, ExpectsOfEachWhatItsTextSays) {
  const testing::Folder folder;
  auto store = SqliteStore::open(folder.path(), StoreMode::create);
  ASSERT_TRUE(store);
  const std::string product =
      R"(paddle.mm(Tensor([2000, 2000], "float32"), Tensor([2000, 2000], "float32")))";
  ASSERT_TRUE((*store)->add_case(wire::planned_case(1, product, 8'000'000, 1, 0)));
  ASSERT_TRUE((*store)->add_case(wire::planned_case(2, "no case", 8'000'000, 1, 0)));
  ASSERT_TRUE((*store)->commit());
  std::vector<wire::JobT> claimed;
  ASSERT_TRUE(
      claim_cases({}, 10, **store, [&](wire::JobT each) { claimed.push_back(std::move(each)); }));
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_GT(claimed[0].test_case.work_us, 2 * expected_work_us(8'000'000));
  EXPECT_EQ(claimed[1].test_case.work_us, expected_work_us(8'000'000));
}

std::vector<wire::LaneSpecT> lanes_on(const std::vector<std::string>& devices) {
  std::vector<wire::LaneSpecT> lanes;
  for (const std::string& device : devices) lanes.emplace_back().device = device;
  return lanes;
}

// Every lane of a case takes its share of a GPU; the host's memory counts if some lane sits there.
TEST(MemoryBudget, IsThatOfTheDevicesThatLanesSitOn) {
  RunConfig config;
  config.memory_budget = 1000;
  const MemoryBudget on_cpu = memory_budget(config, lanes_on({"cpu", "cpu"}));
  EXPECT_EQ(on_cpu.all, 1000U);
  EXPECT_EQ(on_cpu.gpus, 0U);

  config.gpus = {0, 2};
  config.gpu_budget = 600;
  const MemoryBudget both = memory_budget(config, lanes_on({"gpu", "gpu:next"}));
  EXPECT_GT(both.all, 1000U);
  EXPECT_EQ(both.each_gpu, 300U);
  EXPECT_EQ(both.gpus, 2U);

  // Every slot is on GPU 0.
  EXPECT_EQ(memory_budget(config, lanes_on({"gpu:0", "gpu:0"})).gpus, 1U);

  const MemoryBudget one = memory_budget(config, lanes_on({"cpu", "gpu"}));
  EXPECT_EQ(one.all, 1000U);
  EXPECT_EQ(one.each_gpu, 600U);
}

}  // namespace
}  // namespace assay
