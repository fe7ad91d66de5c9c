// What real exports do: pack their files, put their parts in any order, and write tokens that no
// JSON is.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/importers/importer.h"
#include "timeline/input/byte_source.h"
#include "timeline/input/json_cursor.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

std::string kernel(const std::string& name, const std::string& more = "") {
  return R"({"ph":"X","cat":"kernel","name":")" + name +
         R"(","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0)" + more + "}}";
}
std::string trace_of(const std::string& events) {
  return R"({"schemaVersion":1,"deviceProperties":[],"traceEvents":[)" + events + "]}";
}

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> result;
  for (const Slice& slice : trace.slices) result.emplace_back(trace.strings.text(slice.name));
  return result;
}

class Formats : public testing::Test {
 protected:
  Trace read(const std::string& text, const std::string& file = "trace.json") {
    auto trace = import_trace(test::write(folder_ / file, text));
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? std::move(*trace) : Trace{};
  }
  static std::string gzip(const std::string& text) {
    std::string out(text.size() + 1000, '\0');
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }
  TempFolder folder_;
};

TEST_F(Formats, AnUnpackedCopyHasNoNameAndALimit) {
  const auto packed = test::write(folder_ / "a.gz", gzip("what is packed"));
  const auto copy = open_unpacked(packed);
  ASSERT_TRUE(copy) << copy.error().message;
  struct stat found {};
  ASSERT_EQ(::fstat(copy->get(), &found), 0);
  EXPECT_EQ(found.st_nlink, 0U);
  EXPECT_EQ(found.st_size, 14);
  const auto bomb = test::write(folder_ / "b.gz", gzip(std::string(100 << 20, '\0')));
  const auto refused = open_unpacked(bomb);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("more than 100 times as large"));
  const auto source = open_bytes(bomb);
  ASSERT_TRUE(source);
  std::vector<char> block(1 << 20);
  auto got = (*source)->read(block);
  while (got && *got > 0) got = (*source)->read(block);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("more than 100 times as large"));
}

TEST_F(Formats, GzipAndZstdAreToldFromTheirBytes) {
  const std::string text = trace_of(kernel("a") + "," + kernel("b"));
  EXPECT_THAT(names(read(gzip(text), "plain-name")), ElementsAre("a", "b"));
  // Two members in one file, as parallel packers write them.
  EXPECT_THAT(names(read(gzip(text.substr(0, 60)) + gzip(text.substr(60)))), ElementsAre("a", "b"));
  std::string zstd(ZSTD_compressBound(text.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), text.data(), text.size(), 3));
  EXPECT_THAT(names(read(zstd)), ElementsAre("a", "b"));
}

TEST_F(Formats, APackedFileThatBreaksOffKeepsWhatCameBefore) {
  std::string events = kernel("first");
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) events += "," + kernel("k" + std::to_string(random()));
  const std::string packed = gzip(trace_of(events));
  const Trace trace = read(packed.substr(0, packed.size() / 2));
  EXPECT_GT(trace.slices.size(), 1000U);
  EXPECT_EQ(trace.files[0].truncated, 1U);
  EXPECT_THAT(trace.files[0].notes, testing::Contains(HasSubstr("gzip data is truncated")));
}

// Each is one event among three; the others must be there, and one must be counted.
// Bytes of a known row, in pieces of an odd size; fails behind `good` of them.
class RowOfBytes : public ByteSource {
 public:
  RowOfBytes(std::size_t good, bool fails) : good_(good), fails_(fails) {}
  static char at(std::size_t place) { return static_cast<char>(place * 31 % 251); }
  Result<std::size_t> read(std::span<char> into) override {
    constexpr std::size_t kPiece = 99'991;
    const std::size_t count = std::min({into.size(), kPiece, good_ - given_});
    if (count == 0 && fails_) return fail("damaged");
    for (std::size_t i = 0; i < count; ++i) into[i] = at(given_ + i);
    given_ += count;
    return count;
  }

