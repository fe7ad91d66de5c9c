// One run on many machines: supervisors that share a store in a real PostgreSQL.

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <pqxx/pqxx>
#include <thread>

#include "../store/postgres_server.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "cli.h"
#include "store/open_store.h"

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
  for (int tries = 0; tries < 500; ++tries) {
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

std::vector<std::string> some_cases(int count) {
  std::vector<std::string> cases;
  for (int i = 1; i <= count; ++i) {
    cases.push_back("paddle.fake.echo(Tensor([" + std::to_string(i) + "], \"float32\"))");
  }
  cases.push_back("paddle.fake.wrong(Tensor([3], \"float32\"))");
  return cases;
}

std::vector<std::string> worker(const Cli& cli, const std::string& store) {
  return {"work", "--test_cpu=True", "--num_workers_per_gpu=1", "--log_dir=" + cli.run().string(),
          store};
}

TEST(Campaign, WhatOnePlansManyWorkOn) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string address = server.address("planned");
  const std::string store = "--store=" + address;
  Cli one;
  Cli two;
  const std::vector<std::string> cases = some_cases(200);
  const std::string file = one.write_cases(cases);
  const CliResult nothing = one.call(worker(one, store));
  EXPECT_EQ(nothing.status.code, 2);
  EXPECT_THAT(nothing.output, HasSubstr("assay plan"));

  // The settings of the plan are the workers' without being said again.
  const std::vector<std::string> plan{"plan",       store,         file, "--random_seed=7",
                                      "--atol=0.5", "--timeout=80"};
  const CliResult planned = one.call(plan);
  EXPECT_EQ(planned.status.code, 0) << planned.output;
  EXPECT_EQ(planned.output, "201 cases to run, 201 of them new\n");
  EXPECT_EQ(one.call(plan).output, "201 cases to run, 0 of them new\n");
  const CliResult other = one.call({"plan", store, file, "--random_seed=8"});
  EXPECT_EQ(other.status.code, 2);
  EXPECT_THAT(other.output, HasSubstr("was begun with"));

  Process first = one.start(worker(one, store));
  const CliResult second = two.call(worker(two, store));
  EXPECT_EQ(second.status.code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("nothing is left to do"));
  EXPECT_EQ(first.wait()->code, 0);
  const auto found = outcomes_in(address);
  EXPECT_EQ(found.size(), cases.size());
  EXPECT_EQ(found.at(cases.back()), "mismatch");
  const auto properties = (*open_store(address, StoreMode::existing))->properties();
  EXPECT_EQ(properties->at("seed"), "7");
  EXPECT_EQ(properties->at("flag.timeout"), "80");
  EXPECT_EQ(properties->at("paddle"), "1.0");

  const CliResult report = one.call({"report", address, "--json"});
  EXPECT_EQ(nlohmann::json::parse(report.output)["outcomes"]["pass"], 200);
  EXPECT_EQ(one.call(plan).output,
            "0 cases to run, 0 of them new; 201 finished in earlier sessions\n");
}

// The clock of a worker says when its cases ended, and nothing else: leases are the database's.
TEST(Campaign, AWorkerWhoseClockIsAnHourAheadTakesNothingFromOthers) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  if (!find_program("faketime")) GTEST_SKIP() << "faketime is not installed (Debian: faketime)";
  PostgresServer server;
  const std::string address = server.address("clock");
  const std::string store = "--store=" + address;
  Cli right;
  Cli ahead;
  std::vector<std::string> cases;
  for (int i = 1; i <= 120; ++i) {
    cases.push_back("paddle.fake.slow(Tensor([" + std::to_string(i) + "], \"float32\"), 0.2)");
  }
  ASSERT_EQ(right.call({"plan", store, right.write_cases(cases)}).status.code, 0);
  std::vector<std::string> words = worker(ahead, store);
  words.insert(words.begin(), {"faketime", "-f", "+1h", ASSAY_PROGRAM});
  Process off = ahead.start_program(words);
  while (outcomes_in(address).empty() && ::kill(off.pid(), 0) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const CliResult on = right.call(worker(right, store));
  EXPECT_EQ(on.status.code, 0) << on.output;
  EXPECT_EQ(off.wait()->code, 0);
  EXPECT_EQ(outcomes_in(address).size(), cases.size());

  constexpr std::int64_t kHalfAnHourMs = 1'800'000;
  const std::int64_t now = wall_ms();
  int by_ahead = 0;
  const auto finished = open_store(address, StoreMode::existing);
  ASSERT_TRUE((*finished)->each_finished([&](const FinishedCase& each) -> Status {
    by_ahead += each.finished_ms > now + kHalfAnHourMs ? 1 : 0;
    return {};
  }));
  EXPECT_GT(by_ahead, 0);  // so its clock was off
  pqxx::connection session(address);
  pqxx::work work(session);
  EXPECT_EQ(work.exec1("SELECT max(epoch) FROM bundle")[0].as<int>(), 1);  // none was taken twice
}

