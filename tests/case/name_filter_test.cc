#include "case/name_filter.h"

#include <gmock/gmock.h>

#include <string>

namespace assay {
namespace {

using ::testing::HasSubstr;

bool selects(const std::string& expression, const std::string& name) {
  const auto filter = NameFilter::parse(expression);
  EXPECT_TRUE(filter) << expression << ": " << filter.error().message;
  return filter && filter->matches(name);
}

TEST(NameFilter, APartOfTheNameInAnyCase) {
  EXPECT_TRUE(selects("soft", "paddle.nn.functional.softmax"));
  EXPECT_TRUE(selects("SoftMax", "paddle.nn.functional.softmax"));
  EXPECT_TRUE(selects("functional.softmax", "paddle.nn.functional.softmax"));
  EXPECT_FALSE(selects("softmax_", "paddle.nn.functional.softmax"));
}

TEST(NameFilter, TheFrameworksNameCountsOnlyAsAWhole) {
  EXPECT_FALSE(selects("add", "paddle.abs"));
  EXPECT_TRUE(selects("add", "paddle.Tensor.add_"));
  EXPECT_TRUE(selects("paddle", "paddle.abs"));
  EXPECT_TRUE(selects("paddle.nn", "paddle.nn.functional.relu"));
  EXPECT_FALSE(selects("paddle.nn", "paddle.abs"));
  EXPECT_TRUE(selects(".abs", "paddle.abs"));
}

TEST(NameFilter, NotBindsCloserThanAndThanOr) {
  EXPECT_TRUE(selects("softmax and not log", "paddle.softmax"));
  EXPECT_FALSE(selects("softmax and not log", "paddle.log_softmax"));
  EXPECT_TRUE(selects("abs or exp and log", "paddle.abs"));
  EXPECT_FALSE(selects("(abs or exp) and log", "paddle.abs"));
  EXPECT_TRUE(selects("not not abs", "paddle.abs"));
  EXPECT_FALSE(selects("not abs and not exp", "paddle.exp"));
  EXPECT_TRUE(selects("not(abs or exp)", "paddle.log"));
  EXPECT_TRUE(selects("android", "paddle.android")) << "a word that starts with `and`";
}

TEST(NameFilter, AnErrorNamesTheColumn) {
  const auto said = [](std::string_view expression) {
    const auto filter = NameFilter::parse(expression);
    EXPECT_FALSE(filter) << expression;
    return filter ? std::string() : filter.error().message;
  };
  EXPECT_EQ(said(""), "-k, column 1: expected a part of a name, found the end");
  EXPECT_EQ(said("abs and"), "-k, column 8: expected a part of a name, found the end");
  EXPECT_EQ(said("abs exp"), "-k, column 5: expected `and`, `or` or the end, found 'exp'");
  EXPECT_EQ(said("(abs or exp"), "-k, column 12: expected `)`, found the end");
  EXPECT_EQ(said("abs)"), "-k, column 4: expected `and`, `or` or the end, found ')'");
  EXPECT_EQ(said("or abs"), "-k, column 1: expected a part of a name, found 'or'");
  EXPECT_THAT(said(std::string(5000, '(')), HasSubstr("at most 4096"));
}

}  // namespace
}  // namespace assay
