// KernelSupport of a lane, by the kind of a case.

#include "slot/kernel_support.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string kind(const std::string& text) {
  Case scratch;
  return kind_of(text, scratch);
}

wire::JobT job_of(const std::string& text, std::uint64_t bytes) {
  wire::JobT job;
  job.test_case.text = text;
  job.test_case.bytes = bytes;
  return job;
}

bool in_doubt(KernelSupport& kernel_support, const wire::JobT& job) {
  return kernel_support.start(job) != wire::Start::together;
}

bool may_lack_kernel(KernelSupport& kernel_support, const wire::JobT& job) {
  return kernel_support.start(job) == wire::Start::test_lane_unfilled;
}

LaneResult ended(wire::Status status, const char* phase) {
  flatbuffers::FlatBufferBuilder builder;
  const auto where = builder.CreateString(phase);
  builder.Finish(wire::CreateReply(builder, wire::kMessageVersion, 0, status, where));
  LaneResult ending;
  const auto bytes = wire::bytes_of(builder);
  ending.bytes = {bytes.begin(), bytes.end()};
  ending.reply = flatbuffers::GetRoot<wire::Reply>(ending.bytes.data());
  return ending;
}

TEST(Kind, IsTheApiAndItsDtypes) {
  EXPECT_EQ(kind(R"(paddle.add(Tensor([2], "float16"), Tensor([3, 4], "float32")))"),
            kind(R"(paddle.add(Tensor([70, 2], "float16"), y=Tensor([], "float32")))"));
  EXPECT_NE(kind(R"(paddle.add(Tensor([2], "float16"), Tensor([2], "float16")))"),
            kind(R"(paddle.add(Tensor([2], "float16"), Tensor([2], "float32")))"));
  EXPECT_NE(kind(R"(paddle.add(Tensor([2], "float16"), Tensor([2], "float16")))"),
            kind(R"(paddle.subtract(Tensor([2], "float16"), Tensor([2], "float16")))"));
  EXPECT_NE(kind(R"(paddle.zeros([2], "float16"))"), kind(R"(paddle.zeros([2], "float32"))"));
  EXPECT_NE(kind(R"(paddle.zeros([2], Dtype(float16)))"), kind(R"(paddle.zeros([2]))"));
  EXPECT_EQ(kind("no case"), "");
}

constexpr std::uint64_t kSmall = 1 << 16;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 30;

TEST(KernelSupport, IsTakenFromTheLastCaseOfAKind) {
  const std::string half = R"(paddle.abs(Tensor([2], "float16")))";
  KernelSupport kernel_support;
  EXPECT_FALSE(in_doubt(kernel_support, job_of(half, kSmall)));
  EXPECT_TRUE(in_doubt(kernel_support, job_of(half, kLarge)));
  kernel_support.learn(job_of(half, kSmall), ended(wire::Status::no_kernel, "forward"));
  EXPECT_TRUE(in_doubt(kernel_support, job_of(half, kSmall)));
  EXPECT_FALSE(in_doubt(kernel_support, job_of(R"(paddle.abs(Tensor([2], "float32")))", kSmall)));
  kernel_support.learn(job_of(half, kSmall), ended(wire::Status::ok, ""));
  EXPECT_FALSE(in_doubt(kernel_support, job_of(half, kLarge)));
  EXPECT_FALSE(in_doubt(kernel_support, job_of("no case", kLarge)));
}

std::string abs_of(const char* dtype) {
  return std::string("paddle.abs(Tensor([2], \"") + dtype + "\"))";
}