// A machine in a network namespace of its own, joined to this one by a cable. Another check on this
// machine, or one that was killed, may have taken a name: then the next number is tried.
class FarMachine {
 public:
  static bool possible() {
    const std::string probe = fmt::format("assay-probe-{}", ::getpid());
    return ::geteuid() == 0 && find_program("ip") && run({"ip", "netns", "add", probe}) &&
           run({"ip", "netns", "del", probe});
  }
  FarMachine() {
    for (int tries = 0; tries < 20 && !up_; ++tries) {
      number_ = (::getpid() + tries) % 250;
      if (!run({"ip", "netns", "add", name()})) continue;
      up_ = run({"ip", "link", "add", cable(), "type", "veth", "peer", "name", "eth0", "netns",
                 name()}) &&
            run({"ip", "addr", "add", host() + "/24", "dev", cable()}) && set_cable("up") &&
            run({"ip", "-n", name(), "addr", "add", net() + ".2/24", "dev", "eth0"}) &&
            run({"ip", "-n", name(), "link", "set", "eth0", "up"}) &&
            run({"ip", "-n", name(), "link", "set", "lo", "up"});
      if (!up_) (void)run({"ip", "netns", "del", name()});  // its end of a cable goes with it
    }
  }
  ~FarMachine() {
    if (!up_) return;
    (void)run({"ip", "link", "del", cable()});
    (void)run({"ip", "netns", "del", name()});
  }
  FarMachine(const FarMachine&) = delete;
  FarMachine& operator=(const FarMachine&) = delete;

  bool is_up() const { return up_; }
  std::string host() const { return net() + ".1"; }  // as the far one knows this one
  bool set_cable(const char* state) const { return run({"ip", "link", "set", cable(), state}); }
  std::vector<std::string> on_it(std::vector<std::string> words) const {
    words.insert(words.begin(), {"nsenter", "--net=/var/run/netns/" + name()});
    return words;
  }

 private:
  std::string name() const { return fmt::format("assay-far-{}", number_); }
  std::string cable() const { return fmt::format("assay-{}", number_); }
  std::string net() const { return fmt::format("10.78.{}", number_); }

  // What `ip` complains of is in the test's output.
  static bool run(std::vector<std::string> argv) {
    SpawnOptions options;
    options.argv = std::move(argv);
    auto process = Process::spawn(options);
    if (!process) return false;
    const auto ended = process->wait();
    return ended && ended->ok();
  }
  int number_ = 0;
  bool up_ = false;
};

// Others take over what it held, and what it says when it is back is not recorded.
TEST(Campaign, ANodeThatIsCutOffAndComesBackRecordsNothingTwice) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  if (!FarMachine::possible()) GTEST_SKIP() << "network namespaces need root and ip (iproute2)";
  const FarMachine far;
  ASSERT_TRUE(far.is_up());
  PostgresServer server(far.host());
  const std::string address = server.address("cut");
  Cli near_one;
  Cli far_one;
  std::vector<std::string> cases;
  for (int i = 1; i <= 150; ++i) {
    cases.push_back("paddle.fake.slow(Tensor([" + std::to_string(i) + "], \"float32\"), 0.1)");
  }
  ASSERT_EQ(near_one.call({"plan", "--store=" + address, near_one.write_cases(cases)}).status.code,
            0);
  std::vector<std::string> words = worker(far_one, "--store=" + server.far_address("cut"));
  words.insert(words.begin(), ASSAY_PROGRAM);
  Process cut_off = far_one.start_program(far.on_it(words));
  for (int tries = 0; tries < 2000 && outcomes_in(address).empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_FALSE(outcomes_in(address).empty());
  ASSERT_TRUE(far.set_cable("down"));
  const CliResult rest = near_one.call(worker(near_one, "--store=" + address));
  EXPECT_EQ(rest.status.code, 0) << rest.output;
  EXPECT_EQ(outcomes_in(address).size(), cases.size());
  const auto before = outcomes_in(address);
  ASSERT_TRUE(far.set_cable("up"));
  const auto ended = cut_off.wait();
  EXPECT_EQ(ended->code, 0) << *read_file(far_one.folder() / "output.txt");
  EXPECT_EQ(outcomes_in(address), before);
  pqxx::connection session(address);
  pqxx::work work(session);
  EXPECT_GE(work.exec1("SELECT max(epoch) FROM bundle")[0].as<int>(),
            2);  // something was taken over
}

