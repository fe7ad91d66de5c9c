// Shrinking of failures. A rule that knows the fault replaces the real run.

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <set>

#include "../report/stored_run.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "shrink/candidates.h"
#include "shrink/search.h"
#include "shrink/shrink_claims.h"
#include "shrink/tree.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

CaseTree tree_from(const std::string& text) {
  Case parsed;
  EXPECT_TRUE(parse_case(text, parsed).has_value()) << text;
  return tree_of(parsed);
}

std::string canonical(const std::string& text) {
  Case parsed;
  EXPECT_TRUE(parse_case(text, parsed).has_value()) << text;
  return canonical_text(parsed);
}

TEST(CaseTree, WritesWhatItRead) {
  for (
      const char* text : {
          R"(paddle.f(Tensor([2, 3], "float32"), list[1, -2.0, 1e+30], tuple(True), tuple(), slice(None, Tensor([1], "int64"), -1), Ellipsis, nan, -math.inf, complex(0.5, -2.0), 123456789012345678901234567890, Dtype(bfloat16), type(int), "a\"b", other=None))",
          R"(paddle.g(Tensor([2], "float32", place=Place(cpu), is_contiguous=False, strides=[2]), x=Place(gpu:0)))",
          R"(paddle.nn.LayerNorm(8, epsilon=1e-05)(Tensor([2, 8], "float32")))",
          R"(paddle.nn.ReLU()(Tensor([2, 8], "float32")))",
          R"(paddle.f(list[Tensor([2], "float32"), Tensor#1], y=Tensor#1))",
          R"(paddle.f())",
      }) {
    EXPECT_EQ(canonical(text_of(tree_from(text))), canonical(text));
  }
}

std::vector<std::string> smaller(const std::string& text) {
  std::vector<std::string> texts;
  for (const CaseTree& tree : smaller_cases(tree_from(text)))
    texts.push_back(canonical(text_of(tree)));
  return texts;
}

