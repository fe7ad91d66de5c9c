#include "fill/philox.h"

#include <gtest/gtest.h>

#include <array>

namespace assay {
namespace {

using Words = std::array<std::uint32_t, 4>;

struct KnownAnswer {
  Words counter;
  std::array<std::uint32_t, 2> key;
  Words seven_rounds;
  Words ten_rounds;
};

// tests/kat_vectors of Random123, the lines "philox4x32 7 …" and "philox4x32 10 …".
constexpr KnownAnswer kRandom123[] = {
    {{0, 0, 0, 0},
     {0, 0},
     {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48},
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

template <int kRounds>
Words run(const KnownAnswer& known) {
  const auto& c = known.counter;
  const PhiloxBlock block = philox<kRounds>({{c[0], c[1], c[2], c[3]}}, known.key[0], known.key[1]);
  return std::to_array(block.word);
}

TEST(Philox, GivesThePublishedAnswers) {
  for (const KnownAnswer& known : kRandom123) {
    EXPECT_EQ(run<7>(known), known.seven_rounds);
    EXPECT_EQ(run<10>(known), known.ten_rounds);
  }
}

TEST(Draws, AreThePiecesOfTheWordsLowFirst) {
  const Stream stream = make_stream(1, 2, 3);
  Draws draws(stream);
  for (const std::uint64_t index : {7U, 0U, 5U, 6U, 123U}) {
    const std::uint32_t word = block_of(stream, index / 4).word[index % 4];
    EXPECT_EQ(draws.draw(32, index), word);
    EXPECT_EQ(draws.draw(16, 2 * index), word & 0xFFFF);
    EXPECT_EQ(draws.draw(16, 2 * index + 1), word >> 16);
    const std::uint32_t next = block_of(stream, (index + 1) / 4).word[(index + 1) % 4];
    if (index % 2 == 0) {
      EXPECT_EQ(draws.draw(64, index / 2), std::uint64_t{next} << 32 | word);
    }
  }
}

TEST(Stream, DiffersWithEveryPartOfItsName) {
  const auto first_word = [](const Stream& stream) { return block_of(stream, 0).word[0]; };
  const std::uint32_t base = first_word(make_stream(1, 2, 3));
  EXPECT_NE(base, first_word(make_stream(std::uint64_t{1} << 32 | 1, 2, 3)));
  EXPECT_NE(base, first_word(make_stream(0, 2, 3)));
  EXPECT_NE(base, first_word(make_stream(1, std::uint64_t{1} << 32 | 2, 3)));
  EXPECT_NE(base, first_word(make_stream(1, 1, 3)));
  EXPECT_NE(base, first_word(make_stream(1, 2, 4)));
  EXPECT_NE(base, first_word(companion(make_stream(1, 2, 3))));
}

}  // namespace
}  // namespace assay