TEST(Campaign, AWorkerThatIsToldToStopGivesBackWhatItHolds) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string store = "--store=" + server.address("stopped");
  Cli one;
  std::vector<std::string> cases = some_cases(5);
  for (int i = 1; i <= 100; ++i) {
    cases.push_back("paddle.fake.slow(Tensor([" + std::to_string(i) + "], \"float32\"), 0.3)");
  }
  ASSERT_EQ(one.call({"plan", store, one.write_cases(cases)}).status.code, 0);
  Process process = one.start(worker(one, store));
  std::size_t done = 0;
  for (int tries = 0; tries < 2000 && done == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    done = outcomes_in(server.address("stopped")).size();
  }
  ASSERT_GT(done, 0U);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait()->code, 130);
  // At once, although its leases would have held for half a minute.
  const auto rest = open_store(server.address("stopped"), StoreMode::existing);
  std::size_t left = 0;
  const auto supply = (*rest)->claim(1000, [&](const wire::JobT&) -> Status {
    ++left;
    return {};
  });
  EXPECT_EQ(*supply, Supply::none);
  EXPECT_EQ(left, cases.size() - outcomes_in(server.address("stopped")).size());
}

// One worker dies and the database stops for a while: the other ends everything, once.
TEST(Campaign, EveryCaseIsRecordedOnceWhateverIsKilled) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string address = server.address("killed");
  const std::string store = "--store=" + address;
  Cli one;
  Cli two;
  std::vector<std::string> cases = some_cases(5);
  for (int i = 1; i <= 200; ++i) {
    cases.push_back("paddle.fake.slow(Tensor([" + std::to_string(i) + "], \"float32\"), 0.1)");
  }
  ASSERT_EQ(one.call({"plan", store, one.write_cases(cases)}).status.code, 0);
  Process killed = one.start(worker(one, store));
  Process other = two.start(worker(two, store));
  for (int tries = 0; tries < 2000 && outcomes_in(address).size() < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  killed.signal(SIGKILL);
  (void)killed.wait();
  const std::size_t before = outcomes_in(address).size();
  EXPECT_LT(before, cases.size());
  server.stop();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  server.start();
  // 1 where the case that fails fell to it.
  EXPECT_LE(other.wait()->code, 1) << *read_file(two.folder() / "output.txt");
  EXPECT_EQ(outcomes_in(address).size(), cases.size());  // each once, or it would have said so
}

