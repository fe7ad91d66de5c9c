#pragma once

// XXH3_64 (seed 0, default secret) for host and CUDA, from its specification (doc/xxhash_spec.md of
// the xxHash project). GPUs hash with these functions, the host with the xxHash library; tests
// compare both.

#include <cstdint>

#include "fill/host_device.h"

namespace assay::xxh3 {

inline constexpr std::uint32_t kPrime32_1 = 0x9E3779B1;
inline constexpr std::uint32_t kPrime32_2 = 0x85EBCA77;
inline constexpr std::uint32_t kPrime32_3 = 0xC2B2AE3D;
inline constexpr std::uint64_t kPrime64_1 = 0x9E3779B185EBCA87;
inline constexpr std::uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4F;
inline constexpr std::uint64_t kPrime64_3 = 0x165667B19E3779F9;
inline constexpr std::uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63;
inline constexpr std::uint64_t kPrime64_5 = 0x27D4EB2F165667C5;

inline constexpr std::uint32_t kStripe = 64;  // bytes
inline constexpr int kStripesInBlock = 16;
inline constexpr std::uint32_t kBlock = kStripe * kStripesInBlock;
// Inputs up to this length have formulas of their own. In bytes.
inline constexpr std::uint32_t kLongest = 240;
// Offsets in the secret of the keys for the end of a block, the last stripe and the merge.
inline constexpr int kScrambleKeys = 128;
inline constexpr int kLastStripeKeys = 121;
inline constexpr int kMergeKeys = 11;

// A GPU reads the secret from constant memory; an ordinary array would not be placed there.
#ifdef __CUDA_ARCH__
#define ASSAY_SECRET static __constant__ const
#else
#define ASSAY_SECRET inline constexpr
#endif
ASSAY_SECRET std::uint64_t kSecret[] = {
    0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072,
    0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0,
    0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938,
    0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8,
    0xC3EBD33483ACC5EA, 0xEB6313FAFFA081C5, 0x49DAF0B751DD0D17, 0x9E68D429265516D3,
    0xFCA1477D58BE162B, 0xCE31D07AD1B8F88F, 0x280416958F3ACB45, 0x7E404BBBCAFBD7AF};
#undef ASSAY_SECRET

// The 64-bit word of the secret at this byte, which may be unaligned.
ASSAY_HD std::uint64_t secret(int byte) {
  const int bits = byte % 8 * 8;
  if (bits == 0) return kSecret[byte / 8];
  return kSecret[byte / 8] >> bits | kSecret[byte / 8 + 1] << (64 - bits);
}

ASSAY_HD std::uint64_t read64(const unsigned char* at) {
  std::uint64_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}
ASSAY_HD std::uint64_t read32(const unsigned char* at) {
  std::uint32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

ASSAY_HD std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  return a * b ^ ieee::multiply_high(a, b);
}
ASSAY_HD std::uint64_t avalanche(std::uint64_t hash) {
  hash = (hash ^ hash >> 37) * 0x165667919E3779F9;
  return hash ^ hash >> 32;
}
ASSAY_HD std::uint64_t old_avalanche(std::uint64_t hash) {  // the avalanche of XXH64
  hash = (hash ^ hash >> 33) * kPrime64_2;
  hash = (hash ^ hash >> 29) * kPrime64_3;
  return hash ^ hash >> 32;
}
ASSAY_HD std::uint64_t rotated(std::uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}
ASSAY_HD std::uint64_t mixed_16(const unsigned char* at, int key) {
  return folded_product(read64(at) ^ secret(key), read64(at + 8) ^ secret(key + 8));
}

ASSAY_HD std::uint64_t hash_to_16(const unsigned char* at, std::uint32_t size) {
  if (size > 8) {
    const std::uint64_t low = read64(at) ^ secret(24) ^ secret(32);
    const std::uint64_t high = read64(at + size - 8) ^ secret(40) ^ secret(48);
    std::uint64_t swapped = 0;
    for (int i = 0; i < 8; ++i) swapped |= (low >> (8 * i) & 0xFF) << (56 - 8 * i);
    return avalanche(size + swapped + high + folded_product(low, high));
  }
  if (size >= 4) {
    std::uint64_t hash = (read32(at + size - 4) | read32(at) << 32) ^ secret(8) ^ secret(16);
    hash ^= rotated(hash, 49) ^ rotated(hash, 24);
    hash *= 0x9FB21C651E98DF25;
    hash ^= (hash >> 35) + size;
    hash *= 0x9FB21C651E98DF25;
    return hash ^ hash >> 28;
  }
  if (size == 0) return old_avalanche(secret(56) ^ secret(64));
  const std::uint32_t three = std::uint32_t{at[0]} << 16 | std::uint32_t{at[size / 2]} << 24 |
                              std::uint32_t{at[size - 1]} | size << 8;
  const std::uint64_t key = secret(0);
  return old_avalanche(three ^ static_cast<std::uint32_t>(key ^ key >> 32));
}

// Hashes at most kLongest bytes.
ASSAY_HD std::uint64_t hash_short(const unsigned char* at, std::uint32_t size) {
  if (size <= 16) return hash_to_16(at, size);
  std::uint64_t sum = size * kPrime64_1;
  if (size <= 128) {
    // Mixes pairs of 16 bytes from both ends inwards.
    for (std::uint32_t pair = 0; pair < (size + 31) / 32; ++pair) {
      sum += mixed_16(at + 16 * pair, static_cast<int>(32 * pair));
      sum += mixed_16(at + size - 16 * (pair + 1), static_cast<int>(32 * pair + 16));
    }
    return avalanche(sum);
  }
  for (int i = 0; i < 8; ++i) sum += mixed_16(at + 16 * i, 16 * i);
  sum = avalanche(sum) + mixed_16(at + size - 16, 136 - 17);
  for (int i = 8; i < static_cast<int>(size / 16); ++i) {
    sum += mixed_16(at + 16 * i, 16 * (i - 8) + 3);
  }
  return avalanche(sum);
}

// Two neighbouring words, 2 · part and 2 · part + 1, of the eight accumulators of a long input.
struct Part {
  std::uint64_t first;
  std::uint64_t second;

