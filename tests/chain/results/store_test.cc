// The chain's store on a disk, and what is left of it when its making is cut short.

#include <gtest/gtest.h>

#include "chain/results/chain_store.h"
#include "material.h"

namespace assay::chain {
namespace {

// A table of ours that is there already makes the schema fail in its middle, at the place where a
// kill would leave it: nothing of the schema may stay, or no later run could open the file.
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
