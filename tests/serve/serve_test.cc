// What a page is told of a run, and who is told.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "../report/stored_run.h"
#include "serve/live_run.h"
#include "serve/server.h"
#include "serve/source.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::StoredRun;

Judging judging() {
  std::map<std::string, std::string> properties;
  return *judging_by({}, properties);
}

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
  LiveRun run(judging());
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
  EXPECT_EQ(page["apis"][1]["seconds"], 1.0);
  EXPECT_EQ(page["dtypes"][0]["dtype"], "int8");
}

TEST(ALiveRun, FindingsComeTogetherFromTheirCases) {
  LiveRun run(judging());
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

TEST(ALiveRun, HistoryIsByMinuteAndOfBoundedLength) {
  LiveRun run(judging());
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

TEST(ALiveRun, AnythingIsATextForAPage) {
  LiveRun run(judging());
  run.add(finished(1, "</script>\xff(\"", Outcome::crash));
  EXPECT_TRUE(nlohmann::json::accept(json_text(run.json())));
  EXPECT_EQ(first_dtype("f(Tensor([1], \"float16\"), Tensor([1], \"int8\"))"), "float16");
  EXPECT_EQ(first_dtype("f(\"float16\")"), "");
  EXPECT_EQ(first_dtype("f(Tensor([1], \"float16"), "");
}

TEST(APage, IsForThisMachineOrForWhoKnowsItsToken) {
  const ServeOptions local;
  EXPECT_EQ(reply_to("/data.json", "127.0.0.1:8000", local, "{}").body, "{}");
  EXPECT_EQ(reply_to("/data.json", "localhost:8000", local, "{}").status, 200);
  EXPECT_EQ(reply_to("/data.json", "evil.example:8000", local, "{}").status, 403);
  ServeOptions open;
  open.host = "0.0.0.0";
  open.token = "secret";
  EXPECT_EQ(reply_to("/data.json", "node7", open, "{}").status, 403);
  EXPECT_EQ(reply_to("/?token=secreT", "node7", open, "{}").status, 403);
  EXPECT_EQ(reply_to("/index.html", "node7", open, "{}").status, 403);
  EXPECT_EQ(reply_to("/data.json?a=b&token=secret", "node7", open, "{}").status, 200);
  EXPECT_EQ(reply_to("/?token=secret", "node7", open, "{}").status, 200);
}

TEST(APage, BringsAllThatItNeeds) {
  const ServeOptions local;
  const auto body = [&](const std::string& target) {
    const Reply reply = reply_to(target, "localhost", local, "{}");
    EXPECT_EQ(reply.status, 200) << target;
    return reply.body;
  };
  EXPECT_THAT(body("/"), HasSubstr("src=\"page.js\""));
  EXPECT_THAT(body("/page.js"), HasSubstr("data.json"));
  EXPECT_GT(body("/d3.min.js").size(), 100'000U);
  for (const char* file : {"/", "/page.js", "/page.css"}) {
    EXPECT_THAT(body(file), Not(HasSubstr("http")));
  }
  for (const char* nothing : {"/../etc/passwd", "/page.jsx", "//", "", "/index.html.bak"}) {
    EXPECT_EQ(reply_to(nothing, "localhost", local, "{}").status, 404) << nothing;
  }
}

TEST(AFolder, IsReadWhenNobodyWorksOnIt) {
  const testing::Folder folder;
  const auto add = [&](const std::string& text) {
    auto store = open_store(folder.path(), StoreMode::create);
    ASSERT_TRUE((*store)->add_case({case_id(text), text}));
    ASSERT_TRUE((*store)->finish({case_id(text), 1}, finished(case_id(text), text, Outcome::pass)));
    ASSERT_TRUE((*store)->commit());
    const auto source = open_source(folder.path().string());
    ASSERT_TRUE(source.has_value());
    const auto busy = (*source)->poll();
    ASSERT_FALSE(busy.has_value());
    EXPECT_THAT(busy.error().message, HasSubstr("in use"));
  };
  EXPECT_FALSE(open_source(folder.path().string()).has_value());
  add(std::string(kAdd));
  const auto source = open_source(folder.path().string());
  ASSERT_TRUE((*source)->poll().has_value());
  EXPECT_EQ((*source)->json()["read"], 1);
  add(std::string(kAbs));
  ASSERT_TRUE((*source)->poll().has_value());
  EXPECT_EQ((*source)->json()["read"], 2);
  EXPECT_EQ((*source)->json()["planned"], 2);
}

}  // namespace
}  // namespace assay
