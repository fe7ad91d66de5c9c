// The whole chain for real: Paddle on the CPU trains, evaluates, exports and infers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chain/results/chain_store.h"
#include "paddle_project.h"

namespace assay::chain {
namespace {

using ::testing::HasSubstr;

TEST(Paddle, MobilenetTrainsEvaluatesExportsAndInfers) {
  ASSAY_NEED_TIPC(tipc);
  ASSAY_NEED_PADDLE(python);
  const Scratch scratch;
  const auto project = scratch.path() / "model";
  ASSERT_TRUE(make_mobilenet(tipc, python, project));
  put(project / "params.txt", mobilenet_params());
  const CliResult result =
      run_cli(project, {"run", "params.txt", "lite_train_lite_infer", "--python", python.string()},
              {"FLAGS_enable_pir_api=0", "OMP_NUM_THREADS=1"});
  ASSERT_EQ(result.code, 0) << result.out;

  const auto folder = project / "test_tipc/assay/mobilenet_v3_small/params/lite_train_lite_infer";
  const auto output = project /
                      "test_tipc/output/mobilenet_v3_small/lite_train_lite_infer/"
                      "norm_train_gpus_-1_autocast_False_nodes_1.log";
  EXPECT_THAT(slurp(folder / "inference.log"), HasSubstr("class_id:"));
  EXPECT_TRUE(std::filesystem::exists(output / "inference.pdmodel"));

  auto store = results::ChainStore::open(folder / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const auto stages = store->stages(1);
  ASSERT_EQ(stages->size(), 4U);
  for (const results::StoredStage& stage : *stages) EXPECT_EQ(stage.state, "passed") << stage.name;
  // The two inferences agree to float32's digits: 4e-6 was seen on random weights.
  const CliResult compared = compare_with_dynamic(
      python.string(), project, output / "latest.pdparams", folder / "inference.log");
  EXPECT_THAT(compared.out, HasSubstr("good    ./images/demo.jpg: max difference "));
  const auto nodes = store->nodes(stages->front().id);
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_THAT(nodes->front().framework, HasSubstr("paddlepaddle"));
  // Paddle alone takes more than 100 MB; a number far from that is no measurement.
  EXPECT_GT(stages->front().peak_rss_mb, 100);
  // 8 pictures in batches of 4 are two training lines, and cross entropy over 1000 classes of an
  // untrained net is near ln 1000 = 6.9.
  std::vector<double> losses;
  const auto readings = store->readings(stages->front().id);
  for (const results::StoredReading& reading : *readings) {
    if (reading.name == "loss") losses.push_back(reading.value);
  }
  ASSERT_GE(losses.size(), 2U);
  EXPECT_NEAR(losses.front(), std::log(1000.0), 1.5);
}

// The picture and the model are not there: infer.py fails, and the chain must say so.
TEST(Paddle, AnInferenceThatFailsForRealIsAFailure) {
  ASSAY_NEED_TIPC(tipc);
  ASSAY_NEED_PADDLE(python);
  const Scratch scratch;
  const auto project = scratch.path() / "model";
  ASSERT_TRUE(make_mobilenet(tipc, python, project));
  std::string params = mobilenet_params();
  params.replace(params.find("--img-path:./images/demo.jpg"), 28, "--img-path:./images/none.jpg");
  params.replace(params.find("infer_export:tools/export_model.py --model=mobilenet_v3_small"), 61,
                 "infer_export:null");
  put(project / "params.txt", params);
  const CliResult result =
      run_cli(project, {"run", "params.txt", "whole_infer", "--python", python.string()});
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("failed"));
}

}  // namespace
}  // namespace assay::chain