 private:
  std::size_t good_;
  bool fails_;
  std::size_t given_ = 0;
};

TEST(ReadAhead, GivesAllBytesInOrderAndThenTheError) {
  constexpr std::size_t kBytes = 5'000'000;  // more than is read ahead
  for (const bool fails : {false, true}) {
    const auto source = read_ahead(std::make_unique<RowOfBytes>(kBytes, fails));
    std::vector<char> piece(70'001);
    std::size_t place = 0;
    bool failed = false;
    for (;;) {
      const auto got = source->read(piece);
      failed = !got;
      if (!got || *got == 0) break;
      for (std::size_t i = 0; i < *got; ++i) ASSERT_EQ(piece[i], RowOfBytes::at(place + i));
      place += *got;
    }
    EXPECT_EQ(place, kBytes);
    EXPECT_EQ(failed, fails);
  }
}

TEST(ReadAhead, MayBeLeftHalfWay) {
  const auto source = read_ahead(std::make_unique<RowOfBytes>(50'000'000, false));
  std::vector<char> piece(10);
  ASSERT_TRUE(source->read(piece));
  EXPECT_EQ(piece[9], RowOfBytes::at(9));
}

TEST_F(Formats, ABadTokenCostsOneEvent) {
  const std::vector<std::string> bad{
      kernel("x\ny"),
      kernel("x", R"(,"text":"raw
newline")"),
      R"({"ph":"X","cat":"kernel","name":"x","pid":0,"tid":7,"ts":1,"dur":Infinity})",
      R"({"ph":"X","cat":"kernel","name":"lost quote,"pid":0,"tid":7,"ts":1,"dur":2,"args":{}})",
      R"({"ph":"X" "cat":"kernel"})",
      "nonsense",
  };
  for (const std::string& event : bad) {
    const Trace trace = read(trace_of(kernel("a") + "," + event + ",\n " + kernel("b")));
    EXPECT_THAT(names(trace), ElementsAre("a", "b")) << event;
    EXPECT_EQ(trace.files[0].malformed, 1U) << event;
    EXPECT_EQ(trace.files[0].truncated, 0U) << event;
  }
}

// Nothing is lost but what is damaged: a number that nobody reads, a letter of a name.
TEST_F(Formats, ADamagedArgumentCostsNoEvent) {
  for (const std::string& event :
       {kernel("x", R"(,"est":NaN)"), kernel("x", R"(,"bandwidth":inf)"),
        kernel("x", R"(,"bandwidth":-Infinity)"), kernel("x", R"(,"bandwidth":1e400)"),
        kernel("x", R"(,"list":[1,nan,{"a":{}}])")}) {
    const Trace trace = read(trace_of(kernel("a") + "," + event + ",\n " + kernel("b")));
    EXPECT_THAT(names(trace), ElementsAre("a", "x", "b")) << event;
    EXPECT_EQ(trace.files[0].dropped(), 0U) << event;
  }
  const Trace trace = read(trace_of(kernel("a") + "," + kernel("x\xff") + "," + kernel("b")));
  EXPECT_THAT(names(trace), ElementsAre("a", "x?", "b"));
  EXPECT_EQ(trace.files[0].dropped(), 0U);
  EXPECT_EQ(trace.files[0].repaired, 1U);
}

TEST_F(Formats, AFileMayHoldSeveralDocuments) {
  const Trace trace = read(trace_of(kernel("a")) + "\n" + trace_of(kernel("b")));
  EXPECT_THAT(names(trace), ElementsAre("a", "b"));
  EXPECT_EQ(trace.files[0].dropped(), 0U);
}

