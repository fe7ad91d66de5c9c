// What a lane is known to do, by the kind of a case.

#include "slot/abilities.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string kind(const std::string& text) {
  Case scratch;
  return kind_of(text, scratch);
}

SlotJob job_of(const std::string& text, std::uint64_t bytes) {
  SlotJob job;
  job.kind = kind(text);
  job.bytes = bytes;
  return job;
}

Ending ended(wire::Status status, const char* phase) {
  flatbuffers::FlatBufferBuilder builder;
  const auto where = builder.CreateString(phase);
  builder.Finish(wire::CreateReply(builder, wire::kVersion, 0, status, where));
  Ending ending;
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

TEST(Abilities, AreTakenFromTheLastCaseOfAKind) {
  const std::string half = R"(paddle.abs(Tensor([2], "float16")))";
  Abilities abilities;
  EXPECT_FALSE(abilities.in_doubt(job_of(half, kSmall)));
  EXPECT_TRUE(abilities.in_doubt(job_of(half, kLarge)));
  abilities.learn(job_of(half, kSmall), ended(wire::Status::no_kernel, "forward"));
  EXPECT_TRUE(abilities.in_doubt(job_of(half, kSmall)));
  EXPECT_FALSE(abilities.in_doubt(job_of(R"(paddle.abs(Tensor([2], "float32")))", kSmall)));
  abilities.learn(job_of(half, kSmall), ended(wire::Status::ok, ""));
  EXPECT_FALSE(abilities.in_doubt(job_of(half, kLarge)));
  EXPECT_FALSE(abilities.in_doubt(job_of("no case", kLarge)));
}

// Results that cannot be differentiated are compared all the same, and of a call that raises it
// counts whether the reference does so, too.
TEST(Abilities, ALaneWithAResultOrAnErrorIsNotUnable) {
  EXPECT_FALSE(is_unable(ended(wire::Status::no_kernel, "backward")));
  EXPECT_FALSE(is_unable(ended(wire::Status::raised, "forward")));
  EXPECT_FALSE(is_unable(ended(wire::Status::out_of_memory, "forward")));
  EXPECT_TRUE(is_unable(ended(wire::Status::no_kernel, "forward")));
  EXPECT_TRUE(is_unable(ended(wire::Status::unsupported, "build")));
  Ending dead;
  dead.blame = wire::Status::crashed;
  EXPECT_FALSE(is_unable(dead));
}

}  // namespace
}  // namespace assay
