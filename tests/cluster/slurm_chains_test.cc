// A campaign of chains under a real Slurm of four nodes, one of which loses its power.

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "base/atomic_file.h"
#include "base/text.h"
#include "slurm_machines.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

// Each stage records its start and end in one file for all models. One stage of one model waits for
// a file.
constexpr const char* kStage = R"sh(
model=$1 stage=$2
echo "begin $model $stage $SLURMD_NODENAME" >> ran.txt
for word in "$@"; do case $word in --out=*) out=${word#--out=} ;; esac; done
if [ "$model $stage" = "m5 export" ]; then until [ -e go ]; do sleep 0.1; done; fi
case $stage in
  train) echo "loss: 0.5"; mkdir -p "$out" && echo w > "$out/last.w" ;;
  export) mkdir -p "$out" && echo w > "$out/inference.pdmodel" ;;
esac
echo "end $model $stage" >> ran.txt
)sh";

std::string params_of(const std::string& model) {
  const auto stage = [&](const char* name) { return "stage.sh " + model + " " + name; };
  return "===train_params===\nmodel_name:" + model +
         "\npython:bash\ngpu_list:-1\n--use_gpu:False\n--epochs:lite_train_lite_infer=1\n"
         "--out:./output/\n--batch_size:lite_train_lite_infer=4\n--init_weights:null\n"
         "train_model_name:last.w\n--data:./data\n##\ntrainer:norm_train\nnorm_train:" +
         stage("train") + "\n##\n===eval_params===\neval:" + stage("eval") +
         "\n##\n===infer_params===\n--out:./output\n--weights:\nnorm_export:" + stage("export") +
         "\n##\ntrain_model:./p\ninfer_export:null\n##\ninference:" + stage("infer") +
         "\n--use_gpu:False\n--batch_size:1\n--model_dir:./output\n--image:null\n"
         "--benchmark:null\n";
}

// ASSAY_CHAIN_MODELS sets the number of models; 500 take minutes.
int model_count() {
  const char* asked = std::getenv("ASSAY_CHAIN_MODELS");
  return asked == nullptr ? 12 : std::stoi(asked);
}

class ManyModels : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = Slurm::missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    slurm_ = std::make_unique<Slurm>();
    if (!slurm_->is_up()) GTEST_SKIP() << "Slurm does not come up here";
    ::setenv("SLURM_CONF", slurm_->configuration().c_str(), 1);
    for (int i = 1; i <= model_count(); ++i) {
      const std::string model = "m" + std::to_string(i);
      ASSERT_TRUE(write_file(cli_.folder() / (model + ".txt"), params_of(model)));
    }
    ASSERT_TRUE(write_file(cli_.folder() / "suite.toml", R"(version = 1
[chains]
files = ["m*.txt"]
modes = ["lite_train_lite_infer"]
[slurm]
jobs = 4
[limits]
lost = 3
[output]
log_dir = "suite"
)"));
    ASSERT_TRUE(write_file(cli_.folder() / "stage.sh", kStage));
  }

  std::string ran() const { return read_file(cli_.folder() / "ran.txt").value_or(""); }
  bool comes_to(const std::string& text) const {
    for (int tries = 0; tries < 1200; ++tries) {
      if (ran().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  std::unique_ptr<Slurm> slurm_;
  Cli cli_;
};

// Stages that ended before a node lost its power do not run again; the others run once.
TEST_F(ManyModels, EachStageEndsOnceThoughANodeIsLost) {
  const auto began = std::chrono::steady_clock::now();
  const CliResult started = cli_.call({"run", "suite.toml", "--background"});
  ASSERT_EQ(started.status.code, 0) << started.output;
  const auto status = [&] { return cli_.call({"status", "suite.toml"}).output; };
  ASSERT_TRUE(comes_to("begin m5 export ")) << ran() << status();
  const std::string text = ran();
  const std::size_t at = text.find("begin m5 export ") + 16;
  const std::string node = text.substr(at, text.find('\n', at) - at);
  slurm_->kill_node(node);
  ASSERT_TRUE(write_file(cli_.folder() / "go", ""));
  slurm_->start_node(node);
  for (int tries = 0; tries < 2400 && status().find("does not run") == std::string::npos; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  fmt::print("{} models in {:.0f} s\n", model_count(), took.count());
  const std::string markdown = read_file(cli_.folder() / "suite/summary.md").value_or("");
  ASSERT_THAT(markdown, HasSubstr(fmt::format("{} passed: 0 new failures", model_count())))
      << status() << slurm_->account();

  std::map<std::string, int> lines;
  for (const std::string& line : split_at(ran(), '\n')) {
    const bool begins = line.starts_with("begin");
    ++lines[begins ? line.substr(0, line.rfind(' ')) : line];
  }
  for (int i = 1; i <= model_count(); ++i) {
    for (const char* stage : {"train", "eval", "export", "infer"}) {
      EXPECT_EQ(lines[fmt::format("end m{} {}", i, stage)], 1) << i << stage;
    }
  }
  EXPECT_EQ(lines["begin m5 train"], 1);
  EXPECT_EQ(lines["begin m5 eval"], 1);
  EXPECT_EQ(lines["begin m5 export"], 2);
}

}  // namespace
}  // namespace assay::testing
