// The writers: what readers that are not ours make of their files.

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <protozero/pbf_reader.hpp>

#include "support.h"
#include "timeline/merge.h"
#include "timeline/writers/output_file.h"

namespace assay::timeline {
namespace {

using test::TempFolder;

TEST(OutputFile, WritesMicrosecondsExactly) {
  const TempFolder folder;
  auto file = OutputFile::create(folder / "out");
  ASSERT_TRUE(file);
  for (const Nanos time :
       {Nanos{0}, Nanos{1}, Nanos{999}, Nanos{1000}, Nanos{999999999}, Nanos{1000000000},
        Nanos{1009008007}, Nanos{1700000000000771484}, Nanos{1700000000999999999},
        Nanos{1700000001000000000}, Nanos{-1500}, Nanos{-2000000001}}) {
    file->put_microseconds(time);
    file->put(" ");
  }
  ASSERT_TRUE(file->finish());
  EXPECT_EQ(read_file(folder / "out").value(),
            "0.000 0.001 0.999 1.000 999999.999 1000000.000 1009008.007 1700000000000771.484 "
            "1700000000999999.999 1700000001000000.000 -1.500 -2000000.001 ");
}

TEST(OutputFile, AnUnfinishedFileLeavesNothing) {
  const TempFolder folder;
  {
    auto file = OutputFile::create(folder / "out");
    ASSERT_TRUE(file);
    file->put("half");
  }
  EXPECT_TRUE(test::fs::is_empty(folder.path()));
}

TEST(OutputFile, AFullDiskIsAnError) {
  const TempFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  {
    auto file = OutputFile::create(folder / "out");
    ASSERT_TRUE(file);
    rlimit small = before;
    small.rlim_cur = 4096;
    ::setrlimit(RLIMIT_FSIZE, &small);
    file->put(std::string(1U << 20U, 'x'));
    EXPECT_FALSE(file->finish());
    ::setrlimit(RLIMIT_FSIZE, &before);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(test::fs::is_empty(folder.path()));
}

// A process that is killed while it writes leaves nothing behind.
TEST(OutputFile, AKilledWriterLeavesNothing) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = OutputFile::create(folder / "out");
    if (file) file->put(std::string(1U << 20U, 'x'));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(test::fs::is_empty(folder.path()));
}

// Names that JSON must escape, slices that do not nest, more names than are interned.
Trace awkward_trace() {
  Trace trace;
  trace.tracks = {{.label = "STEP", .chrome_tid = "Step", .process = "", .machine = ""},
                  {.label = "GPU:0", .chrome_tid = "GPU0", .process = "", .machine = ""}};
  const StringId quoted = trace.strings.intern("a \"quoted\"\\\n name");
  const StringId broken = trace.strings.intern("bro\xffken");
  const StringId category = trace.strings.intern("kernel");
  trace.slices = {{.begin = 1000, .end = 9000, .name = quoted, .category = category, .track = 1},
                  {.begin = 2000, .end = 12000, .name = broken, .category = category, .track = 1},
                  {.begin = 2000, .end = 2000, .name = quoted, .category = category, .track = 0},
                  {.begin = 9000, .end = 12000, .name = quoted, .category = category, .track = 1}};
  for (int i = 0; i < 70'000; ++i) {
    const Nanos begin = 20'000 + i * 10;
    trace.slices.push_back({.begin = begin,
                            .end = begin + 10,
                            .job = i,
                            .name = quoted,
                            .category = category,
                            .track = 1});
  }
  trace.counters = {{"memory", {{1000, 0.5}, {2000, 2.0}}}};
  trace.notes = {"a note"};
  return trace;
}

class Writers : public testing::Test {
 protected:
  TempFolder out_;
};

TEST_F(Writers, ChromeJsonParsesWhateverTheNames) {
  Trace trace = awkward_trace();
  ASSERT_TRUE(write_trace(trace, OutputPaths::in(out_.path())));
  const auto json = test::read_json(out_ / "pipeline_profile.json");
  ASSERT_FALSE(json.is_discarded());
  const auto events = test::event_times(json);
  EXPECT_TRUE(events.contains(
      R"({"cat":"kernel","dur":0.01,"name":"a \"quoted\"\\\n name_7","ph":"X","pid":0,"tid":"GPU0"})"));
  // It overlaps the first slice and does not nest in it: it has a row beside it, and its duration.
  EXPECT_TRUE(events.contains(
      "{\"cat\":\"kernel\",\"dur\":10.0,\"name\":\"bro\xEF\xBF\xBDken\",\"ph\":\"X\",\"pid\":0,"
      "\"tid\":\"GPU0 (overlap 1)\"}"));
  EXPECT_EQ(json.at("otherData").at("notes"), nlohmann::json({"a note"}));
}

// Field numbers as perfetto's .proto files have them, read by hand: a trace is packets of field 1,
// each with a sequence (10), events (11) within have a type (9) and a track (11).
TEST_F(Writers, BinaryTraceIsBalancedPackets) {
  Trace trace = awkward_trace();
  ASSERT_TRUE(write_trace(trace, OutputPaths::in(out_.path())));
  const std::string bytes = read_file(out_ / "pipeline_profile.perfetto-trace").value();
  protozero::pbf_reader reader(bytes);
  std::map<std::uint64_t, int> open;
  std::map<int, int> types;
  std::uint64_t last = 0;
  while (reader.next(1)) {
    protozero::pbf_reader packet = reader.get_message();
    std::uint64_t time = 0;
    while (packet.next()) {
      if (packet.tag() == 8) {
        time = packet.get_uint64();
      } else if (packet.tag() == 11) {
        protozero::pbf_reader event = packet.get_message();
        int type = 0;
        std::uint64_t track = 0;
        while (event.next()) {
          if (event.tag() == 9) {
            type = event.get_enum();
          } else if (event.tag() == 11) {
            track = event.get_uint64();
          } else {
            event.skip();
          }
        }
        ++types[type];
        if (type == 1) ++open[track];
        if (type == 2) --open[track];
        EXPECT_GE(open[track], 0);
        if (type == 1 || type == 2) {
          EXPECT_GE(time, last) << "events must be sorted";
          last = time;
        }
      } else {
        packet.skip();
      }
    }
  }
  EXPECT_EQ(types[1], 70'004);
  EXPECT_EQ(types[2], 70'004);
  EXPECT_EQ(types[4], 2);
  for (const auto& [track, count] : open) EXPECT_EQ(count, 0);
}

TEST_F(Writers, PerfettosOwnClassesReadTheBinaryTrace) {
  const auto python = test::venv_python("dev");
  if (python.empty()) GTEST_SKIP() << "no .venv/dev with the perfetto package";
  Trace trace = awkward_trace();
  ASSERT_TRUE(write_trace(trace, OutputPaths::in(out_.path())));
  const auto ran = test::run_program(
      {python.string(), std::string(ASSAY_SOURCE_DIR) + "/tests/timeline/decode_perfetto.py",
       (out_ / "pipeline_profile.perfetto-trace").string()},
      out_.path());
  if (ran.code == 77) GTEST_SKIP() << "the perfetto package is not installed";
  ASSERT_EQ(ran.code, 0);
  const auto decoded = nlohmann::json::parse(ran.out);
  // As many as went in, each with its own begin and end, on its track or the lane beside it.
  std::vector<std::string> expected;
  for (const Slice& slice : trace.slices) {
    std::string name(trace.strings.text(slice.name));
    if (name.starts_with("bro")) name = "bro\xEF\xBF\xBDken";
    if (slice.job != kNone) name += "_" + std::to_string(slice.job);
    expected.push_back(name + " " + std::to_string(slice.begin) + " " + std::to_string(slice.end));
  }
  std::vector<std::string> got;
  for (const auto& slice : decoded.at("slices")) {
    got.push_back(slice[1].get<std::string>() + " " + std::to_string(slice[3].get<Nanos>()) + " " +
                  std::to_string(slice[4].get<Nanos>()));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, expected);
  EXPECT_EQ(decoded.at("notes"), nlohmann::json({"a note"}));
  EXPECT_EQ(decoded.at("counters").size(), 2U);
}

// Arrows with the same number but another category have nothing to do with each other.
TEST_F(Writers, ArrowsAreInTheBinaryTrace) {
  const auto python = test::venv_python("dev");
  if (python.empty()) GTEST_SKIP() << "no .venv/dev with the perfetto package";
  Trace trace;
  trace.tracks.resize(2);
  trace.tracks[0].label = "thread";
  trace.tracks[1].label = "stream";
  const auto add = [&](const char* name, Nanos begin, Nanos end, std::uint32_t track) {
    trace.slices.push_back({.begin = begin,
                            .end = end,
                            .name = trace.strings.intern(name),
                            .category = trace.strings.intern("x"),
                            .track = track});
  };
  add("operator", 0, 100, 0);
  add("launch", 10, 20, 0);
  add("kernel", 30, 40, 1);
  add("later", 50, 60, 1);
  const auto end = [&](Nanos time, const char* category, std::uint32_t track, char phase) {
    trace.flows.push_back({.time = time,
                           .id = trace.strings.intern("5"),
                           .name = trace.strings.intern(category),
                           .category = trace.strings.intern(category),
                           .track = track,
                           .phase = phase});
  };
  end(15, "ac2g", 0, 's');
  end(30, "ac2g", 1, 'f');
  end(90, "fwdbwd", 0, 's');
  end(55, "fwdbwd", 1, 'f');
  end(200, "nowhere", 1, 'f');
  ASSERT_TRUE(write_trace(trace, OutputPaths::in(out_.path())));
  const auto ran = test::run_program(
      {python.string(), std::string(ASSAY_SOURCE_DIR) + "/tests/timeline/decode_perfetto.py",
       (out_ / "pipeline_profile.perfetto-trace").string()},
      out_.path());
  if (ran.code == 77) GTEST_SKIP() << "the perfetto package is not installed";
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(nlohmann::json::parse(ran.out).at("flows").dump(),
            R"([["launch","kernel"],["operator","later"]])");
}

}  // namespace
}  // namespace assay::timeline
