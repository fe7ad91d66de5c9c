// Names of pipeline jobs, as programs write them.

#include "timeline/analysis/job_names.h"

#include <gmock/gmock.h>

#include "support.h"

namespace assay::timeline {
namespace {

TEST(JobNames, OfKnownPrograms) {
  struct Known {
    const char* name;
    Pass pass;
    int micro_batch;
    int stage;
  };
  const JobNames names;
  for (const Known& known :
       {Known{"F", Pass::forward, kNone, kNone},
        Known{"B3", Pass::backward, 3, kNone},
        Known{"W0.1", Pass::weight, 0, 1},
        Known{"F2.1.7", Pass::forward, 2, 1},
        Known{"mlp(B)", Pass::backward, kNone, kNone},
        Known{"attn(W)", Pass::weight, kNone, kNone},
        Known{"Forward_3", Pass::forward, 3, kNone},
        Known{"Backward 12", Pass::backward, 12, kNone},
        Known{"forward_step", Pass::forward, kNone, kNone},
        Known{"backward-compute", Pass::backward, kNone, kNone},
        Known{"PipelineEngine._exec_forward_pass", Pass::forward, kNone, kNone},
        Known{"ForwardPass", Pass::forward, kNone, kNone},
        Known{"BackwardStep(3)", Pass::backward, 3, kNone},
        Known{"FORWARD_2", Pass::forward, 2, kNone},
        Known{"PP:2F0", Pass::forward, 0, 2},
        Known{"1I4", Pass::backward, 4, 1},
        Known{"0W5", Pass::weight, 5, 0},
        Known{"backward_w_2", Pass::weight, 2, kNone},
        Known{"forward micro batch 4 chunk 1", Pass::forward, 4, 1},
        Known{"forward 3/8", Pass::forward, 3, kNone},
        Known{"backward 7 / 8", Pass::backward, 7, kNone},
        Known{"forward 3 of 8", Pass::forward, 3, kNone},
        Known{"Forward [0/8]", Pass::forward, 0, kNone},
        Known{"fwd-mb3", Pass::forward, 3, kNone},
        Known{"bwd_mb_2_chunk_1", Pass::backward, 2, 1},
        Known{"forward_backward_pipelining: forward 2", Pass::forward, 2, kNone},
        Known{"microbatch 2 backward", Pass::backward, 2, kNone},
        Known{"stage 1 forward 3", Pass::forward, 3, 1},
        Known{"iter 12 forward 3", Pass::forward, 3, kNone},
        Known{"forward: micro_batch=5, stage=2", Pass::forward, 5, 2},
        Known{"F 3/8", Pass::forward, 3, kNone},
        Known{"backward_step_helper", Pass::backward, kNone, kNone},
        Known{"BackwardPass(micro_batch=1)", Pass::backward, 1, kNone},
        Known{"Fwd(mb=0)", Pass::forward, 0, kNone}}) {
    const auto jobs = names.parse(known.name);
    ASSERT_EQ(jobs.size(), 1U) << known.name;
    EXPECT_EQ(jobs[0].pass, known.pass) << known.name;
    EXPECT_EQ(jobs[0].micro_batch, known.micro_batch) << known.name;
    EXPECT_EQ(jobs[0].stage, known.stage) << known.name;
  }
  for (const char* other :
       {"ProfilerStep#3", "Optimizer.step#SGD.step", "nccl:all_reduce", "1F1B", "aten::mm", "",
        "FSDP::pre_forward (layer.3)", "0SEND_F0", "B-tree", "forward_backward_func", "s_1f1b_iter",
        "s_1f1b_iter3", "F1&F2", "(0F1)OVERLAP_F_B", "&", "overlap"}) {
    EXPECT_TRUE(names.parse(other).empty()) << other;
  }
}

TEST(JobNames, OverlappedPassesAreTwoJobs) {
  for (const char* name : {"PP:(0F3;1B1)OVERLAP_F_B", "(0F3;1B1)OVERLAP_F_B", "0F3&1B1"}) {
    const auto jobs = JobNames().parse(name);
    ASSERT_EQ(jobs.size(), 2U) << name;
    EXPECT_EQ(jobs[0].pass, Pass::forward);
    EXPECT_EQ(jobs[0].micro_batch, 3);
    EXPECT_EQ(jobs[0].stage, 0);
    EXPECT_EQ(jobs[1].pass, Pass::backward);
    EXPECT_EQ(jobs[1].micro_batch, 1);
    EXPECT_EQ(jobs[1].stage, 1);
  }
  const auto words = JobNames().parse("overlapped_forward_backward");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_NE(words[0].pass, words[1].pass);
}

TEST(JobNames, OfAFile) {
  const test::TempFolder folder;
  const auto names = JobNames::read(
      test::write(folder / "names", "# ours\nforward fw_(\\d+)_(\\d+)\nweight  wg.*\n"));
  ASSERT_TRUE(names);
  const auto jobs = names->parse("fw_7_1");
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].micro_batch, 7);
  EXPECT_EQ(jobs[0].stage, 1);
  EXPECT_EQ(names->parse("wgrad of 3").at(0).pass, Pass::weight);
  EXPECT_TRUE(names->parse("F").empty());
  EXPECT_FALSE(JobNames::read(test::write(folder / "bad", "sideways x\n")));
  EXPECT_FALSE(JobNames::read(test::write(folder / "bad", "forward (\n")));
}

}  // namespace
}  // namespace assay::timeline
