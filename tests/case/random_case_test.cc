// Properties that hold for any case, checked on random ones. The seeds are fixed.

#include "random_case.h"

#include <gtest/gtest.h>

#include <string>

#include "case/canonical.h"
#include "case/parser.h"

namespace assay {
namespace {

Case parsed(const std::string& text) {
  Case out;
  const ParseStatus status = parse_case(text, out);
  EXPECT_TRUE(status) << text << "\ncolumn " << (status ? 0 : status.error().column) << ": "
                      << (status ? "" : status.error().message);
  return out;
}

TEST(RandomCase, IsReadAsItWasMadeHoweverItIsWritten) {
  Random random(1);
  for (int i = 0; i < 20'000 && !HasFailure(); ++i) {
    const RandomCase source = random_case(random, 1 + i % 8);
    const std::string text = write_somehow(source, random);
    EXPECT_EQ(difference(source, parsed(text)), "") << text;
  }
}

TEST(RandomCase, HasOneCanonicalTextHoweverItIsWritten) {
  Random random(2);
  for (int i = 0; i < 20'000 && !HasFailure(); ++i) {
    const RandomCase source = random_case(random, 1 + i % 8);
    const std::string text = write_somehow(source, random);
    const Case call = parsed(text);
    const std::string canonical = canonical_text(call);
    const Case again = parsed(canonical);
    EXPECT_EQ(difference(source, again), "") << text << "\n" << canonical;
    EXPECT_EQ(again, call) << canonical;
    EXPECT_EQ(canonical_text(again), canonical);
    EXPECT_EQ(canonical_text(parsed(write_somehow(source, random))), canonical) << text;
  }
}

TEST(RandomCase, DiffersInTextExactlyWhereItDiffersInMeaning) {
  Random random(3);
  int equal = 0;
  for (int i = 0; i < 50'000 && !HasFailure(); ++i) {
    const RandomCase a = random_case(random, 1);
    const Case b = parsed(write_somehow(random_case(random, 1), random));
    const Case a_parsed = parsed(write_somehow(a, random));
    const bool same_meaning = difference(a, b).empty();
    equal += same_meaning ? 1 : 0;
    EXPECT_EQ(a_parsed == b, same_meaning) << a_parsed.text() << "\n" << b.text();
    EXPECT_EQ(canonical_text(a_parsed) == canonical_text(b), same_meaning);
  }
  EXPECT_GT(equal, 100);  // otherwise the test above has compared nothing
}

TEST(RandomCase, CutShortAnywhereIsAnErrorInsideTheText) {
  Random random(4);
  for (int i = 0; i < 500; ++i) {
    const RandomCase source = random_case(random, 3);
    const std::string text = write_somehow(source, random);
    for (std::size_t size = 0; size < text.size(); ++size) {
      Case out;
      const ParseStatus status = parse_case(std::string_view(text).substr(0, size), out);
      // The construction of a layer is a call by itself.
      if (status && source.constructs && !out.constructs()) continue;
      ASSERT_FALSE(status) << text.substr(0, size);
      ASSERT_GE(status.error().column, 1U);
      ASSERT_LE(status.error().column, size + 1);
    }
  }
}

}  // namespace
}  // namespace assay
