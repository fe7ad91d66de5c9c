// The mask of a draw, in forward and backward.

#include "slot/mask.h"

#include <gmock/gmock.h>

#include <cstring>

#include "wire/frame.h"

namespace assay {
namespace {

using Leaves = std::vector<flatbuffers::Offset<wire::Leaf>>;

wire::Bytes reply_of(flatbuffers::FlatBufferBuilder& builder, const Leaves& outputs,
                     const Leaves& gradients) {
  const auto some_outputs = builder.CreateVector(outputs);
  const auto some_gradients = builder.CreateVector(gradients);
  wire::ReplyBuilder reply(builder);
  reply.add_outputs(some_outputs);
  reply.add_gradients(some_gradients);
  builder.Finish(reply.Finish());
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

wire::Bytes distributions() {
  flatbuffers::FlatBufferBuilder builder;
  const auto distribution = [&](const char* path) {
    return wire::CreateLeafDirect(builder, path, wire::LeafKind::distribution,
                                  static_cast<std::uint8_t>(DType::float32), nullptr, 0, 0, 0, 0, 0,
                                  "kept");
  };
  const Leaves outputs{distribution("")};
  const Leaves gradients{distribution("x")};
  return reply_of(builder, outputs, gradients);
}

// Comparisons that fail if the result and its gradient hold these numbers.
std::size_t failures(const std::vector<float>& result, const std::vector<float>& gradient) {
  auto arena = wire::Arena::create();
  flatbuffers::FlatBufferBuilder builder;
  const auto tensor = [&](const char* path, const std::vector<float>& numbers) {
    const std::size_t bytes = numbers.size() * sizeof(float);
    const std::uint64_t offset = *arena->reserve(bytes);
    std::memcpy(arena->data() + offset, numbers.data(), bytes);
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(numbers.size())};
    return wire::CreateLeafDirect(builder, path, wire::LeafKind::tensor,
                                  static_cast<std::uint8_t>(DType::float32), &shape, offset, bytes);
  };
  const Leaves outputs{tensor("", result)};
  const Leaves gradients{tensor("x", gradient)};
  const wire::Bytes test = reply_of(builder, outputs, gradients);
  const wire::Bytes reference = distributions();
  flatbuffers::FlatBufferBuilder record;
  const auto compared =
      compare_masks(record, *flatbuffers::GetRoot<wire::Reply>(test.data()), {&*arena, nullptr},
                    *flatbuffers::GetRoot<wire::Reply>(reference.data()));
  EXPECT_TRUE(compared);
  return compared ? compared->size() : 0;
}

// More elements than one block; the difference is behind it.
TEST(Masks, OfForwardAndBackwardAreTheSame) {
  std::vector<float> result(50'000, 1);
  for (std::size_t i = 0; i < result.size(); i += 2) result[i] = 0;
  std::vector<float> gradient = result;
  EXPECT_EQ(failures(result, gradient), 0U);
  gradient[49'998] = 1;  // its upstream gradient or its value may have been 0
  EXPECT_EQ(failures(result, gradient), 0U);
  for (std::size_t i = 40'000; i < gradient.size(); ++i) gradient[i] = 1 - result[i];
  EXPECT_EQ(failures(result, gradient), 1U);
  gradient.pop_back();  // other shapes are reported elsewhere
  EXPECT_EQ(failures(result, gradient), 0U);
}

}  // namespace
}  // namespace assay
