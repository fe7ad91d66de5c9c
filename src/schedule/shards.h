#pragma once

// Splits a corpus into shards for machines that share nothing. Each case is in one shard, and the
// shards have about the same expected work. Machines with the same cases and costs compute the same
// shards.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct Shard {
  std::size_t number = 1;  // counts from 1
  std::size_t of = 1;
};

// Parses "2/8". A usage error for other texts.
Result<Shard> parse_shard(std::string_view text);
// The shard as "2/8".
std::string text_of(const Shard& shard);

struct ExpectedCase {
  std::uint64_t id = 0;
  std::uint64_t work_us = 0;
};

// The ids of the shard's cases, sorted. `all` must not contain a case twice.
std::vector<std::uint64_t> cases_of(const Shard& shard, std::vector<ExpectedCase> all);

}  // namespace assay
