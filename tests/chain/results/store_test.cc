// The chain's store in a file, and an interrupted creation.

#include <gtest/gtest.h>

#include "chain/results/chain_store.h"
#include "material.h"

namespace assay::chain {
namespace {

// An existing table makes the schema fail in the middle, like a kill. Nothing of the schema may
// remain, or no later run could open the file.
TEST(ChainStore, ACutShortSchemaLeavesNothingBehind) {
  Scratch scratch;
  const auto path = scratch.path() / "chain.db";
  {
    auto database = Database::open(path, OpenMode::create);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("CREATE TABLE autolog(stage INTEGER)"));
  }
  EXPECT_FALSE(results::ChainStore::open(path, OpenMode::create));
  {
    auto database = Database::open(path, OpenMode::existing);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("DROP TABLE autolog"));
  }
  const auto store = results::ChainStore::open(path, OpenMode::create);
  EXPECT_TRUE(store) << store.error().message;
  EXPECT_TRUE(results::ChainStore::open(scratch.path() / "other.db", OpenMode::create));
}

}  // namespace
}  // namespace assay::chain
