#include <gtest/gtest.h>

#include "cli/api_options.h"

namespace assay {
namespace {

TEST(ParseBool, TakesWhatEngineV2Takes) {
  for (const char* yes : {"True", "true", "TRUE", "1", "yes", "Y"}) {
    EXPECT_EQ(parse_bool(yes), true) << yes;
  }
  for (const char* no : {"False", "false", "FALSE", "0", "no", "N"}) {
    EXPECT_EQ(parse_bool(no), false) << no;
  }
  for (const char* other : {"", "2", "t", "on", " true", "True ", "nope", "-1"}) {
    EXPECT_EQ(parse_bool(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace assay