// The end without a name closes the operator, which an analysis does not keep, not the kernel.
TEST_F(Formats, AnEndWithoutANameClosesTheLastBegin) {
  const std::string text =
      trace_of(R"({"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"args":{"device":0}},)"
               R"({"ph":"B","cat":"cpu_op","name":"op","pid":0,"tid":7,"ts":2},)"
               R"({"ph":"E","pid":0,"tid":7,"ts":3},{"ph":"E","pid":0,"tid":7,"ts":9})");
  for (const bool analysis : {true, false}) {
    ImportOptions options;
    options.analysis = analysis;
    const auto trace = import_trace(test::write(folder_ / "t.json", text), options);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->files[0].dropped(), 0U);
    const auto kernel = std::ranges::find(trace->slices, Kind::compute, &Slice::kind);
    ASSERT_NE(kernel, trace->slices.end());
    EXPECT_EQ(kernel->end - kernel->begin, 8000);
  }
}

TEST_F(Formats, EscapesAndWindowsOfTheReader) {
  // Events lie across the reader's window; escapes are decoded, a pair of surrogates is one letter.
  std::string events;
  for (int i = 0; i < 30'000; ++i) events += kernel("filler " + std::to_string(i % 7)) + ",\n";
  const Trace trace = read(trace_of(events + kernel(R"(\"\u00e9\ud83d\ude00\\)")));
  EXPECT_EQ(trace.slices.size(), 30'001U);
  EXPECT_EQ(names(trace).back(), "\"é😀\\");
  EXPECT_EQ(trace.files[0].malformed, 0U);
}

TEST_F(Formats, AreRecognisedWhateverComesFirst) {
  const std::string old =
      R"({"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":1,"dur":2,"args":{"device":0,"stream":7}})";
  const std::string metadata = R"("metadata": {"a": ")" + std::string(100'000, 'x') + R"("},)";
  for (const std::string& text :
       {"{" + metadata + trace_of(kernel("k")).substr(1),
        R"({"traceEvents":[)" + kernel("k") + R"(],"deviceProperties":[]})",
        R"({"schemaVersion":1,"traceEvents":[)" + old + "]}", "[" + kernel("k") + "]",
        "\xef\xbb\xbf" + trace_of(kernel("k"))}) {
    const Trace trace = read(text);
    EXPECT_EQ(trace.files[0].format, "PyTorch profiler");
    ASSERT_EQ(trace.slices.size(), 1U);
    EXPECT_TRUE(trace.tracks[0].gpu);
    EXPECT_EQ(trace.tracks[0].label, "GPU 0 · stream 7");
    EXPECT_EQ(trace.tracks[0].device, 0);
  }
}

TEST_F(Formats, WhatIsRefusedSaysWhatWasLookedFor) {
  const auto path = folder_ / "ascend.db";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "CREATE TABLE STRING_IDS (id INT); CREATE TABLE TASK (id INT);", nullptr,
               nullptr, nullptr);
  sqlite3_close(database);
  for (const auto& file : {path, test::write(folder_ / "x.json", R"({"results": [1, 2]})")}) {
    const auto trace = import_trace(file);
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().kind, ErrorKind::usage);
    EXPECT_THAT(trace.error().message, HasSubstr("CUPTI_ACTIVITY_KIND"));
    EXPECT_THAT(trace.error().message, HasSubstr("deviceProperties"));
  }
}

TEST_F(Formats, WhatIsRefusedIsNamed) {
  const std::vector<std::tuple<std::string, std::string, std::string>> known{
      {"a.json", R"({"results": [1, 2], "run": 3})", "JSON without events, with the members re"},
      {"trace.pt", std::string("PK\x03\x04\x00", 5), "a ZIP archive"},
      {"report1.nsys-rep", "\x01\x02", "nsys export --type sqlite"},
      {"vm.pb", "\x0a\x10\x08\x02\x12\x09/host:CPU", "xspace_to_tool_data"},
      {"page.html", "<!DOCTYPE html><html>", "a web page"},
      {"train.log", "step 1 loss 0.5\nstep 2", "begins with \"step 1 loss 0.5\""},
      {"model.pickle", "\x80\x05}.", "neither a flight recorder dump nor a memory snapshot"},
      {"none", "", "seems to be empty"},
      {"results.json", R"({"rocprofiler-sdk-tool":[{"agents":[]}]})", "--output-format rocpd"},
      {"noise", "\x01\x02\x03", "binary data"}};
  for (const auto& [name, text, what] : known) {
    const auto trace = import_trace(test::write(folder_ / name, text));
    ASSERT_FALSE(trace) << name;
    EXPECT_THAT(trace.error().message, HasSubstr(what)) << name;
  }
}