  ASSAY_HD void add(std::uint64_t x, std::uint64_t y, std::uint64_t x_key, std::uint64_t y_key) {
    const std::uint64_t a = x ^ x_key;
    const std::uint64_t b = y ^ y_key;
    first += y + (a & 0xFFFFFFFF) * (a >> 32);
    second += x + (b & 0xFFFFFFFF) * (b >> 32);
  }
  ASSAY_HD void scramble(std::uint64_t x_key, std::uint64_t y_key) {
    first = (first ^ first >> 47 ^ x_key) * kPrime32_1;
    second = (second ^ second >> 47 ^ y_key) * kPrime32_1;
  }
};
ASSAY_HD Part first_part(int part) {
  switch (part) {
    case 0:
      return {kPrime32_3, kPrime64_1};
    case 1:
      return {kPrime64_2, kPrime64_3};
    case 2:
      return {kPrime64_4, kPrime32_2};
    default:
      return {kPrime64_5, kPrime32_1};
  }
}

// The contribution of one part of a long input; the hash is avalanche(size · kPrime64_1 + their
// sum).
ASSAY_HD std::uint64_t long_part(const unsigned char* at, std::uint32_t size, int part) {
  Part gathered = first_part(part);
  const int key = 16 * part;
  const std::uint32_t stripes = (size - 1) / kStripe;
  for (std::uint32_t s = 0; s < stripes; ++s) {
    const int in_block = static_cast<int>(s % kStripesInBlock);
    const unsigned char* const from = at + s * kStripe + key;
    gathered.add(read64(from), read64(from + 8), secret(8 * in_block + key),
                 secret(8 * in_block + key + 8));
    if (in_block + 1 == kStripesInBlock) {
      gathered.scramble(secret(kScrambleKeys + key), secret(kScrambleKeys + key + 8));
    }
  }
  const unsigned char* const last = at + size - kStripe + key;
  gathered.add(read64(last), read64(last + 8), secret(kLastStripeKeys + key),
               secret(kLastStripeKeys + key + 8));
  return folded_product(gathered.first ^ secret(kMergeKeys + key),
                        gathered.second ^ secret(kMergeKeys + key + 8));
}
ASSAY_HD std::uint64_t merged(std::uint32_t size, std::uint64_t sum_of_parts) {
  return avalanche(size * kPrime64_1 + sum_of_parts);
}

ASSAY_HD std::uint64_t hash(const unsigned char* at, std::uint32_t size) {
  if (size <= kLongest) return hash_short(at, size);
  std::uint64_t sum = 0;
  for (int part = 0; part < 4; ++part) sum += long_part(at, size, part);
  return merged(size, sum);
}

}  // namespace assay::xxh3