// A new dtype is tried at once; after that the share of its kinds without a kernel counts.
TEST(KernelSupport, OfANewKindItsDTypesTellWhetherAKernelIsLikely) {
  KernelSupport kernel_support;
  EXPECT_TRUE(may_lack_kernel(kernel_support, job_of(abs_of("float16"), kLarge)));
  EXPECT_FALSE(may_lack_kernel(kernel_support, job_of(abs_of("float16"), kSmall)));
  kernel_support.learn(job_of(abs_of("float32"), kSmall), ended(wire::Status::ok, ""));
  kernel_support.learn(job_of(abs_of("float16"), kSmall),
                       ended(wire::Status::no_kernel, "forward"));
  const std::string mixed =
      R"(paddle.where(Tensor([2], "float16"), Tensor([2], "float32"), Tensor([2], "float32")))";
  EXPECT_TRUE(may_lack_kernel(kernel_support, job_of(mixed, kLarge)));
  EXPECT_FALSE(may_lack_kernel(
      kernel_support,
      job_of(R"(paddle.exp(Tensor([2], "float32"), Tensor([2], "float32")))", kLarge)));
  // The same kind counts once, however often it comes; one of eight is few.
  const auto half = [](int number) {
    return "paddle.exp" + std::to_string(number) + R"((Tensor([2], "float16")))";
  };
  for (int i = 0; i < 19; ++i) {
    EXPECT_TRUE(may_lack_kernel(kernel_support, job_of(mixed, kLarge))) << i;
    kernel_support.learn(job_of(half(i / 3), kSmall), ended(wire::Status::ok, ""));
  }
  EXPECT_FALSE(may_lack_kernel(kernel_support, job_of(mixed, kLarge)));
  kernel_support.learn(job_of(half(0), kSmall), ended(wire::Status::unsupported, "build"));
  EXPECT_TRUE(may_lack_kernel(kernel_support, job_of(mixed, kLarge)));
}

TEST(KernelSupport, AKindThatIsKnownTellsBetterThanItsDTypes) {
  KernelSupport kernel_support;
  kernel_support.learn(job_of(abs_of("float16"), kSmall),
                       ended(wire::Status::no_kernel, "forward"));
  EXPECT_TRUE(may_lack_kernel(kernel_support, job_of(abs_of("float16"), kLarge)));
  kernel_support.learn(job_of(abs_of("float16"), kLarge), ended(wire::Status::ok, ""));
  EXPECT_FALSE(may_lack_kernel(kernel_support, job_of(abs_of("float16"), kLarge)));
  kernel_support.learn(job_of(abs_of("float16"), kLarge),
                       ended(wire::Status::no_kernel, "backward"));
  EXPECT_FALSE(may_lack_kernel(kernel_support, job_of(abs_of("float16"), kLarge)));
}

// A case that ran out of time may have spent it on filling inputs for nothing. A lane that was not
// asked tells nothing.
TEST(KernelSupport, WhatRanOutOfTimeIsTriedUnfilledNextTime) {
  KernelSupport kernel_support;
  kernel_support.learn(job_of(abs_of("float32"), kLarge), ended(wire::Status::ok, ""));
  LaneResult overdue;
  overdue.blame = wire::Status::timed_out;
  kernel_support.learn(job_of(abs_of("float32"), kLarge), overdue);
  EXPECT_TRUE(may_lack_kernel(kernel_support, job_of(abs_of("float32"), kLarge)));
  EXPECT_TRUE(in_doubt(kernel_support, job_of(abs_of("float32"), kSmall)));
  kernel_support.learn(job_of(abs_of("float32"), kSmall), ended(wire::Status::ok, ""));
  LaneResult skipped;
  skipped.blame = wire::Status::skipped;
  kernel_support.learn(job_of(abs_of("float32"), kLarge), skipped);
  EXPECT_FALSE(may_lack_kernel(kernel_support, job_of(abs_of("float32"), kLarge)));
}

// Results that cannot be differentiated are still compared. If a call raises, the reference must
// run it too.
TEST(KernelSupport, ALaneWithAResultOrAnErrorIsNotUnable) {
  EXPECT_FALSE(is_unable(ended(wire::Status::no_kernel, "backward")));
  EXPECT_FALSE(is_unable(ended(wire::Status::raised, "forward")));
  EXPECT_FALSE(is_unable(ended(wire::Status::out_of_memory, "forward")));
  EXPECT_TRUE(is_unable(ended(wire::Status::no_kernel, "forward")));
  EXPECT_TRUE(is_unable(ended(wire::Status::unsupported, "build")));
  LaneResult dead;
  dead.blame = wire::Status::crashed;
  EXPECT_FALSE(is_unable(dead));
}

}  // namespace
}  // namespace assay
