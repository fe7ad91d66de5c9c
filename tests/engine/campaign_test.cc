// One run on many machines: supervisors that share a store in a real PostgreSQL.

#include <gmock/gmock.h>

#include <set>

#include "../store/postgres_server.h"
#include "cli.h"
#include "store/store.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> outcomes_in(const std::string& address) {
  std::map<std::string, std::string> found;
  const auto store = open_store(address, StoreMode::existing);
  if (!store) throw std::runtime_error(store.error().message);
  const Status read = (*store)->each_finished([&](const FinishedCase& finished) -> Status {
    EXPECT_TRUE(found.emplace(finished.text, name(finished.verdict.outcome)).second);
    return {};
  });
  EXPECT_TRUE(read.has_value());
  return found;
}

TEST(Campaign, SupervisorsShareARunAndEveryCaseEndsOnce) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string store = "--store=" + server.address("campaign");
  Cli planner;
  Cli helper;
  std::vector<std::string> cases;
  for (int i = 1; i <= 200; ++i) {
    cases.push_back("paddle.fake.echo(Tensor([" + std::to_string(i) + "], \"float32\"))");
  }
  cases.push_back("paddle.fake.wrong(Tensor([3], \"float32\"))");
  const std::string file = planner.write_cases(cases);
  Process first = planner.start(planner.api({"--api_config_file=" + file, store}));
  // Its run may not have begun yet; then there is nothing to work on, which is an error in one
  // line.
  CliResult second;
  for (int tries = 0; tries < 50; ++tries) {
    second = helper.call_api({store});
    if (second.status.code != 2) break;
  }
  EXPECT_EQ(second.status.code, 1) << second.output;
  const auto ended = first.wait();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 1);
  const auto found = outcomes_in(server.address("campaign"));
  EXPECT_EQ(found.size(), cases.size());
  EXPECT_EQ(found.at(cases.back()), "mismatch");
  EXPECT_EQ(found.at(cases.front()), "pass");
}

TEST(Campaign, AnAddressThatIsNoneIsAUsageError) {
  Cli cli;
  const CliResult result = cli.call_api({"--store=somewhere"});
  EXPECT_EQ(result.status.code, 2);
  EXPECT_THAT(result.output, HasSubstr("postgresql://"));
  const CliResult away = cli.call_api({"--store=postgresql://nobody@/none?host=/nowhere"});
  EXPECT_EQ(away.status.code, 3);
  EXPECT_THAT(away.output, HasSubstr("the database: "));
}

}  // namespace
}  // namespace assay::testing
