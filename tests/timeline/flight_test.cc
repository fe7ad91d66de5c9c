// Flight recorder dumps, as pickles that Python writes and as JSON: which rank is missing in a
// hang.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support.h"
#include "timeline/analysis/hang.h"
#include "timeline/input/pickle.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

// pickle.dumps(…, protocol=2), of a list with each kind of data twice.
TEST(Pickle, ReadsPlainData) {
  const std::string bytes(
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01M\x2c\x01J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01G?\xf8\x00\x00"
      "\x00\x00\x00\x00\x88\x89NeX\x01\x00\x00\x00"
      "bq\x03h\x01K\x02\x86q\x04u.",
      66);
  const auto data = read_pickle(bytes);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->dump(), R"({"a":[1,300,-1,1099511627776,1.5,true,false,null],"b":["a",2]})");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(read_pickle(bytes.substr(0, length))) << length;
  }
  EXPECT_FALSE(
      read_pickle("\x80\x02"
                  "cos\nsystem\n."));
}

// JSON's copies and texts recurse: a deep pickle was a SIGSEGV.
TEST(Pickle, ADeepOneIsRefused) {
  for (const char* container : {"\x85", "]"}) {
    const bool tuple = container[0] != ']';
    std::string bytes = "\x80\x02" + std::string(tuple ? "N" : std::string(100'000, ']'));
    bytes += std::string(100'000, tuple ? '\x85' : 'a');
    EXPECT_FALSE(read_pickle(bytes + "."));
  }
}

// A text that is recalled is a copy: 400 kB could be 10 GB.
TEST(Pickle, AFewBytesAreNotMuchMemory) {
  std::string bytes = "\x80\x02](X";
  const std::string text(100'000, 'x');
  bytes += std::string("\xa0\x86\x01\x00", 4) + text + std::string("q\x01", 2);
  for (int i = 0; i < 150'000; ++i) bytes += "h\x01";
  EXPECT_FALSE(read_pickle(bytes + "e."));
  // Names that Python's pickle recalls as often as a dump has records.
  std::string names = "\x80\x02](X";
  names += std::string("\x05\x00\x00\x00", 4) + "names" + std::string("q\x01", 2);
  for (int i = 0; i < 150'000; ++i) names += "h\x01";
  const auto data = read_pickle(names + "e.");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->size(), 150'001U);
}

// A list that is recalled is the same list, with what it got after it was remembered.
TEST(Pickle, ARecalledContainerIsShared) {
  const auto data =
      read_pickle(std::string("\x80\x02](]q\x01K\x07"
                              "ah\x01h\x01"
                              "e.",
                              16));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->dump(), "[[7],[7],[7]]");
  // Within itself, it has no end.
  EXPECT_FALSE(
      read_pickle(std::string("\x80\x02]q\x01h\x01"
                              "a.",
                              9)));
}

std::string entry(int sequence, const char* name, const char* state) {
  return fmt::format(
      R"({{"record_id":{0},"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":{0},"p2p_seq_id":0,"op_id":{0},"profiling_name":"{1}","time_created_ns":1000,"state":"{2}","is_p2p":false}})",
      sequence, name, state);
}
std::string dump(std::initializer_list<std::string> entries) {
  std::string text =
      R"({"version":"2.4","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"}},"entries":[)";
  bool first = true;
  for (const std::string& one : entries) {
    text += (first ? "" : ",") + one;
    first = false;
  }
  return text + "]}";
}

class Flight : public testing::Test {
 protected:
  Trace load() {
    const std::vector<test::fs::path> paths{folder_.path()};
    auto trace = load_traces(paths, {});
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? std::move(*trace) : Trace{};
  }
  TempFolder folder_;
};

TEST_F(Flight, TheRankThatHasNotComeIsNamed) {
  test::write(folder_ / "nccl_trace_rank_0", dump({entry(56, "nccl:all_reduce", "completed"),
                                                   entry(57, "nccl:all_reduce", "started")}));
  test::write(folder_ / "nccl_trace_rank_1", dump({entry(56, "nccl:all_reduce", "completed")}));
  test::write(folder_ / "nccl_trace_rank_2", dump({entry(57, "nccl:broadcast", "scheduled")}));
  const Trace trace = load();
  const auto hangs = find_hangs(trace);
  ASSERT_EQ(hangs.size(), 1U);
  EXPECT_EQ(hangs[0].group, "default_pg");
  EXPECT_EQ(hangs[0].sequence, 57);
  EXPECT_THAT(hangs[0].not_called, ElementsAre(1));
  EXPECT_THAT(hangs[0].no_dump, ElementsAre(3));
  EXPECT_THAT(hangs[0].waiting, ElementsAre(0, 2));
  EXPECT_EQ(hangs[0].other_calls.size(), 1U);
  EXPECT_THAT(hang_table(trace), HasSubstr("rank 1 has not called it"));
}

// Rank 2 (number 1 of the group) waits for rank 0 (its number 0), whose last send has ended.
TEST_F(Flight, OfAReceiveThatWaitsTheSenderIsNamed) {
  const auto transfer = [](int sequence, const char* name, const char* state) {
    return fmt::format(
        R"({{"record_id":{0},"pg_id":3,"process_group":["3","pp"],"collective_seq_id":0,"p2p_seq_id":{0},"profiling_name":"{1}","time_created_ns":1000,"state":"{2}","is_p2p":true}})",
        sequence, name, state);
  };
  const auto of_group = [](std::string text) {
    const std::string all = R"("0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"})";
    return text.replace(text.find(all), all.size(),
                        all + R"(,"3":{"name":"3","desc":"pp","ranks":"[0, 2]"})");
  };
  test::write(folder_ / "nccl_trace_rank_0",
              of_group(dump({transfer(4, "nccl:send 0->1", "completed")})));
  test::write(folder_ / "nccl_trace_rank_2",
              of_group(dump({transfer(4, "nccl:recv 1<-0", "completed"),
                             transfer(5, "nccl:recv 1<-0", "started"),
                             transfer(6, "nccl:send 1->9", "started")})));
  const auto hangs = find_hangs(load());
  ASSERT_EQ(hangs.size(), 2U);
  EXPECT_EQ(hangs[0].name, "transfer 0->2");
  EXPECT_EQ(hangs[0].sequence, 5);
  EXPECT_THAT(hangs[0].waiting, ElementsAre(2));
  EXPECT_THAT(hangs[0].not_called, ElementsAre(0));
  EXPECT_EQ(hangs[1].name, "transfer 2->9");
  EXPECT_THAT(hangs[1].no_dump, ElementsAre(9));
}

TEST_F(Flight, ARunThatEndedHasNoHang) {
  for (int rank = 0; rank < 4; ++rank) {
    test::write(folder_ / fmt::format("nccl_trace_rank_{}", rank),
                dump({entry(1, "nccl:all_reduce", "completed")}));
  }
  EXPECT_THAT(hang_table(load()), HasSubstr("all collectives ended"));
}

// Rank 1 is missing in the group of ranks 1 and 3, and waits elsewhere for rank 0, who waits
// nowhere: that comes first.
TEST_F(Flight, TheHangThatHoldsUpOthersComesFirst) {
  const auto call = [](const char* group, int sequence, const char* state) {
    return fmt::format(
        R"({{"process_group":["{0}","g{0}"],"collective_seq_id":{1},"profiling_name":"nccl:all_reduce","time_created_ns":{1},"state":"{2}","is_p2p":false,"frames":[{{"name":"all_reduce","filename":"/x/site-packages/torch/distributed/d.py","line":9}},{{"name":"step","filename":"/app/m{0}.py","line":{1}}}]}})",
        group, sequence, state);
  };
  const std::string groups =
      R"({"version":"2.4","pg_config":{"1":{"desc":"g1","ranks":"[1, 3]"},"2":{"desc":"g2","ranks":"[0, 1]"}},"entries":[)";
  test::write(folder_ / "trace_0", groups + call("2", 4, "completed") + "]}");
  test::write(folder_ / "run_node00_1", groups + call("2", 5, "started") + "]}");
  test::write(folder_ / "x_dump_3", groups + call("1", 8, "started") + "]}");
  const auto hangs = find_hangs(load());
  ASSERT_EQ(hangs.size(), 2U);
  EXPECT_EQ(hangs[0].group, "g2");
  EXPECT_THAT(hangs[0].not_called, ElementsAre(0));
  EXPECT_THAT(hangs[0].places, testing::Contains(HasSubstr("rank 1 waits at /app/m2.py:5 (step)")));
  EXPECT_EQ(hangs[1].group, "g1");
  EXPECT_THAT(hangs[1].not_called, ElementsAre(1));
  EXPECT_THAT(hangs[1].places, testing::Contains(HasSubstr("rank 1 waits in nccl:all_reduce")));
}

// Rank 1 misses in both groups. In the larger one rank 2 does, too, but it waits for rank 1.
TEST_F(Flight, TheHangWithoutVictimsComesFirst) {
  const std::string all = R"("0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"})";
  const auto write = [&](int rank, std::initializer_list<std::string> entries) {
    std::string text = dump(entries);
    text.replace(text.find(all), all.size(), all + R"(,"9":{"desc":"tp","ranks":"[1, 2]"})");
    test::write(folder_ / fmt::format("nccl_trace_rank_{}", rank), text);
  };
  const std::string waits =
      R"({"process_group":["9","tp"],"collective_seq_id":3,"profiling_name":"nccl:all_gather","time_created_ns":9,"state":"started","is_p2p":false})";
  for (const int rank : {0, 3}) write(rank, {entry(2, "nccl:all_reduce", "started")});
  write(1, {entry(1, "nccl:all_reduce", "completed")});
  write(2, {entry(1, "nccl:all_reduce", "completed"), waits});
  const auto hangs = find_hangs(load());
  ASSERT_EQ(hangs.size(), 2U);
  EXPECT_EQ(hangs[0].group, "tp");
  EXPECT_THAT(hangs[0].not_called, ElementsAre(1));
}

// Who has left an all-reduce proves that all had called it: a dump is only older.
TEST_F(Flight, AnOlderDumpIsNoHang) {
  test::write(folder_ / "trace_0", dump({entry(1, "nccl:all_reduce", "completed"),
                                         entry(2, "nccl:all_reduce", "completed")}));
  for (const int rank : {1, 2, 3}) {
    test::write(folder_ / fmt::format("trace_{}", rank),
                dump({entry(1, "nccl:all_reduce", "completed")}));
  }
  EXPECT_TRUE(find_hangs(load()).empty());
}

// The same as Python's pickle module writes it.
TEST_F(Flight, PicklesAreReadAsJsonIs) {
  const auto python = test::venv_python("dev");
  if (python.empty()) GTEST_SKIP() << "no .venv/dev";
  for (const int rank : {0, 1}) {
    const std::string state = rank == 0 ? "started" : "completed";
    const auto json =
        test::write(folder_ / "in/x.json", dump({entry(7, "nccl:all_gather", state.c_str())}));
    const auto ran = test::run_program(
        {python.string(), "-c",
         "import json,pickle,sys; pickle.dump(json.load(open(sys.argv[1])), open(sys.argv[2], "
         "'wb'), "
         "protocol=2)",
         json.string(), (folder_ / fmt::format("nccl_trace_rank_{}", rank)).string()},
        folder_.path());
    ASSERT_EQ(ran.code, 0);
  }
  test::fs::remove_all(folder_ / "in");
  const auto hangs = find_hangs(load());
  ASSERT_EQ(hangs.size(), 1U);
  EXPECT_EQ(hangs[0].name, "nccl:all_gather");
  EXPECT_THAT(hangs[0].waiting, ElementsAre(0));
  EXPECT_THAT(hangs[0].completed, ElementsAre(1));
  EXPECT_THAT(hangs[0].no_dump, ElementsAre(2, 3));
}

}  // namespace
}  // namespace assay::timeline