// A disk that only root can give the server; nullptr: not here.
std::unique_ptr<PostgresServer> server_with_own_disk() {
  constexpr int kMegabytes = 160;
  if (::geteuid() != 0) return nullptr;
  try {
    return std::make_unique<PostgresServer>("", kMegabytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Results that have no room wait, and are written when there is some again.
TEST(Campaign, AFullDiskOfTheDatabaseLosesAndRepeatsNothing) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  const auto server = server_with_own_disk();
  if (!server) GTEST_SKIP() << "a small disk for the database needs root and leave to mount";
  const std::string address = server->address("small");
  Cli one;
  std::vector<std::string> cases = some_cases(5);
  for (int i = 1; i <= 300; ++i) {
    cases.push_back("paddle.fake.slow(Tensor([" + std::to_string(i) + "], \"float32\"), 0.05)");
  }
  ASSERT_EQ(one.call({"plan", "--store=" + address, one.write_cases(cases)}).status.code, 0);
  Process going = one.start(worker(one, "--store=" + address));
  for (int tries = 0; tries < 2000 && outcomes_in(address).size() < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  server->fill_disk();
  std::this_thread::sleep_for(std::chrono::seconds(8));
  const std::size_t full = outcomes_in(address).size();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_EQ(outcomes_in(address).size(), full);  // so there was no room
  EXPECT_LT(full, cases.size());
  server->free_disk();
  EXPECT_EQ(going.wait()->code, 0) << *read_file(one.folder() / "output.txt");
  const auto found = outcomes_in(address);
  EXPECT_EQ(found.size(), cases.size());  // each once, or it would have said so
  Cli alone;
  ASSERT_LE(alone.call_api({"--api_config_file=" + alone.write_cases(cases)}).status.code, 1);
  EXPECT_EQ(found, alone.outcomes());
}

TEST(Campaign, WorkersOfAnotherBuildAreRefused) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string store = "--store=" + server.address("builds");
  Cli one;
  ASSERT_EQ(one.call({"plan", store, one.write_cases(some_cases(5))}).status.code, 0);
  EXPECT_EQ(one.call(worker(one, store)).status.code, 0);
  Cli other;
  std::string settings = *read_file(other.folder() / "assay.toml");
  settings.replace(settings.find("ASSAY_TEST="), 0, "ASSAY_FAKE_VERSION=2.0\", \"");
  ASSERT_TRUE(write_file(other.folder() / "assay.toml", settings));
  const CliResult refused = other.call(worker(other, store));
  EXPECT_EQ(refused.status.code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("another build of paddle. Then: 1.0, "));
}

// Machines that share nothing: parts of a corpus, and one run of them.
TEST(Campaign, PartsOfACorpusAreMergedIntoARun) {
  Cli cli;
  const std::vector<std::string> cases = some_cases(30);
  const std::string file = "--api_config_file=" + cli.write_cases(cases);
  std::vector<std::string> merge{"merge", (cli.folder() / "all").string()};
  for (const std::string number : {"1", "2", "3"}) {
    merge.push_back((cli.folder() / ("part" + number)).string());
    const CliResult part = cli.call(
        {"api", file, "--test_cpu=True", "--shard=" + number + "/3", "--log_dir=" + merge.back()});
    EXPECT_EQ(part.status.code, 0) << part.output;  // done, whatever its verdicts are
  }
  const CliResult merged = cli.call(merge);
  EXPECT_EQ(merged.status.code, 0) << merged.output;
  EXPECT_THAT(merged.output, HasSubstr("31 cases\n"));
  const auto found = outcomes_in((cli.folder() / "all").string());
  EXPECT_EQ(found.size(), cases.size());
  EXPECT_EQ(found.at(cases.back()), "mismatch");
  EXPECT_TRUE(std::filesystem::exists(cli.folder() / "all" / "report.html"));
  merge.pop_back();
  merge[1] = (cli.folder() / "some").string();
  EXPECT_THAT(cli.call(merge).output, HasSubstr("none of these runs has part 3/3 of the corpus"));
}

// A case that took longer than all others together is a part by itself, which nothing but an
// earlier run can tell.
TEST(Campaign, PartsAreCutByWhatAnEarlierRunTook) {
  Cli cli;
  std::vector<std::string> cases = some_cases(8);
  cases.emplace_back(R"(paddle.fake.slow(Tensor([3], "float32"), 2.0))");
  const auto folder = [&](const char* name) { return (cli.folder() / name).string(); };
  const std::string file = "--api_config_file=" + cli.write_cases(cases);
  const std::vector<std::string> usual{"api", file, "--test_cpu=True", "--values=usual"};
  const auto run = [&](const char* name, std::vector<std::string> more) {
    std::vector<std::string> words = usual;
    words.insert(words.end(), more.begin(), more.end());
    words.push_back("--log_dir=" + folder(name));
    return cli.call(words);
  };
  EXPECT_EQ(run("before", {}).status.code, 1);
  const std::string costs = "--costs-from=" + folder("before");
  EXPECT_EQ(run("one", {"--shard=1/2", costs}).status.code, 0);
  EXPECT_EQ(run("two", {"--shard=2/2", costs}).status.code, 0);
  const auto alone = outcomes_in(folder("one"));
  EXPECT_EQ(alone.size(), 1U);
  EXPECT_TRUE(alone.contains(cases.back()));
  EXPECT_EQ(outcomes_in(folder("two")).size(), cases.size() - 1);
  EXPECT_EQ(cli.call({"merge", folder("all"), folder("one"), folder("two")}).status.code, 0);

  // Parts that were cut by other costs leave cases out, or have them twice.
  EXPECT_EQ(run("other", {"--shard=2/2"}).status.code, 0);
  const CliResult mixed = cli.call({"merge", folder("mixed"), folder("one"), folder("other")});
  EXPECT_EQ(mixed.status.code, 2);
  EXPECT_THAT(mixed.output, HasSubstr("merge only runs with the same settings"));
  const CliResult nowhere = run("none", {"--costs-from=" + folder("nowhere")});
  EXPECT_NE(nowhere.status.code, 0);
  EXPECT_THAT(nowhere.output, HasSubstr("nowhere"));
}

TEST(Campaign, APasswordIsNotRepeatedAndWarnedOf) {
  Cli cli;
  const CliResult away = cli.call({"plan", "--store=postgresql://me:secret@/none?host=/nowhere",
                                   cli.write_cases(some_cases(1))});
  EXPECT_EQ(away.status.code, 3);
  EXPECT_THAT(away.output, HasSubstr("PGPASSFILE"));
  EXPECT_EQ(away.output.find("secret"), std::string::npos);
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
