// Real suites, really run, from checkouts that the user names; on data made here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "chain/results/chain_store.h"
#include "cli_run.h"

namespace assay::chain {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

std::string named(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// A copy of a checkout, so that nothing is written into the user's; and the interpreter for it.
struct RealSuite {
  Scratch scratch;
  std::filesystem::path path;
  std::string python = named("ASSAY_SUITE_PYTHON");

  RealSuite(const std::string& checkout, const std::string& name) : path(scratch.path() / name) {
    using std::filesystem::copy_options;
    std::filesystem::copy(
        checkout, path,
        copy_options::recursive | copy_options::copy_symlinks | copy_options::skip_existing);
  }

  // Runs a program of Python's in the copy, to make data.
  void make_data(const std::string& program) const {
    EXPECT_EQ(run_command(path, {python, "-c", program}).code, 0);
  }

  // With the old form of exported models: the new one's predictor ends in an error for scripts that
  // ask for memory optimisation, as the suites' do (docs/chain.md).
  CliResult run(const std::string& file, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"run",      file,  "lite_train_lite_infer", "--device", "cpu",
                                   "--python", python};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(
        path, words,
        {"PYTHONPATH=" + scratch.path().string() + ":" + path.string(), "FLAGS_enable_pir_api=0"});
  }

  std::vector<std::string> states(const std::string& store_path) const {
    auto store = results::ChainStore::open(path / store_path, OpenMode::existing);
    EXPECT_TRUE(store);
    std::vector<std::string> states;
    if (!store) return states;
    const auto stages = store->stages(1);
    EXPECT_TRUE(stages);
    if (!stages) return states;
    for (const results::StoredStage& stage : *stages) states.push_back(stage.state);
    return states;
  }
};

constexpr const char* kClasData = R"(
import os, cv2, numpy as np
random = np.random.default_rng(0)
root = "dataset/ILSVRC2012"
for part, count in (("train", 16), ("val", 4)):
    os.makedirs(f"{root}/{part}", exist_ok=True)
    with open(f"{root}/{part}_list.txt", "w") as names:
        for i in range(1, count + 1):
            name = f"{part}/ILSVRC2012_{part}_{i:08}.JPEG"
            cv2.imwrite(f"{root}/{name}", random.integers(0, 255, (256, 256, 3), dtype=np.uint8))
            names.write(f"{name} {i % 2}\n")
)";

TEST(RealSuite, PaddleClasTrainsEvaluatesExportsAndInfers) {
  const std::string checkout = named("ASSAY_PADDLECLAS");
  if (checkout.empty() || named("ASSAY_SUITE_PYTHON").empty()) {
    GTEST_SKIP() << "needs a checkout of PaddleClas (ASSAY_PADDLECLAS) and an interpreter with "
                    "Paddle 3.3.1 and what the suite imports (ASSAY_SUITE_PYTHON)";
  }
  // The suite's inference imports its own checkout as `paddleclas`.
  const RealSuite suite(checkout, "paddleclas");
  suite.make_data(kClasData);
  const CliResult result = suite.run(
      "test_tipc/configs/MobileNetV1/MobileNetV1_x0_25_train_infer_python.txt", {"--fix"});
  EXPECT_EQ(result.code, 0) << result.out;
  const auto states =
      suite.states("test_tipc/output/MobileNetV1_x0_25/lite_train_lite_infer/chain.db");
  EXPECT_THAT(states, SizeIs(4)) << "train, eval, export, infer";
  EXPECT_THAT(states, Each("passed"));
}

constexpr const char* kSegData = R"(
import os, cv2, numpy as np
random = np.random.default_rng(0)
root = "test_tipc/data/mini_supervisely"
os.makedirs(root, exist_ok=True)
for part, count in (("train", 8), ("val", 2), ("test", 2)):
    with open(f"{root}/{part}.txt", "w") as names:
        for i in range(count):
            cv2.imwrite(f"{root}/{part}{i}.jpg", random.integers(0, 255, (224, 398, 3), dtype=np.uint8))
            cv2.imwrite(f"{root}/{part}{i}.png", random.integers(0, 2, (224, 398), dtype=np.uint8))
            names.write(f"{part}{i}.jpg {part}{i}.png\n")
)";

TEST(RealSuite, PaddleSegTrainsExportsAndInfers) {
  const std::string checkout = named("ASSAY_PADDLESEG");
  if (checkout.empty() || named("ASSAY_SUITE_PYTHON").empty()) {
    GTEST_SKIP() << "needs a checkout of PaddleSeg (ASSAY_PADDLESEG) and an interpreter with "
                    "Paddle 3.3.1 and what the suite imports (ASSAY_SUITE_PYTHON)";
  }
  const RealSuite suite(checkout, "PaddleSeg");
  suite.make_data(kSegData);
  // Paddle 3.3.1 cannot export argmax in the old form; with the suite's own flags it is taken after
  // the inference. The training is kept small.
  const std::filesystem::path folder = suite.path / "test_tipc/configs/pphumanseg_lite";
  std::string text = slurp(folder / "train_infer_python.txt");
  for (const auto& [was, is] :
       {std::pair<std::string, std::string>("norm_export:tools/export.py",
                                            "norm_export:tools/export.py --output_op softmax"),
        {"inference:deploy/python/infer.py", "inference:deploy/python/infer.py --with_argmax"},
        {"--num_workers 8", "--num_workers 0"},
        {"lite_train_lite_infer=20", "lite_train_lite_infer=4"}}) {
    const std::size_t at = text.find(was);
    ASSERT_NE(at, std::string::npos) << was;
    text.replace(at, was.size(), is);
  }
  put(folder / "train_infer_softmax.txt", text);
  const CliResult result = suite.run("test_tipc/configs/pphumanseg_lite/train_infer_softmax.txt",
                                     {"--fallback-checkpoint"});
  EXPECT_EQ(result.code, 0) << result.out;
  const auto states =
      suite.states("test_tipc/output/pphumanseg_lite/lite_train_lite_infer/chain.db");
  EXPECT_THAT(states, SizeIs(3)) << "train, export, infer: its file evaluates nothing";
  EXPECT_THAT(states, Each("passed"));
}

}  // namespace
}  // namespace assay::chain
