// The content of a run's page.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "../report/stored_run.h"
#include "page_data.h"
#include "pages/packing.h"
#include "serve/case_list.h"
#include "serve/live_run.h"
#include "serve/report_page.h"
#include "serve/run_page.h"
#include "serve/source.h"
#include "store/known_deviations.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::StoredRun;

LiveRun empty_run() { return LiveRun({}); }

FinishedCase finished(std::uint64_t id, std::string_view text, Outcome outcome,
                      std::int64_t at_ms = 0) {
  FinishedCase made;
  made.id = id;
  made.text = text;
  made.verdict.outcome = outcome;
  made.verdict.lane = "paddle";
  made.verdict.message = outcome == Outcome::crash ? "SIGSEGV" : "";
  made.finished_ms = at_ms;
  made.took_us = 500'000;
  return made;
}

constexpr std::string_view kAdd = "paddle.add(Tensor([2], \"float32\"), 1)";
constexpr std::string_view kAbs = "paddle.abs(Tensor([2], \"int8\"))";

TEST(ALiveRun, CountsByApiAndDtype) {
  LiveRun run = empty_run();
  run.add(finished(1, kAdd, Outcome::pass));
  run.add(finished(2, kAdd, Outcome::pass));
  run.add(finished(3, kAbs, Outcome::crash));
  run.add(finished(4, "paddle.seed(1)", Outcome::rejected));
  const nlohmann::json page = run.json();
  EXPECT_EQ(page["read"], 4);
  EXPECT_EQ(page["failed"], 1);
  EXPECT_EQ(page["outcomes"], (nlohmann::json{{"pass", 2}, {"crash", 1}, {"rejected", 1}}));
  ASSERT_EQ(page["apis"].size(), 3U);
  EXPECT_EQ(page["apis"][0]["api"], "paddle.abs");  // the one with failures is first
  EXPECT_EQ(page["apis"][0]["failed"], 1);
  EXPECT_EQ(page["apis"][1]["outcomes"], (nlohmann::json{{"pass", 2}}));
  EXPECT_EQ(page["dtypes"][0]["dtype"], "int8");
}

