// Real suites, really run: the lines of docs/reference/chain-real-suite.md, as they stand there,
// from a clone to a compared result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "chain/results/chain_store.h"
#include "cli_run.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::SizeIs;

std::string named(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// The lines that docs/reference/chain-real-suite.md gives for a suite: the block that clones it.
std::string documented_lines(const std::string& suite) {
  const std::string docs = slurp(fs::path(ASSAY_SOURCE_DIR) / "docs/reference/chain-real-suite.md");
  const std::size_t clone = docs.find("git clone https://github.com/PaddlePaddle/" + suite + " ");
  if (clone == std::string::npos) return "";
  const std::size_t start = docs.rfind("```\n", clone) + 4;
  return docs.substr(start, docs.find("```", clone) - start);
}

// A new user's home: assay is built there, and nothing else is known.
class NewUser {
 public:
  NewUser(const std::string& checkout, const std::string& suite) {
    const fs::path bin = home() / "assay/build/release/bin";
    fs::create_directories(bin);
    fs::create_symlink(CHAIN_CLI, bin / "assay");
    fs::create_symlink(fs::path(ASSAY_SOURCE_DIR) / "examples", home() / "assay/examples");
    // The clone comes from the checkout that is here, and the environment is the one that is here:
    // pip finds in it what it is asked for.
    const fs::path python = named("ASSAY_SUITE_PYTHON");
    put(home() / "shims/python3",
        "#!/bin/sh\nexec ln -s " + python.parent_path().parent_path().string() + " \"$3\"\n");
    fs::permissions(home() / "shims/python3", fs::perms::owner_all);
    environment_ = {"HOME=" + home().string(),
                    "PATH=" + (home() / "shims").string() + ":" + named("PATH"),
                    "PIP_NO_INDEX=1",
                    "PIP_DISABLE_PIP_VERSION_CHECK=1",
                    "GIT_CONFIG_COUNT=2",
                    "GIT_CONFIG_KEY_0=url." + checkout + ".insteadOf",
                    "GIT_CONFIG_VALUE_0=https://github.com/PaddlePaddle/" + suite,
                    "GIT_CONFIG_KEY_1=safe.directory",
                    "GIT_CONFIG_VALUE_1=*"};
  }

  CliResult types(const std::string& lines) const {
    put(home() / "lines.sh", lines);
    return run_command(home(), {"bash", "-e", "lines.sh"}, environment_);
  }

  // How the stages of a run ended, by the store that it wrote.
  std::vector<std::string> states(const std::string& store_path) const {
    auto store = results::ChainStore::open(home() / store_path, OpenMode::existing);
    EXPECT_TRUE(store);
    std::vector<std::string> states;
    if (!store) return states;
    const auto stages = store->stages(1);
    EXPECT_TRUE(stages);
    if (!stages) return states;
    for (const results::StoredStage& stage : *stages) states.push_back(stage.state);
    return states;
  }

 private:
  fs::path home() const { return scratch_.path(); }

  Scratch scratch_;
  std::vector<std::string> environment_;
};

#define ASSAY_NEED_SUITE(checkout, variable, suite)                         \
  const std::string checkout = named(variable);                             \
  if (checkout.empty() || named("ASSAY_SUITE_PYTHON").empty()) {            \
    GTEST_SKIP() << "needs a git checkout of " suite " (" variable          \
                    ") and a virtual "                                      \
                    "environment's interpreter with Paddle 3.3.1 and what " \
                    "docs/reference/chain-real-suite.md's "                 \
                    "lines install (ASSAY_SUITE_PYTHON)";                   \
  }

TEST(RealSuite, PaddleSegTrainsExportsInfersAndCompares) {
  ASSAY_NEED_SUITE(checkout, "ASSAY_PADDLESEG", "PaddleSeg");
  const NewUser user(checkout, "PaddleSeg");
  const CliResult result = user.types(documented_lines("PaddleSeg"));
  EXPECT_EQ(result.code, 0) << result.out;
  for (const char* store : {"PaddleSeg/first.db", "PaddleSeg/second.db"}) {
    const auto states = user.states(store);
    EXPECT_THAT(states, SizeIs(3)) << "train, export, infer: its file evaluates nothing";
    EXPECT_THAT(states, Each("passed"));
  }
}

}  // namespace
}  // namespace assay::chain
