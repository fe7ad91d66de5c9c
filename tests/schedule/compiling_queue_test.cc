// The order of cases whose kernels compile at first use.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "jobs.h"
#include "schedule/queue.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kNoBudget = std::uint64_t{1} << 40U;

// Cases of two dtypes of each API, `each` of a kind, in turn.
Queue compiling(std::size_t slots, std::size_t apis, std::size_t each, bool gpu = false) {
  Queue queue({kNoBudget, gpu ? kNoBudget : 0, gpu ? 1U : 0U}, true);
  for (std::size_t id = 0; id < apis * 2 * each; ++id) {
    wire::JobT added = sized(id, 10 + id);
    const char api = static_cast<char>('a' + id / 2 % apis);
    added.test_case.text =
        fmt::format(R"({}(Tensor([{}], "float{}")))", api, id, id % 2 == 0 ? 32 : 64);
    queue.add(added);
  }
  queue.sort(slots);
  return queue;
}

std::string kind(const wire::JobT& job) {
  const std::string& text = job.test_case.text;
  return text.substr(0, 1) + text.substr(text.find("float") + 5, 2);
}

// The slots that ran each kind when all take turns, and their kinds in order.
std::map<std::string, std::set<std::uint32_t>> run(Queue& queue, std::uint32_t slots,
                                                   std::vector<std::string>* orders = nullptr) {
  std::map<std::string, std::set<std::uint32_t>> found;
  for (std::uint32_t slot = 0; !queue.empty(); slot = (slot + 1) % slots) {
    for (const wire::JobT& job : queue.lease(slot)) {
      found[kind(job)].insert(slot);
      if (orders == nullptr) continue;
      std::string& order = (*orders)[slot];
      if (!order.ends_with(kind(job))) order += kind(job);
    }
  }
  return found;
}

TEST(CompilingQueue, KernelsThatCompileMeetOneSlot) {
  for (const bool gpu : {false, true}) {
    Queue queue = compiling(4, 10, 3, gpu);
    std::vector<std::string> orders(4);
    const auto found = run(queue, 4, &orders);
    EXPECT_EQ(found.size(), 20U);
    for (const auto& [name, slots] : found) EXPECT_EQ(slots.size(), 1U) << name;
    for (const std::string& order : orders) EXPECT_EQ(order.size(), 15U) << order;
  }
}

TEST(CompilingQueue, ASlotThatHelpsTakesAGroupOfThoseThatCompile) {
  Queue queue = compiling(2, 4, 5);
  EXPECT_EQ(queue.enough(2), 2U) << "a slot keeps what it has leased";
  std::vector<std::string> taken;
  while (!queue.empty()) {  // the other slot hangs in its first lease
    const auto leased = queue.lease(1);
    if (taken.empty() || taken.back() != kind(leased[0])) taken.push_back(kind(leased[0]));
    for (const wire::JobT& job : leased)
      EXPECT_EQ(kind(job), leased.size() > 2 ? kind(leased[0]) : kind(job));
  }
  EXPECT_THAT(taken, ElementsAre("c32", "c64", "d32", "d64", "b64", "b32", "a64", "a32"));
}

TEST(CompilingQueue, ALongGroupThatCompilesIsSharedAtTheEnd) {
  Queue queue = compiling(2, 1, 100);
  const auto found = run(queue, 2);
  EXPECT_EQ(found.at("a32").size() + found.at("a64").size(), 2U) << "each has one";
  Queue single = compiling(2, 1, 100);
  EXPECT_EQ(single.lease(0).size(), 8U);
  EXPECT_EQ(single.lease(0).size(), 11U) << "an eighth of the rest";
  std::size_t left = 181;
  while (!single.empty()) left -= single.lease(0).size();
  EXPECT_EQ(left, 0U);
}

TEST(CompilingQueue, WhereKernelsCompileRetriesOnCpusRunAnywhere) {
  Queue queue({kNoBudget, 0, 0}, true);
  for (std::uint64_t id = 0; id < 3; ++id) {
    wire::JobT again = sized(id, 10);
    again.attempt.isolation = wire::Isolation::own_process;
    queue.put_back(again);
  }
  EXPECT_THAT(ids(queue.lease(3)), ElementsAre(0));
  EXPECT_THAT(ids(queue.lease(5)), ElementsAre(1));
}

}  // namespace
}  // namespace assay