TEST(ALiveRun, FindingsComeTogetherFromTheirCases) {
  LiveRun run = empty_run();
  run.add(finished(1, kAbs, Outcome::crash, 2'000));
  run.add(finished(2, kAbs, Outcome::crash, 1'000));
  run.add(finished(3, kAdd, Outcome::crash, 9'000));
  const nlohmann::json findings = run.json()["findings"];
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0]["api"], "paddle.abs");
  EXPECT_EQ(findings[0]["cases"], 2);
  EXPECT_EQ(findings[0]["first_ms"], 1'000);
  EXPECT_EQ(findings[0]["last_ms"], 2'000);
  EXPECT_EQ(findings[0]["text"], kAbs);
}

// Known deviations of the APIs in the run.
TEST(ALiveRun, ListsKnownDeviations) {
  LiveRun run({{std::string(kKnownDeviations),
                R"({"paddle.abs": ["follows: <a>", "dodges: b"], "paddle.min": ["follows: c"]})"},
               {"seed", "5"}});
  run.add(finished(1, kAbs, Outcome::pass));
  run.add(finished(2, kAbs, Outcome::crash));
  run.add(finished(3, kAdd, Outcome::pass));
  const nlohmann::json page = run.json();
  EXPECT_EQ(page["accommodated"]["cases"], 2);
  EXPECT_EQ(page["accommodated"]["rows"],
            nlohmann::json::parse(R"([["paddle.abs", "follows: <a>; dodges: b"]])"));
  EXPECT_EQ(page["properties"], (nlohmann::json{{"seed", "5"}}));
  EXPECT_EQ(empty_run().json()["accommodated"]["rows"].size(), 0U);
}

TEST(ALiveRun, HistoryIsByMinuteAndOfBoundedLength) {
  LiveRun run = empty_run();
  run.add(finished(1, kAbs, Outcome::pass, 60'000));
  run.add(finished(2, kAbs, Outcome::crash, 119'999));
  run.add(finished(3, kAbs, Outcome::pass, 120'000));
  EXPECT_EQ(run.json()["history"], nlohmann::json::parse("[[60000, 2, 1], [120000, 1, 0]]"));
  constexpr std::int64_t kMonthMs = 31LL * 86'400'000;
  std::uint64_t id = 4;
  for (std::int64_t at = 0; at < kMonthMs; at += 600'000) {
    run.add(finished(id++, kAdd, Outcome::pass, at));
  }
  const nlohmann::json history = run.json()["history"];
  EXPECT_LE(history.size(), 2'001U);
  std::uint64_t sum = 0;
  for (const auto& step : history) sum += step[1].get<std::uint64_t>();
  EXPECT_EQ(sum, run.cases());
}

TEST(ALiveRun, AnyBytesBecomeValidText) {
  LiveRun run = empty_run();
  run.add(finished(1, "</script>\xff(\"", Outcome::crash));
  EXPECT_TRUE(nlohmann::json::accept(json_text(run.json())));
  EXPECT_EQ(first_dtype("f(Tensor([1], \"float16\"), Tensor([1], \"int8\"))"), "float16");
  EXPECT_EQ(first_dtype("f(\"float16\")"), "");
  EXPECT_EQ(first_dtype("f(Tensor([1], \"float16"), "");
}

class FixedSource : public RunSource {
 public:
  Result<bool> poll() override { return false; }
  nlohmann::json json() const override { return {{"planned", 1}}; }
  Result<std::vector<CaseList::Part>> parts() override {
    return std::vector<CaseList::Part>{std::make_shared<const std::string>("part")};
  }
};

std::string body(const RunPage& page, std::string_view path) {
  const auto reply = page.reply(path);
  return reply ? reply->body : "nothing";
}

TEST(ARunPage, HasTheRunsDataAndCases) {
  const RunPage page(std::make_unique<FixedSource>());
  while (body(page, "/data.json") == "{}") std::this_thread::yield();  // until the first poll
  EXPECT_EQ(nlohmann::json::parse(body(page, "/data.json"))["planned"], 1);
  EXPECT_EQ(body(page, "/cases/0"), "part");
  for (const char* unknown : {"/cases/1", "/cases/", "/cases/-1", "/cases/0x", "/cases/ 0"}) {
    EXPECT_FALSE(page.reply(unknown)) << unknown;
  }
}

TEST(ARunPage, HasAllFilesThatItNeeds) {
  const RunPage page(std::make_unique<FixedSource>());
  EXPECT_THAT(body(page, "/"), HasSubstr("src=\"page.js\""));
  EXPECT_THAT(body(page, "/page.js"), HasSubstr("data.json"));
  EXPECT_THAT(body(page, "/page.js"), Not(HasSubstr("\nimport ")));
  for (const char* file : {"/", "/page.css"}) EXPECT_THAT(body(page, file), Not(HasSubstr("http")));
  for (const char* unknown : {"/../etc/passwd", "/page.jsx", "//", "", "/index.html.bak"}) {
    EXPECT_FALSE(page.reply(unknown)) << unknown;
  }
  EXPECT_THAT(RunPage::file_paths(), ::testing::ElementsAre("/", "/page.css", "/page.js"));
}

// Data inside a page: the reader is Python's gzip and base64.
TEST(AReportPage, HasItsDataInside) {
  StoredRun run;
  run.add("paddle.abs(1)", {});
  run.add("paddle.abs(2)", {Outcome::pass, 0, kFlaky, "", ""});
  const std::string nasty = R"(paddle.f("</script><b>\x01", Tensor([2], "int8")))";
  run.add(nasty, {Outcome::mismatch, kShape | kValue, 0, "", "3 < 4 & \"so\" ]]> \x02"});
  run.plan("paddle.later(1)");
  StoredRun::must(run.store().add_invalid({"a.txt:7", "paddle.(\xff<\xc3", "expected a name"}));
  StoredRun::must(run.store().set_property("seed", "5"));
  const auto file = run.folder() / "report.html";
  const RunVerdict verdict{RunVerdict::Kind::not_judged, "why"};
  ASSERT_TRUE(write_report_page(run.store(), {.file = file, .verdict = verdict}));
  const std::string text = StoredRun::must(read_file(file));
  EXPECT_THAT(text, Not(HasSubstr("<b>\\x01")));
  EXPECT_THAT(text, Not(HasSubstr("src=\"")));  // nothing beside it is needed
  EXPECT_THAT(text, Not(HasSubstr("<link")));
  const nlohmann::json page = testing::page_data(file);
  const nlohmann::json& data = page["data"];
  EXPECT_EQ(data["outcomes"], (nlohmann::json{{"pass", 2}, {"mismatch", 1}, {"invalid", 1}}));
  EXPECT_EQ(data["planned"], 4);
  EXPECT_EQ(data["verdict"], (nlohmann::json{{"word", "not judged"}, {"reason", "why"}}));
  EXPECT_EQ(data["unfinished"], 1);
  EXPECT_EQ(data["properties"]["seed"], "5");
  EXPECT_EQ(data["findings"][0]["text"], nasty);
  ASSERT_EQ(data["findings"].size(), 2U);
  EXPECT_EQ(data["findings"][1]["message"], "a.txt:7: expected a name");
  EXPECT_EQ(data["apis"][0]["outcomes"], (nlohmann::json{{"invalid", 1}}));
  EXPECT_EQ(data["accommodated"]["cases"], 0);
  EXPECT_THAT(data["rerun"].get<std::string>(), HasSubstr("api --api_config=@ "));
  EXPECT_FALSE(data.contains("tolerances"));
  ASSERT_EQ(page["cases"].size(), 1U);
  const nlohmann::json& cases = page["cases"][0];
  EXPECT_EQ(data["listed"], 3);
  EXPECT_EQ(cases["text"],
            (nlohmann::json{"paddle.abs(2)", nasty, "paddle.(\xef\xbf\xbd<\xef\xbf\xbd"}));
  EXPECT_EQ(cases["outcome"], (nlohmann::json{"pass", "mismatch", "invalid"}));
  EXPECT_EQ(cases["flags"][0], "flaky");
  EXPECT_EQ(cases["kinds"][1], "shape, value");
  EXPECT_EQ(cases["id"][1], format_case_id(case_id(nasty)));
  EXPECT_EQ(cases["lane"][2], "a.txt:7");
}

TEST(AReportPage, Base64IsThatOfItsStandard) {  // RFC 4648, section 10
  EXPECT_EQ(pages::base64(""), "");
  EXPECT_EQ(pages::base64("f"), "Zg==");
  EXPECT_EQ(pages::base64("fo"), "Zm8=");
  EXPECT_EQ(pages::base64("foo"), "Zm9v");
  EXPECT_EQ(pages::base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(pages::base64("\xff\xfe"), "//4=");
}

TEST(AListOfCases, ComesInPartsOfOneLength) {
  CaseList list;
  constexpr std::size_t kCases = 2 * CaseList::kOfPart + 1;
  for (std::size_t i = 0; i < kCases; ++i) list.add(finished(i, kAbs, Outcome::crash));
  EXPECT_EQ(list.cases(), kCases);
  EXPECT_EQ(list.parts()->size(), 3U);
  EXPECT_EQ(list.left_out(), 0U);
}

// A page stays small enough for a browser, however large the run is.
TEST(AListOfCases, IsBounded) {
  CaseList list;
  std::mt19937_64 random;
  std::uint64_t added = 0;
  for (; list.left_out() == 0 && added < 200'000; ++added) {
    std::string text;
    while (text.size() < 2'000) text += static_cast<char>('!' + random() % 90);
    list.add(finished(added, text, Outcome::crash));
  }
  EXPECT_EQ(list.left_out(), 1U);
  std::size_t bytes = 0;
  const std::vector<CaseList::Part> parts = StoredRun::must(list.parts());
  for (const CaseList::Part& part : parts) bytes += part->size();
  EXPECT_LT(bytes, CaseList::kMostBytes + CaseList::kMostBytes / 2);
}

// In a lane's record: making inputs, the call, the results' way out, differentiation.
TEST(StagesOfACase, AreThoseOfItsLanes) {
  flatbuffers::FlatBufferBuilder builder;
  const auto lane = [&](wire::Role role, std::vector<std::uint64_t> nanoseconds) {
    const auto name = builder.CreateString("a lane");
    const auto times = builder.CreateVector(nanoseconds);
    wire::LaneRecordBuilder made(builder);
    made.add_name(name);
    made.add_role(role);
    made.add_nanoseconds(times);
    return made.Finish();
  };
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::vector<flatbuffers::Offset<wire::LaneRecord>> both{
      lane(wire::Role::test, {1 * kSecond, 2 * kSecond, 3 * kSecond, 4 * kSecond}),
      lane(wire::Role::reference, {10 * kSecond, 20 * kSecond, 30 * kSecond, 40 * kSecond})};
  const auto lanes = builder.CreateVector(both);
  const auto trials = builder.CreateVector(
      std::vector<flatbuffers::Offset<wire::Trial>>{wire::CreateTrial(builder, 0, lanes)});
  wire::RecordBuilder record(builder);
  record.add_version(wire::kVersion);
  record.add_trials(trials);
  record.add_compare_ns(5 * kSecond);
  builder.Finish(record.Finish());
  FinishedCase timed = finished(1, kAdd, Outcome::pass);
  const auto bytes = wire::bytes_of(builder);
  timed.record.assign(bytes.begin(), bytes.end());
  const StageTimes times = stage_times(timed);
  EXPECT_EQ(times.cases, 1U);
  // fill, test forward, test backward, reference, copy, compare, wait
  const auto seconds = [](std::int64_t count) { return count * std::int64_t{kSecond}; };
  EXPECT_THAT(times.ns, ::testing::ElementsAre(seconds(11), seconds(2), seconds(4), seconds(60),
                                               seconds(33), seconds(5), seconds(90)));
  LiveRun run = empty_run();
  run.add(timed);
  const nlohmann::json page = run.json();
  EXPECT_EQ(page["apis"][0]["stage_ms"][1], 2000.0);
  EXPECT_EQ(page["apis"][0]["seconds"],
            110.0);  // as the report counts, without "compare" and "wait"
  EXPECT_EQ(page["sizes"][0]["seconds"], 110.0);
  EXPECT_EQ(page["sizes"][0]["size"], "up to 100 elements");
  EXPECT_EQ(page["stages"].size(), page["sizes"][0]["stage_ms"].size());
}

TEST(StagesOfACase, AreSortedByItsElements) {
  EXPECT_EQ(size_of_case("paddle.seed(1)"), 0U);
  EXPECT_EQ(size_of_case("paddle.f(Tensor([100], \"int8\"))"), 1U);
  EXPECT_EQ(size_of_case("paddle.f(Tensor([101], \"int8\"))"), 2U);
  EXPECT_EQ(size_of_case("paddle.f(Tensor([1000, 1000], \"int8\"))"), 3U);
  EXPECT_EQ(size_of_case("paddle.f(Tensor([1000, 1000], \"int8\"), Tensor([1], \"int8\"))"), 4U);
  EXPECT_EQ(size_of_case("paddle.f(Tensor([1000, 1000, 1000, 1000], \"int8\"))"), 5U);
  EXPECT_EQ(size_of_case("no case at all"), 0U);
}

}  // namespace
}  // namespace assay