TEST(Candidates, EachTakesSomethingAway) {
  const auto of_call = smaller(
      R"(paddle.f(Tensor([4, 6], "float32"), Tensor([6], "float32"), 6, a=True, b=list[1, 2]))");
  EXPECT_THAT(
      of_call,
      Contains(canonical(R"(paddle.f(Tensor([4, 6], "float32"), Tensor([6], "float32"), 6))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([4, 6], "float32"), Tensor([6], "float32"), a=True, b=list[1, 2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(R"(paddle.f(Tensor([4, 6], "float32"), None, 6, a=True, b=list[1, 2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([4, 3], "float32"), Tensor([3], "float32"), 3, a=True, b=list[1, 2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([4, 3], "float32"), Tensor([3], "float32"), 6, a=True, b=list[1, 2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([6], "float32"), Tensor([6], "float32"), 6, a=True, b=list[1, 2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([4, 6], "float32"), Tensor([6], "float32"), 6, a=True, b=list[2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([4, 6], "float32"), Tensor([6], "float32"), 1, a=True, b=list[1, 2]))")));
  EXPECT_THAT(
      of_call,
      Contains(canonical(
          R"(paddle.f(Tensor([1, 1], "float32"), Tensor([1], "float32"), 6, a=True, b=list[1, 2]))")));
}

TEST(Candidates, OfALayerBothCallsStay) {
  const auto of_layer =
      smaller(R"(paddle.nn.LayerNorm(8, epsilon=1e-05)(Tensor([2, 8], "float32")))");
  EXPECT_THAT(of_layer,
              Contains(canonical(R"(paddle.nn.LayerNorm(8)(Tensor([2, 8], "float32")))")));
  EXPECT_THAT(
      of_layer,
      Contains(canonical(R"(paddle.nn.LayerNorm(4, epsilon=1e-05)(Tensor([2, 4], "float32")))")));
  for (const std::string& text : of_layer) EXPECT_THAT(text, ::testing::HasSubstr("Tensor("));
}

TEST(Candidates, WeightsGoDownSoThatEverySearchEnds) {
  const std::string text =
      R"(paddle.f(Tensor([7, 1, 0], "float32"), list[3, -4], 0.3, 5000000000, a="text"))";
  const double weight = weight_of(tree_from(text));
  for (const std::string& other : smaller(text))
    EXPECT_LT(weight_of(tree_from(other)), weight) << other;
  EXPECT_THAT(smaller("paddle.f()"), IsEmpty());
}

// ---- searches ----

using Fails = std::function<bool(const Case&)>;

FaultKey mismatch_of(const std::string& text) {
  return key_of(text, {Outcome::mismatch, kValue, 0, "", "differs"});
}

// Runs a search one case after another; returns the number of cases.
std::size_t run(ShrinkSearch& search, const Fails& fails) {
  std::size_t count = 0;
  while (!search.done()) {
    for (const std::string& text : search.ask()) {
      Case parsed;
      EXPECT_TRUE(parse_case(text, parsed).has_value()) << text;
      FinishedCase finished;
      finished.id = case_id(text);
      finished.text = text;
      if (fails(parsed)) finished.verdict = {Outcome::mismatch, kValue, 0, "", "differs"};
      search.tell(finished);
      ++count;
    }
  }
  return count;
}

std::string shrunk(const std::string& text, const Fails& fails, std::uint64_t most = 400) {
  ShrinkSearch search(1, canonical(text), mismatch_of(text), {most});
  run(search, fails);
  return search.smallest() ? search.smallest()->text : "";
}

TEST(Search, FindsTheSmallestCaseThatStillFails) {
  // The fault needs a last axis of at least three, and `mode`.
  const Fails fails = [](const Case& parsed) {
    bool mode = false;
    for (const Argument argument : parsed.arguments()) mode = mode || argument.keyword == "mode";
    if (parsed.tensor_count() == 0 || !mode) return false;
    const TensorSpec spec = parsed.tensor(0);
    return !spec.shape.empty() && spec.shape.back() >= 3;
  };
  EXPECT_EQ(
      shrunk(
          R"(paddle.f(Tensor([8, 5, 64, 33], "float64"), list[1, 2, 3], 0.25, align=True, mode="x", out=list[2, 4]))",
          fails),
      R"(paddle.f(Tensor([3], "float64"), mode="x"))");
}

TEST(Search, ExtentsThatBelongTogetherGoTogether) {
  // A product of two tensors: no extent can change alone, because the call would be refused.
  const Fails fails = [](const Case& parsed) {
    if (parsed.tensor_count() != 2) return false;
    const TensorSpec x = parsed.tensor(0);
    const TensorSpec y = parsed.tensor(1);
    return x.shape.size() == 2 && y.shape.size() == 2 && x.shape[1] == y.shape[0] &&
           x.shape[1] >= 5;
  };
  EXPECT_EQ(
      shrunk(R"(paddle.matmul(Tensor([12, 40], "float32"), Tensor([40, 9], "float32")))", fails),
      R"(paddle.matmul(Tensor([1, 5], "float32"), Tensor([5, 1], "float32")))");
}

TEST(Search, WhatDoesNotComeAgainIsNotShrunk) {
  EXPECT_EQ(shrunk(R"(paddle.f(Tensor([8], "float32")))", [](const Case&) { return false; }), "");
}

TEST(Search, AnotherFailureIsNotTheSame) {
  const std::string text = R"(paddle.f(Tensor([8], "float32")))";
  ShrinkSearch search(1, text, mismatch_of(text), {});
  while (!search.done()) {
    for (const std::string& asked : search.ask()) {
      FinishedCase finished;
      finished.id = case_id(asked);
      finished.text = asked;
      finished.verdict = asked == text ? Verdict{Outcome::mismatch, kValue, 0, "", "differs"}
                                       : Verdict{Outcome::crash, 0, 0, "paddle", "died"};
      search.tell(finished);
    }
  }
  ASSERT_TRUE(search.smallest());
  EXPECT_EQ(search.smallest()->text, text);
  EXPECT_TRUE(search.smallest()->whole);
}

TEST(Search, TheBudgetEndsIt) {
  const std::string text = R"(paddle.f(Tensor([8, 8, 8, 8], "float32"), a=1, b=2))";
  ShrinkSearch search(1, text, mismatch_of(text), {10});
  EXPECT_LE(run(search, [](const Case&) { return true; }), 10U);
  ASSERT_TRUE(search.smallest());
  EXPECT_FALSE(search.smallest()->whole);
}

// ---- the store that the engine sees ----

TEST(ShrinkClaims, HandsOutEachCaseOnceAndEndsWithTheSearches) {
  const std::string text = R"(paddle.f(Tensor([4], "float32")))";
  std::vector<ShrinkSearch> searches;
  searches.emplace_back(1, text, mismatch_of(text), ShrinkLimits{});
  searches.emplace_back(2, text, mismatch_of(text), ShrinkLimits{});  // the same case
  ShrinkClaims store(searches, std::numeric_limits<std::int64_t>::max());
  std::multiset<std::string> seen;
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::pair<std::uint64_t, std::string>> claimed;
    const Supply supply = *store.claim(1000, [&](const wire::JobT& each) -> Status {
      claimed.emplace_back(each.test_case.id, each.test_case.text);
      return {};
    });
    for (const auto& [id, asked] : claimed) {
      seen.insert(asked);
      FinishedCase finished;
      finished.id = id;
      finished.text = asked;
      finished.verdict = {Outcome::mismatch, kValue, 0, "", "differs"};
      EXPECT_TRUE(*store.finish(finished));
      EXPECT_FALSE(*store.finish(finished));  // it has ended already
    }
    if (supply == Supply::none) break;
  }
  EXPECT_TRUE(searches[0].done() && searches[1].done());
  EXPECT_EQ(searches[0].smallest()->text, searches[1].smallest()->text);
  for (const std::string& each : seen) EXPECT_EQ(seen.count(each), 1U) << each;
}

TEST(ShrinkClaims, WhenTheTimeIsOverNothingMoreIsClaimed) {
  const std::string text = R"(paddle.f(Tensor([4], "float32")))";
  std::vector<ShrinkSearch> searches;
  searches.emplace_back(1, text, mismatch_of(text), ShrinkLimits{});
  ShrinkClaims store(searches, 0);
  std::size_t claimed = 0;
  EXPECT_EQ(*store.claim(10, [&](const wire::JobT&) -> Status { return ++claimed, Status(); }),
            Supply::none);
  EXPECT_EQ(claimed, 0U);
}

}  // namespace
}  // namespace assay