std::string row(int pid, int tid, const char* name, int ts, int dur) {
  return fmt::format(R"({{"ph":"X","pid":{},"tid":{},"name":"{}","ts":{},"dur":{}}})", pid, tid,
                     name, ts, dur);
}
std::string named(const char* what, int pid, int tid, const char* name) {
  return fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":"{}"}}}})", pid,
                     tid, what, name);
}

// An XLA trace: the module of 70 us repeats its kernels, and its step is number 3.
TEST_F(Formats, XlaNamesDevicesByProcess) {
  const Trace trace = read(fmt::format(
      R"({{"displayTimeUnit":"ns","metadata":{{"highres-ticks":true}},"traceEvents":[{}]}})",
      fmt::join(
          std::vector<std::string>{
              named("process_name", 3, 0, "/device:GPU:2"), named("thread_name", 3, 1, "Steps"),
              named("thread_name", 3, 2, "XLA Ops"), named("thread_name", 3, 3, "XLA Modules"),
              named("thread_name", 3, 4, "Stream #20(Compute)"),
              named("process_name", 701, 0, "/host:CPU"), row(701, 9, "PjitFunction(f)", 5, 90),
              row(3, 1, "3", 10, 90), row(3, 2, "fusion", 20, 40), row(3, 3, "jit_f", 20, 70),
              row(3, 4, "loop_add_fusion", 20, 40), row(3, 4, "MemcpyD2H", 60, 5),
              row(3, 4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 70, 20), "{}"},
          ",")));
  EXPECT_EQ(trace.files[0].format, "JAX, XLA, Ascend or rpd");
  const Analysis analysis = analyse(trace);
  ASSERT_EQ(analysis.devices.size(), 1U);
  EXPECT_EQ(analysis.devices[0].number, 2);
  ASSERT_EQ(analysis.steps.size(), 1U);
  EXPECT_EQ(analysis.steps[0].number, 3);
  const TimeShare& step = analysis.devices[0].steps[0];
  EXPECT_EQ(step.span, 90'000);
  EXPECT_EQ(step.compute, 40'000);
  EXPECT_EQ(step.memory, 5'000);
  EXPECT_EQ(step.communication, 20'000);
  EXPECT_EQ(step.idle, 25'000);
}

// rpd2tracing's: times are texts, and a range of the host covers the work that it launched.
TEST_F(Formats, RpdNamesDevicesByProcess) {
  const auto work = [](const char* name, int begin, int took, const char* what) {
    return fmt::format(
        R"({{"pid":"2","tid":"0","name":"{}","ts":"{}","dur":"{}","ph":"X","args":{{"desc":"{}"}}}})",
        name, begin, took, what);
  };
  const Trace trace = read(fmt::format(
      "[ {{}}\n,{}\n]\n",
      fmt::join(
          std::vector<std::string>{
              R"({"name": "process_name", "ph": "M", "pid":"2","args":{"name":"GPU2"}})",
              work("Cijk_Ailk_Bljk_HHS_BH", 100, 50, "KernelExecution"),
              work("CopyHostToDevice", 160, 20, "CopyHostToDevice"),
              work("layer", 99, 82, "UserMarker frame: 2 ops"),
              R"({"pid":"47","tid":"48","name":"hipLaunchKernel","ts":"90","dur":"5","ph":"X"})"},
          "\n,")));
  const Analysis analysis = analyse(trace);
  ASSERT_EQ(analysis.devices.size(), 1U);
  EXPECT_EQ(analysis.devices[0].number, 2);
  EXPECT_EQ(analysis.devices[0].total.compute, 50'000);
  EXPECT_EQ(analysis.devices[0].total.memory, 20'000);
}

// Two ranks in one file, with the same correlations: SGLang's merger labels the processes, others
// give them names or leave them as they are. Launches may be at the same times.
TEST_F(Formats, ProcessesOfOneFileAreRanks) {
  struct Merge {
    const char *gpu0, *host0, *gpu1, *host1;
    int second;  // when rank 1 launches
  };
  for (const auto& [gpu0, host0, gpu1, host1, second] :
       {Merge{"\"[TP00] 0\"", "\"[TP00] 9\"", "\"[TP01] 0\"", "\"[TP01] 7\"", 50},
        Merge{"0", "70", "0", "90", 50}, Merge{"0", "70", "1", "90", 50},
        Merge{"0", "70", "1", "90", 10}, Merge{"0", "70", "0", "90", 10},
        Merge{"0", "70", "1000000", "1000070", 10},
        Merge{"\"rank0_0\"", "\"rank0_70\"", "\"rank1_0\"", "\"rank1_70\"", 10}}) {
    std::vector<std::string> events;
    int took = 10;
    for (const auto& [gpu, host, begin] : {std::tuple{gpu0, host0, 10}, {gpu1, host1, second}}) {
      events.push_back(fmt::format(
          R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{},"tid":1,"ts":{},"dur":2,"args":{{"correlation":5}}}})",
          host, begin));
      events.push_back(fmt::format(
          R"({{"ph":"X","cat":"kernel","name":"gemm","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"correlation":5}}}})",
          gpu, begin + 5, took));
      took = 50;
    }
    const std::vector<test::fs::path> paths{test::write(
        folder_ / "two.json", fmt::format("{{\"traceEvents\":[{}]}}", fmt::join(events, ",")))};
    const auto trace = load_traces(paths, {});
    ASSERT_TRUE(trace) << trace.error().message;
    const Analysis analysis = analyse(*trace);
    ASSERT_EQ(analysis.devices.size(), 2U) << gpu1;
    EXPECT_EQ(analysis.devices[0].rank, 0);
    EXPECT_EQ(analysis.devices[0].whole.compute, 10'000) << gpu1 << " " << second;
    EXPECT_EQ(analysis.devices[1].rank, 1);
    EXPECT_EQ(analysis.devices[1].whole.compute, 50'000) << gpu1 << " " << second;
  }
}

TEST_F(Formats, XlaStepsMayBeTheHosts) {
  const Trace trace = read(fmt::format(
      "{{\"traceEvents\":[{}]}}",
      fmt::join(
          std::vector<std::string>{
              named("process_name", 1, 0, "/device:GPU:0"),
              named("thread_name", 1, 10, "Stream #0(compute)"),
              R"({"ph":"X","pid":2,"tid":1,"name":"train","ts":0,"dur":500,"args":{"step_num": "4"}})",
              R"({"ph":"X","pid":2,"tid":1,"name":"train","ts":500,"dur":400,"args":{"step_num":5}})",
              row(1, 10, "fusion.1", 10, 100)},
          ",")));
  ASSERT_EQ(trace.steps.size(), 2U);
  EXPECT_EQ(trace.steps[0].number, 4);
  EXPECT_EQ(trace.steps[1].number, 5);
  EXPECT_EQ(trace.steps[1].begin, 500'000);
  EXPECT_EQ(trace.steps[1].end, 900'000);
}

// Names come after the events; a wait for an event and the parts of a collective are no work.
TEST_F(Formats, AscendNamesItsHardware) {
  const Trace trace = read(fmt::format(
      "[{}]",
      fmt::join(
          std::vector<std::string>{
              row(1, 1, "ProfilerStep#4", 0, 100),
              R"({"ph":"X","cat":"cpu_op","pid":1,"tid":1,"name":"aten::mm","ts":"1","dur":3})",
              row(2, 2, "MatMulV2", 10, 50), row(2, 2, "EVENT_WAIT", 60, 10),
              row(3, 0, "hcom_allReduce__051_0", 50, 30), row(3, 1, "Reduce_Inline", 55, 5),
              named("process_name", 1, 0, "Python"), named("process_name", 2, 0, "Ascend Hardware"),
              named("thread_name", 2, 2, "Stream 2"), named("process_name", 3, 0, "Communication"),
              named("thread_name", 3, 0, "Group 0 Communication"),
              named("thread_name", 3, 1, "Plane 0")},
          ",")));
  const Analysis analysis = analyse(trace);
  ASSERT_EQ(analysis.devices.size(), 1U);
  ASSERT_EQ(analysis.steps.size(), 1U);
  EXPECT_EQ(analysis.steps[0].number, 4);
  const TimeShare& step = analysis.devices[0].steps[0];
  EXPECT_EQ(step.span, 100'000);
  EXPECT_EQ(step.compute, 50'000);
  EXPECT_EQ(step.communication, 30'000);
  EXPECT_EQ(step.hidden_communication, 10'000);
  EXPECT_EQ(step.idle, 30'000);
}

TEST(JsonCursor, StopsWhereItShould) {
  const auto stop = [](std::string text) {
    const std::size_t size = text.size();
    text.append(kJsonPadding, '\0');
    JsonCursor json(text.data(), text.data() + size);
    json.skip();
    return json.stop();
  };
  for (const char* good : {"{}", "[1, -2.5e-3, \"a\\n\", {\"b\": null}] ", "\"\\u00e9\"",
                           "[1e-400]", "[1e999]", "nan", "[NaN, -Infinity]"}) {
    EXPECT_EQ(stop(good), JsonStop::none) << good;
  }
  for (const char* end : {"{", "[1, 2", "\"abc", "{\"a\": tr", "\"a\\", "12"}) {
    EXPECT_EQ(stop(end), JsonStop::end) << end;
  }
  for (const char* bad :
       {"nule", "[nah]", "[01]", "[1.]", "[-Inf]", "{a: 1}", "[1 2]", "\"\t\"", "[+1]"}) {
    EXPECT_EQ(stop(bad), JsonStop::bad) << bad;
  }
}

TEST(KernelKinds, KnowModernCommunication) {
  for (const char* name :
       {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void deep_ep::internode_ll::dispatch<false, 8, 9>(void*)",
        "void dpsk::ep::internode::combine<false, 8>(int4*)",
        "void dpsk::ep::internode::cached_notify<false>(int)", "multimem_all_reduce_kernel",
        "nvshmemi_barrier_on_stream",
        "void vllm::cross_device_reduce_1stage<nv_bfloat16, 8>(vllm::RankData*)",
        "one_shot_all_reduce_kernel", "void flashinfer::trtllm_allreduce_fusion::lamport()"}) {
    EXPECT_EQ(kind_of_kernel(name), Kind::communication) << name;
  }
  for (const char* name : {"void gemm<float>()", "void SoftmaxForward<WarpAllReduce<SumOp>>()",
                           "sm90_xmma_gemm", "void at::native::gatherTopK<float>()"}) {
    EXPECT_EQ(kind_of_kernel(name), Kind::compute) << name;
  }
  const auto mine = KernelKinds::with({"^my_(ring|tree)"});
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->kind("my_ring_kernel"), Kind::communication);
  EXPECT_EQ(mine->kind("not_my_ring"), Kind::compute);
  EXPECT_FALSE(KernelKinds::with({"("}));
}

}  // namespace
}  // namespace assay::timeline
