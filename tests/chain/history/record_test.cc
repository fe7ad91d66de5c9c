// `assay chain record` and `judge` with real runs of the example, a model that Python trains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli_run.h"

namespace assay::chain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Trained {
 public:
  Trained() {
    std::filesystem::copy(std::filesystem::path(ASSAY_SOURCE_DIR) / "examples/chain", path());
    good_ = slurp(path() / "train.py");
  }
  const std::filesystem::path& path() const { return scratch_.path(); }

  // Trains, with or without a fault that leaves 60% more loss, and returns the run's store.
  std::string train(bool fault) {
    std::string script = good_;
    if (fault) {
      const std::string loss = "{model.loss(";
      script.replace(script.find(loss), loss.size(), "{1.6 * model.loss(");
    }
    put(path() / "train.py", script);
    std::string store = "run" + std::to_string(++runs_) + ".db";
    const CliResult run = run_cli(
        path(), {"run", "train_infer_python.txt", "lite_train_lite_infer", "--store", store});
    EXPECT_EQ(run.code, 0) << run.out;
    return store;
  }
  CliResult record(const std::string& store, const std::string& build,
                   const std::string& purpose = "nightly") const {
    return run_cli(path(), {"record", store, "--build", build, "--as", purpose});
  }
  CliResult judge() const { return run_cli(path(), {"judge", "goldens"}); }

 private:
  Scratch scratch_;
  std::string good_;
  int runs_ = 0;
};

TEST(RecordVerb, IdenticalTinyRunsAreGood) {
  Trained model;
  const std::string first = model.train(false);
  for (int i = 0; i < 3; ++i) {
    const std::string store = model.train(false);
    const CliResult compared =
        run_cli(model.path(), {"compare", "--base", first, "--current", store, "--slower", "0.9"});
    EXPECT_EQ(compared.code, 0) << compared.out;
    EXPECT_THAT(compared.out, HasSubstr(" MB, "));
    EXPECT_THAT(compared.out, Not(HasSubstr("BAD")));
  }
}

TEST(RecordVerb, AFaultIsConfirmedBeforeTheBuildIsBlamed) {
  Trained model;
  for (const char* build : {"1", "2"}) {
    const CliResult good = model.record(model.train(false), build);
    EXPECT_THAT(good.out, HasSubstr("train: loss, last tenth: 0.000831")) << good.out;
    EXPECT_THAT(good.out, HasSubstr("learnt from 8 nights"));
  }
  constexpr int kMoreIsWanted = 4;
  const CliResult suspect = model.record(model.train(true), "3");
  EXPECT_EQ(suspect.code, kMoreIsWanted) << suspect.out;
  EXPECT_THAT(suspect.out, HasSubstr("record 2 more of this build with --as rerun"));
  EXPECT_EQ(model.judge().code, kMoreIsWanted);
  model.record(model.train(true), "3", "rerun");
  const CliResult shifted = model.record(model.train(true), "3", "rerun");
  EXPECT_EQ(shifted.code, kMoreIsWanted) << shifted.out;
  EXPECT_THAT(shifted.out, HasSubstr("record 2 of build 2 with --as baseline"));
  for (int i = 0; i < 2; ++i) model.record(model.train(false), "2", "baseline");
  model.record(model.train(true), "3", "rerun");
  const CliResult blamed = model.record(model.train(true), "3", "rerun");
  EXPECT_EQ(blamed.code, 1) << blamed.out;
  const CliResult judged = model.judge();
  EXPECT_EQ(judged.code, 1);
  EXPECT_THAT(judged.out, HasSubstr("regression"));
  EXPECT_THAT(judged.out, HasSubstr("build 2 does not have it"));
  EXPECT_THAT(run_cli(model.path(), {"judge", "goldens", "--json"}).out,
              HasSubstr("\"state\":\"regression\""));
  // The owner wants the new value.
  const CliResult accepted =
      run_cli(model.path(), {"record", model.train(true), "--build", "4", "--accept"});
  EXPECT_THAT(accepted.out, Not(HasSubstr("regression")));
}

TEST(RecordVerb, WhatCannotBeRecordedIsRefused) {
  Trained model;
  const std::string store = model.train(false);
  const auto refused = [&](const CliResult& result, const std::string& why) {
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_THAT(result.out, HasSubstr(why));
  };
  refused(model.record(store, "1", "rerun"), "has no nightly run yet");
  EXPECT_EQ(model.record(store, "1").code, 0);
  refused(model.record(store, "1"), "already");
  const std::string second = model.train(false);
  refused(model.record(second, "2", "rerun"), "a rerun has the build of the last night, 1");
  refused(model.record(second, "1", "baseline"), "a baseline run has an earlier build");
  refused(run_cli(model.path(), {"record", second, "--as", "rerun", "--accept"}), "--accept");
  refused(run_cli(model.path(), {"judge", "nowhere.json"}), "nowhere.json");
  const Project failing({.train = "exit=1"});
  failing.run({"--store", "bad.db"});
  refused(run_cli(failing.path(), {"record", "bad.db", "--build", "1"}), "did not pass");
}

// Predictions are those of the lines that name an image.
TEST(RecordVerb, PredictionsOfAnInferenceAreRecorded) {
  Project project({.infer = "\"say=a.jpg 0.5 0.7\" \"say=b.jpg 0.25\" \"say=took 3 s\""});
  ASSERT_EQ(project.run({"--store", "r.db"}).code, 0);
  EXPECT_EQ(run_cli(project.path(), {"record", "r.db", "--build", "1"}).code, 0);
  const std::string file = slurp(project.path() / "goldens/tiny.lite_train_lite_infer.CPU.json");
  EXPECT_THAT(file, HasSubstr(R"({"kind":"prediction","values":[0.5,0.7,0.25]})"));
}

}  // namespace
}  // namespace assay::chain
