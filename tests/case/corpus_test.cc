// Corpus files: lines, patterns, the check, and the public corpora as a whole.

#include "case/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/process.h"
#include "case/canonical.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class Corpus : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "assay-corpus-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, std::string_view text) const {
    const Status status = write_file(folder_ / name, text);
    EXPECT_TRUE(status);
    return folder_ / name;
  }

  static std::vector<std::pair<std::size_t, std::string>> lines_of(const fs::path& file) {
    std::vector<std::pair<std::size_t, std::string>> out;
    Result<CorpusReader> reader = CorpusReader::open(file);
    EXPECT_TRUE(reader);
    if (!reader) return out;
    CorpusLine line;
    while (reader->next(line).value()) out.emplace_back(line.number, line.text);
    return out;
  }

  fs::path folder_;
};

TEST_F(Corpus, SkipsBlanksAndCommentsAndCountsThem) {
  const fs::path file =
      write("c.txt",
            "\xEF\xBB\xBF"
            "paddle.a()\r\n\r\n  \t\n# comment\n  # indented\npaddle.b()\n\npaddle.c()");
  EXPECT_THAT(lines_of(file),
              ElementsAre(Pair(1, "paddle.a()"), Pair(6, "paddle.b()"), Pair(8, "paddle.c()")));
}

TEST_F(Corpus, ReadsAcrossTheBordersOfItsBuffer) {
  std::string text;
  const std::size_t count = 50'000;
  for (std::size_t i = 0; i < count; ++i) {
    text += "paddle.f(" + std::to_string(i) + ", '" + std::string(i % 97, 'x') + "')\n";
  }
  const auto lines = lines_of(write("big.txt", text));
  ASSERT_EQ(lines.size(), count);
  std::string joined;
  for (const auto& [number, line] : lines) joined += line + "\n";
  EXPECT_EQ(joined, text);
}

TEST_F(Corpus, RefusesALineOfTenMegabytesAndGoesOn) {
  std::string text = "paddle.a()\npaddle.b(\"";
  text.resize(text.size() + 10'000'000, 'x');
  text += "\")\npaddle.c()\n";
  const std::string file = write("long.txt", text).string();
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].second.size(), kMaxLineBytes + 1);
  EXPECT_THAT(lines[2], Pair(3, "paddle.c()"));

  std::ostringstream out;
  const Result<CorpusCheck> check =
      check_corpus(std::span(&file, 1), [&](std::string_view line) { out << line; });
  ASSERT_TRUE(check);
  EXPECT_EQ(check->parsed, 2U);
  EXPECT_EQ(check->failed, 1U);
  EXPECT_THAT(out.str(), HasSubstr(":2:1048577: the line is longer than 1 MiB"));
  EXPECT_LT(out.str().size(), 1000U);
}

TEST_F(Corpus, KeepsALineOfExactlyTheLimit) {
  // Compared as bool: a failure must not print megabytes.
  const std::string longest(kMaxLineBytes, 'x');
  EXPECT_TRUE(lines_of(write("c.txt", longest + "\r\n")).at(0).second == longest);
  EXPECT_TRUE(lines_of(write("d.txt", longest + "yz\n")).at(0).second == longest + "y");
}

TEST_F(Corpus, NamesFilesThatItCannotUse) {
  const auto message = [](const fs::path& file) {
    const Result<CorpusReader> reader = CorpusReader::open(file);
    EXPECT_FALSE(reader);
    if (reader) return std::string();
    EXPECT_EQ(reader.error().kind, ErrorKind::usage);
    return reader.error().message;
  };
  EXPECT_THAT(message(folder_ / "none.txt"), HasSubstr("none.txt: No such file"));
  EXPECT_THAT(message(folder_), HasSubstr("Is a directory"));
  EXPECT_THAT(message(write("c.bin", std::string("\xFD"
                                                 "7zXZ\0\0",
                                                 7))),
              HasSubstr("binary"));
}

