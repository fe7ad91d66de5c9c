#pragma once

// Philox4x32, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC'11). assay uses seven rounds, the fewest that pass BigCrush in
// the paper.

#include <cstdint>

#include "fill/host_device.h"

namespace assay {

struct PhiloxBlock {
  std::uint32_t word[4];
};

inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kFillRounds = 7;

template <int kRounds>
ASSAY_HD PhiloxBlock philox(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return counter;
}

// An endless sequence of 32-bit words: word j is word j mod 4 of block j / 4. The counter's low
// half is the block number, its high half the nonce. Key and nonce select the sequence.
struct Stream {
  std::uint32_t key[2];
  std::uint32_t nonce[2];
};

// Block number `block` of a stream, four words.
ASSAY_HD PhiloxBlock block_of(const Stream& stream, std::uint64_t block) {
  return philox<kFillRounds>(
      {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream.nonce[0],
        stream.nonce[1]}},
      stream.key[0], stream.key[1]);
}

// The stream of one tensor. Key and nonce come from ten rounds on (case, tensor) under the seed, so
// two tensors share a stream with probability 2^-128.
ASSAY_HD Stream make_stream(std::uint64_t seed, std::uint64_t case_id, std::uint32_t tensor) {
  const PhiloxBlock id = philox<10>(
      {{static_cast<std::uint32_t>(case_id), static_cast<std::uint32_t>(case_id >> 32), tensor, 0}},
      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return {{id.word[0], id.word[1]}, {id.word[2], id.word[3]}};
}

// A second stream of the same tensor, which shares no counter with the first.
ASSAY_HD Stream companion(Stream stream) {
  stream.nonce[1] ^= 1;
  return stream;
}

// Random access to a stream's words. It caches the last block, so ascending access costs one Philox
// call per four words.
class Draws {
 public:
  ASSAY_HD explicit Draws(const Stream& stream) : stream_(stream), held_(block_of(stream, 0)) {}

  ASSAY_HD const PhiloxBlock& block(std::uint64_t number) {
    if (number != number_) {
      held_ = block_of(stream_, number);
      number_ = number;
    }
    return held_;
  }
  // Draw `index` of the stream cut into draws of `width` bits (16, 32 or 64), low bits first.
  ASSAY_HD std::uint64_t draw(int width, std::uint64_t index) {
    if (width == 64) return word(2 * index) | word(2 * index + 1) << 32;
    if (width == 16) return word(index / 2) >> (index % 2 * 16) & 0xFFFF;
    return word(index);
  }

 private:
  ASSAY_HD std::uint64_t word(std::uint64_t index) { return block(index / 4).word[index % 4]; }

  Stream stream_;
  PhiloxBlock held_;
  std::uint64_t number_ = 0;
};

}  // namespace assay
