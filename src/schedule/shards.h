#pragma once

// A corpus in parts for machines that share nothing: every case in one part, parts of about the
// same expected work. All machines that know the same cases and costs come to the same parts.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct Shard {
  std::size_t number = 1;  // from 1 on
  std::size_t of = 1;
};

// "2/8".
Result<Shard> parse_shard(std::string_view text);
std::string text_of(const Shard& shard);

struct ExpectedCase {
  std::uint64_t id = 0;
  std::uint64_t work_us = 0;
};

// The ids of the shard's cases, in order of id. No case may be given twice.
std::vector<std::uint64_t> cases_of(const Shard& shard, std::vector<ExpectedCase> all);

}  // namespace assay