TEST_F(Corpus, ExpandsPatterns) {
  write("b.txt", "");
  write("a.txt", "");
  write("c[1].txt", "");
  const auto names = [&](const std::string& pattern) {
    std::vector<std::string> out;
    const Result<std::vector<fs::path>> files = expand_corpus_pattern((folder_ / pattern).string());
    for (const fs::path& file : files.value()) out.push_back(file.filename().string());
    return out;
  };
  EXPECT_THAT(names("?.txt"), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(names("[ab].txt"), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(names("c[1].txt"), ElementsAre("c[1].txt"));  // it exists under that very name
  EXPECT_THAT(names("$(touch pwned).txt"), ElementsAre("$(touch pwned).txt"));
  EXPECT_FALSE(expand_corpus_pattern((folder_ / "*.none").string()));
}

TEST_F(Corpus, CheckPrintsEachFailureAndTheSum) {
  const std::string file =
      write("c.txt", "# three\npaddle.a(1)\npaddle.b(?)\npaddle.c(1)paddle.c(1)\n").string();
  std::ostringstream out;
  ASSERT_TRUE(check_corpus(std::span(&file, 1), [&](std::string_view line) { out << line; }));
  EXPECT_EQ(out.str(), file +
                           ":3:10: expected a value, found '?'\n"
                           "  paddle.b(?)\n"
                           "           ^\n"
                           "2 parsed, 1 failed\n");
}

TEST_F(Corpus, CheckRefusesFilesWithoutACase) {
  std::ostringstream out;
  for (const char* text : {"", "\n\n", "# only this\n"}) {
    const std::string file = write("c.txt", text).string();
    const Result<CorpusCheck> check =
        check_corpus(std::span(&file, 1), [&](std::string_view line) { out << line; });
    ASSERT_FALSE(check);
    EXPECT_EQ(check.error().kind, ErrorKind::usage);
    EXPECT_THAT(check.error().message, HasSubstr("no case"));
  }
  EXPECT_EQ(out.str(), "");
}

// The public corpora, which are not part of the tree.
class PublicCorpus : public Corpus {
 protected:
  void SetUp() override {
    Corpus::SetUp();
    const char* const shared = std::getenv("ASSAY_SHARED");
    corpora_ = (shared != nullptr ? fs::path(shared) : fs::path(ASSAY_SOURCE_DIR) / "../shared") /
               "corpora";
    if (!fs::exists(corpora_)) GTEST_SKIP() << "no corpora in " << corpora_;
  }

  // Unpacks the large one.
  fs::path unpacked() const {
    fs::path file = folder_ / "all.txt";
    const Fd out = open_for_append(file).value();
    SpawnOptions options;
    options.argv = {"xz", "-dc", (corpora_ / "paddle_api_configs.txt.xz").string()};
    options.fds = {{out.get(), 1}};
    Process xz = Process::spawn(options).value();
    EXPECT_TRUE(xz.wait().value().ok());
    return file;
  }

  fs::path corpora_;
};

std::size_t occurrences(std::string_view text, std::string_view piece) {
  std::size_t count = 0;
  for (std::size_t at = text.find(piece); at != std::string_view::npos;
       at = text.find(piece, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(PublicCorpus, EveryLineParses) {
  const std::vector<std::string> files{unpacked().string()};
  std::ostringstream out;
  ASSERT_TRUE(check_corpus(files, [&](std::string_view line) { out << line; }));
  EXPECT_EQ(out.str(), "281055 parsed, 0 failed\n");  // the number of lines that its README gives
}

TEST_F(PublicCorpus, SamplesParse) {
  const std::vector<std::string> files{(corpora_ / "sample_*.txt").string()};
  std::ostringstream out;
  ASSERT_TRUE(check_corpus(files, [&](std::string_view line) { out << line; }));
  EXPECT_EQ(out.str(), "4124 parsed, 0 failed\n");  // 2,000 and 2,124
}

TEST_F(PublicCorpus, CanonicalTextKeepsTheMeaningOfEveryLine) {
  Result<CorpusReader> reader = CorpusReader::open(unpacked());
  ASSERT_TRUE(reader);
  CorpusLine line;
  Case scratch;
  Case again;
  while (reader->next(line).value() && !HasFailure()) {
    const auto check = [&](const Case& call) {
      const std::string canonical = canonical_text(call);
      ASSERT_TRUE(parse_case(canonical, again)) << canonical;
      EXPECT_EQ(again, call) << canonical;
      EXPECT_EQ(canonical_text(again), canonical);
      // Counted without the parser; no string of the corpora holds these.
      EXPECT_EQ(call.tensor_count(), occurrences(call.text(), "Tensor([")) << call.text();
    };
    ASSERT_TRUE(parse_line(line.text, scratch, check));
  }
}

}  // namespace
}  // namespace assay
