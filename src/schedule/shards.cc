#include "schedule/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/values.h"

namespace assay {
namespace {

constexpr std::size_t kMostShards = 100'000;

}  // namespace

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || !read_number(text.substr(0, slash), shard.number) ||
      !read_number(text.substr(slash + 1), shard.of) || shard.number < 1 ||
      shard.number > shard.of || shard.of > kMostShards) {
    return usage_error(fmt::format(
        "--shard={} is invalid; write PART/PARTS, such as 1/4 to 4/4 for 4 parts", text));
  }
  return shard;
}

std::string text_of(const Shard& shard) { return fmt::format("{}/{}", shard.number, shard.of); }

// Assigns cases in order of falling cost, each to the shard with the least work so far.
std::vector<std::uint64_t> cases_of(const Shard& shard, std::vector<ExpectedCase> all) {
  std::sort(all.begin(), all.end(), [](const ExpectedCase& a, const ExpectedCase& b) {
    return std::tie(b.work_us, a.id) < std::tie(a.work_us, b.id);
  });
  using Load = std::pair<std::uint64_t, std::size_t>;  // expected work, shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::size_t number = 1; number <= shard.of; ++number) loads.emplace(0, number);
  std::vector<std::uint64_t> mine;
  for (const ExpectedCase& each : all) {
    auto [load, number] = loads.top();
    loads.pop();
    if (number == shard.number) mine.push_back(each.id);
    loads.emplace(load + each.work_us, number);
  }
  std::sort(mine.begin(), mine.end());
  return mine;
}

}  // namespace assay
