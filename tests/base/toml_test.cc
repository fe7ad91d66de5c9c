#include "base/toml.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Read {
  std::string text = "kept";
  double number = 0.5;
  bool flag = true;
  std::vector<std::string> texts;
};

Status read_into(Read& found, TomlTable& table) {
  ASSAY_CHECK(table.read("text", found.text));
  ASSAY_CHECK(table.read("number", found.number));
  ASSAY_CHECK(table.read("flag", found.flag));
  return table.read("texts", found.texts);
}

// A file with [tables.NAME]; the last one read, or the error.
Result<Read> read(const std::string& toml) {
  ASSAY_TRY(TomlTable root, TomlTable::parse(toml, "file.toml", 3));
  Read found;
  const auto read_one = [&](const std::string&, TomlTable& table) {
    return read_into(found, table);
  };
  ASSAY_CHECK(root.read_tables("tables", read_one));
  ASSAY_CHECK(root.refuse_others());
  return found;
}

std::string error_of(const std::string& toml) {
  const auto result = read(toml);
  if (result) return "no error";
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  return result.error().message;
}

TEST(Toml, ReadsEachKindAndKeepsWhatIsNotThere) {
  const auto all = read(
      "version = 3\n[tables.a]\ntext = \"t\"\nnumber = 2\nflag = false\ntexts = [\"x\", \"y\"]\n");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->text, "t");
  EXPECT_EQ(all->number, 2);
  EXPECT_FALSE(all->flag);
  EXPECT_THAT(all->texts, ElementsAre("x", "y"));
  const auto none = read("version = 3\n[tables.a]\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->text, "kept");
  EXPECT_EQ(none->number, 0.5);
  EXPECT_TRUE(read("version = 3\n"));
}

TEST(Toml, RefusesUnknownKeysWithTheirLine) {
  EXPECT_EQ(error_of("version = 3\ncolour = 1\n"),
            "file.toml:2: unknown setting colour; known here: version, tables");
  EXPECT_EQ(error_of("version = 3\n[tables.a]\ntext = \"\"\ntxet = \"\"\n"),
            "file.toml:4: unknown setting tables.a.txet; known here: text, number, flag, texts; "
            "did you mean 'text'?");
  EXPECT_EQ(error_of("version = 3\n[tables]\ntext = \"a\"\n"),
            "file.toml:3: unknown setting tables.text; known here: only tables");
  EXPECT_THAT(
      error_of("version = 3\n[table.a]\n"),
      HasSubstr("unknown setting table; known here: version, tables; did you mean 'tables'?"));
  EXPECT_THAT(error_of("version = 3\n[tables.a.b]\n"), HasSubstr("unknown setting tables.a.b"));
}

TEST(Toml, RefusesOtherTypes) {
  const auto of = [](const std::string& line) {
    return error_of("version = 3\n[tables.a]\n" + line + "\n");
  };
  EXPECT_EQ(of("text = 1"), "file.toml:3: tables.a.text wants a text in quotes");
  EXPECT_THAT(of("number = \"1\""), HasSubstr("wants a number"));
  EXPECT_THAT(of("number = true"), HasSubstr("wants a number"));
  EXPECT_THAT(of("flag = 1"), HasSubstr("wants true or false"));
  EXPECT_THAT(of("texts = \"x\""), HasSubstr("wants a list"));
  EXPECT_THAT(of("texts = [\"x\", 1]"), HasSubstr("wants a list"));
  EXPECT_THAT(error_of("version = 3\ntables = 1\n"), HasSubstr("tables wants tables"));
}

TEST(Toml, RefusesOtherVersionsAndWhatIsNoToml) {
  for (const char* text : {"", "version = 2\n", "version = \"3\"\n", "version = 3.0\n"}) {
    EXPECT_EQ(error_of(text), "file.toml: version = 3 is wanted") << text;
  }
  for (const char* text : {"[tables\n", "[\n", "[\n[\n"}) {
    EXPECT_THAT(error_of("version = 3\n" + std::string(text)), HasSubstr("file.toml:2: ")) << text;
  }
}

// toml++ and its tables recurse: a deep key was a SIGSEGV.
TEST(Toml, RefusesWhatIsTooLargeBeforeItIsParsed) {
  const auto tree = toml_tree(std::string((std::size_t{2} << 20) + 1, '['), "f.toml");
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().message, "f.toml: larger than 2 MiB");
}

TEST(Toml, RefusesKeysOfManyParts) {
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += i % 2 == 0 ? ".a" : ".\"b\"";
  EXPECT_EQ(error_of("version = 3\n" + deep + " = 1\n"),
            "file.toml:2: a key has more than 16 parts");
  EXPECT_THAT(error_of("version = 3\n[" + deep + "]\n"), HasSubstr(":2: a key has more than"));
  EXPECT_THAT(error_of("version = 3\nx = {" + deep + " = 1}\n"), HasSubstr("a key has more than"));
}

TEST(Toml, TakesDotsWhereTheyAreNoParts) {
  const std::string dots(50, '.');
  const std::string text = "# " + dots + "\na = \"" + dots + "\"\nb = '" + dots +
                           "'\nc = \"\"\"\n" + dots + "\"\n\"\"\"\nd =  + dots + \ne = \"\\\"" +
                           dots + "\"\nf = \"\"\n";
  EXPECT_TRUE(check_toml_keys(text, "file.toml"));
  std::string numbers = "[";
  for (int i = 0; i < 50; ++i) numbers += "1.5, ";
  EXPECT_TRUE(check_toml_keys("a = " + numbers + "]", "file.toml"));
}

TEST(Toml, WrittenTextsAreReadAsTheyWere) {
  const std::string text = "a \"quoted\" \\ \t\x7f\n\u4e2d";
  const auto tree = toml_tree("key = " + toml_text(text), "here");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->entries.at(0).text, text);
}

}  // namespace
}  // namespace assay
