// Shards, index and header of goldens: what a killed writer, a damaged disk or a stranger leaves.

#include "goldens/folder.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "base/atomic_file.h"
#include "base/fd.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Goldens : public ::testing::Test {
 protected:
  Goldens() {
    std::string pattern = std::filesystem::temp_directory_path() / "assay-goldens-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
  }
  ~Goldens() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  // A shard with a frame for each list of ids; the golden of a case is its id, 100 times.
  std::filesystem::path write(const std::vector<std::vector<CaseId>>& frames) const {
    const auto before = shards();
    ShardWriter writer(folder_);
    for (const std::vector<CaseId>& ids : frames) {
      std::vector<GoldenCase> cases;
      for (const CaseId id : ids) cases.push_back({id, golden(id)});
      EXPECT_TRUE(writer.append(cases));
    }
    for (const auto& shard : shards()) {
      if (std::ranges::find(before, shard) == before.end()) return shard;
    }
    return {};
  }
  static GoldenBytes golden(CaseId id) { return GoldenBytes(100, static_cast<std::uint8_t>(id)); }
  std::vector<std::filesystem::path> shards() const {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() == ".shard") found.push_back(file.path());
    }
    return found;
  }
  std::string error_of_open() const {
    const auto opened = GoldenFolder::open(folder_, "");
    return opened ? "" : opened.error().message;
  }
  void replace(const char* file, const std::string& from, const std::string& to) const {
    std::string text = *read_file(folder_ / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    ASSERT_TRUE(write_file(folder_ / file, text.replace(at, from.size(), to)));
  }

  std::filesystem::path folder_;
};

TEST_F(Goldens, AreFoundByCaseTheNewestFirst) {
  write({{7, 3}, {9}});
  write({{3}});
  const auto sealed = seal_goldens(folder_, {{"seed", "5"}});
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->cases, 3);
  auto opened = GoldenFolder::open(folder_, "");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->facts().at("seed"), "5");
  EXPECT_THAT(*opened->find(9), ::testing::ElementsAre(golden(9)));
  EXPECT_THAT(*opened->find(3), SizeIs(2));
  EXPECT_THAT(*opened->find(4), SizeIs(0));
}

TEST_F(Goldens, WhatIsNotSealedIsNoFolderOfGoldens) {
  write({{1}});
  EXPECT_THAT(error_of_open(), HasSubstr("assay record --log_dir="));
}

TEST_F(Goldens, ATornEndCostsOnlyItself) {
  const auto shard = write({{1}, {2}});
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  const auto sealed = seal_goldens(folder_, nlohmann::json::object());
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->cases, 1);
  EXPECT_THAT(sealed->damaged, SizeIs(1));
  auto opened = GoldenFolder::open(folder_, "");
  ASSERT_TRUE(opened);
  EXPECT_THAT(*opened->find(1), SizeIs(1));
  EXPECT_THAT(*opened->find(2), SizeIs(0));
}

// A case is not read if any byte of its shard was changed.
TEST_F(Goldens, EveryDamagedByteShows) {
  const auto shard = write({{1, 2}});
  ASSERT_TRUE(seal_goldens(folder_, nlohmann::json::object()));
  const std::string sound = *read_file(shard);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(shard, std::ios::binary)
        .write(damaged.data(), static_cast<std::streamsize>(damaged.size()));
    auto opened = GoldenFolder::open(folder_, "");
    ASSERT_TRUE(opened);
    EXPECT_FALSE(opened->find(1)) << at;
  }
}

TEST_F(Goldens, OtherVersionsAndDamagedFilesAreRefused) {
  write({{1}});
  ASSERT_TRUE(seal_goldens(folder_, nlohmann::json::object()));
  const std::string header = *read_file(folder_ / "goldens.json");
  replace("goldens.json", "\"version\": 1", "\"version\": 2");
  EXPECT_THAT(error_of_open(), HasSubstr("format 2, and this assay reads format 1"));
  ASSERT_TRUE(write_file(folder_ / "goldens.json", header));
  replace("goldens.json", "\"goldens-", "\"../goldens-");  // leads out of the folder
  EXPECT_THAT(error_of_open(), HasSubstr("goldens.json is damaged"));
  ASSERT_TRUE(write_file(folder_ / "goldens.json", header));
  replace("goldens.index", *read_file(folder_ / "goldens.index"), "short");
  EXPECT_THAT(error_of_open(), HasSubstr("goldens.index is damaged"));
}

}  // namespace
}  // namespace assay
