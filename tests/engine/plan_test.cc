// From a corpus to a queue.

#include "engine/plan.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

TEST(TextPool, KeepsTextsOfAnySize) {
  TextPool pool;
  const std::string large(3 << 20, 'x');
  std::vector<std::string_view> small;
  const std::string_view kept = pool.keep(large);
  for (int i = 0; i < 3000; ++i) small.push_back(pool.keep(std::string(500, 'a')));
  const std::string_view second = pool.keep(large);
  EXPECT_EQ(kept, large);
  EXPECT_EQ(second, large);
  for (const std::string_view text : small) EXPECT_EQ(text, std::string(500, 'a'));
}

}  // namespace
}  // namespace assay
