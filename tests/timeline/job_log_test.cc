// The grammar of Paddle's job lines, and what becomes of lines that break it.

#include "timeline/importers/job_log.h"

#include <gmock/gmock.h>

#include <random>

#include "support.h"

namespace assay::timeline {
namespace {

using test::job_line;
using test::TempFolder;

struct Read {
  std::vector<std::string> jobs;  // "type_number:micro_batch@begin-end" in nanoseconds
  std::vector<std::string> marks;
  FileReport report;
};

Read read_log(const std::string& text) {
  const TempFolder folder;
  auto reader = JobLogReader::open(test::write(folder / "workerlog.0", text));
  EXPECT_TRUE(reader.has_value());
  Read result;
  JobLogRecord record;
  for (;;) {
    const auto more = reader->next(record);
    EXPECT_TRUE(more.has_value());
    if (!more || !*more) break;
    if (record.what == JobLogRecord::What::job) {
      result.jobs.push_back(std::string(record.type) + "_" + std::to_string(record.number) + ":" +
                            std::to_string(record.micro_batch) + "@" +
                            std::to_string(record.begin) + "-" + std::to_string(record.end));
    } else {
      const char* const names[] = {"job", "window", "push", "pop"};
      result.marks.push_back(std::string(names[static_cast<int>(record.what)]) + " " +
                             std::to_string(record.number) + " " + std::to_string(record.begin));
    }
  }
  result.report = std::move(reader->report());
  return result;
}

TEST(JobLog, ReadsALineToTheNanosecond) {
  const Read log =
      read_log(job_line(4, "forward", 2, "1700000000000.771484", "1700000000005.200439"));
  EXPECT_THAT(log.jobs,
              testing::ElementsAre("forward_4:2@1700000000000771484-1700000000005200439"));
  EXPECT_EQ(log.report.records, 1U);
  EXPECT_EQ(log.report.dropped() + log.report.interleaved, 0U);
}

// Milliseconds are shifted by six decimal places: the digits themselves must come back.
TEST(JobLog, TimesKeepEveryDigit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const std::string whole = std::to_string(random() % 9'000'000'000'000ULL);
    std::string fraction;
    for (std::uint64_t n = random() % 7; n > 0; --n) {
      fraction += static_cast<char>('0' + random() % 10);
    }
    const std::string text = fraction.empty() ? whole : whole + "." + fraction;
    const std::string digits = whole + fraction + std::string(6 - fraction.size(), '0');
    const char* cursor = text.data();
    const auto time = parse_milliseconds(cursor, text.data() + text.size());
    ASSERT_TRUE(time.has_value()) << text;
    EXPECT_EQ(*time, std::stoll(digits)) << text;
    EXPECT_EQ(cursor, text.data() + text.size());
  }
}

TEST(JobLog, RefusesTimesThatDoNotFit) {
  for (const std::string text : {"99999999999999.0", "9999999999999999999999", "", ".5", "-1.0"}) {
    const char* cursor = text.data();
    EXPECT_FALSE(parse_milliseconds(cursor, text.data() + text.size()).has_value()) << text;
  }
}

TEST(JobLog, ReadsMarks) {
  const Read log = read_log(
      "Schedule Profiler start at step 3 and end at step 6\n"
      "I1 x] NVTX range push: 7, time: 1700000000000.123\n"
      "I1 x] NVTX range push: matmul, time: 1700000000001.000\n"
      "I1 x] NVTX range pop, time: 1700000000002.5\n"
      "I1 x] NVTX range pop, time: 1700000000003\n");
  EXPECT_THAT(log.marks,
              testing::ElementsAre("window 3 0", "push 7 1700000000000123000",
                                   "push -1 1700000000001000000", "pop 0 1700000000002500000",
                                   "pop 0 1700000000003000000"));
}

TEST(JobLog, CountsWhatItDrops) {
  const std::string good = job_line(1, "forward", 0, "10.000000", "11.000000");
  const std::string cut = good.substr(0, good.find("micro") + 3) + "\n";
  std::string wrong = good;
  wrong.replace(wrong.find("10.0"), 4, "nan ");
  const Read log = read_log(good + cut + wrong + job_line(2, "backward", 0, "13.0", "12.0") +
                            job_line(3, "backward", 0, "12.0", "14.0") +
                            job_line(4, "backward", 0, "11.5", "14.0"));
  EXPECT_THAT(log.jobs, testing::ElementsAre("forward_1:0@10000000-11000000",
                                             "backward_3:0@12000000-14000000",
                                             "backward_4:0@11500000-14000000"));
  EXPECT_EQ(log.report.truncated, 1U);
  EXPECT_EQ(log.report.malformed, 1U);
  EXPECT_EQ(log.report.backwards, 1U);
  EXPECT_EQ(log.report.non_monotonic, 1U);
}

// Two processes that write to one file mix their lines. A regular expression that looks for the
// record anywhere in the line finds the whole ones; so must we.
TEST(JobLog, FindsRecordsInInterleavedLines) {
  std::string first = job_line(1, "forward", 0, "10.000000", "11.000000");
  first.pop_back();
  const Read log = read_log("Profiler Info: Job (9), type = forw" + first +
                            job_line(2, "backward", 0, "12.0", "13.0"));
  EXPECT_THAT(log.jobs, testing::ElementsAre("forward_1:0@10000000-11000000",
                                             "backward_2:0@12000000-13000000"));
  EXPECT_EQ(log.report.malformed, 1U);
  EXPECT_EQ(log.report.interleaved, 1U);
}

TEST(JobLog, ALogThatEndsWithinARecordIsTruncated) {
  const std::string good = job_line(1, "forward", 0, "10.000000", "11.000000");
  for (std::size_t length = good.find("(1)"); length < good.find("11.0"); ++length) {
    const Read log = read_log(good.substr(0, length));
    EXPECT_TRUE(log.jobs.empty()) << length;
    EXPECT_EQ(log.report.truncated, 1U) << length;
  }
}

TEST(JobLog, AnUnrelatedLogHasNoRecords) {
  const Read log = read_log("Profiler started\nProcess 1 of 2\nNVIDIA driver 580\nPr");
  EXPECT_TRUE(log.report.unrelated());
  EXPECT_EQ(log.report.dropped(), 0U);
}

// Records are found wherever they fall on the reader's buffer: each length of filler moves them.
TEST(JobLog, ReadsAcrossBufferEdges) {
  const std::string line = job_line(1, "forward", 0, "10.000000", "11.000000");
  for (const std::size_t shift : {0U, 1U, 5U, 17U, 50U, 51U, 100U, 163U, 164U, 165U}) {
    std::string text(JobLogReader::kBufferBytes - 200 + shift, 'P');
    text += '\n';
    for (int i = 0; i < 40; ++i) text += line;
    text.append(JobLogReader::kBufferBytes - 6000 - shift, 'N');
    for (int i = 0; i < 40; ++i) text += line;
    EXPECT_EQ(read_log(text).jobs.size(), 80U) << shift;
  }
}

// The vector search agrees with a search byte by byte.
TEST(JobLog, MarksAreFoundAsByASimpleSearch) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 70, ' ');
    for (char& c : text) c = "PrNVx"[random() % 5];
    const std::size_t expected = std::min(text.find("Pr"), text.find("NV"));
    const char* found = find_record_mark(text.data(), text.data() + text.size());
    EXPECT_EQ(found - text.data(), std::min(expected, text.size())) << text;
  }
}

// Holes are stepped over; what stands on their edges is read, and counted, as if they were not.
TEST(JobLog, HolesReadAsNothing) {
  const TempFolder folder;
  const std::string line = job_line(3, "forward", 1, "10.000000", "11.500000");
  const std::string cut = line.substr(0, 90);
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    const auto path = folder / ("workerlog." + std::to_string(i));
    std::uint64_t size = 0;
    std::uint64_t lines = 0;
    std::uint64_t cuts = 0;
    {
      std::ofstream file(path, std::ios::binary);
      for (int part = 0; part < 6; ++part) {
        const bool whole = random() % 2 == 0;
        const std::string text = (whole ? line : cut);
        const std::size_t times = whole ? 1 + random() % 2000 : 1;
        size += (random() % 3) * 300'000 + random() % 5000 + 1;
        file.seekp(static_cast<std::streamoff>(size));
        for (std::size_t n = 0; n < times; ++n) file << text;
        size += text.size() * times;
        (whole ? lines : cuts) += times;
      }
    }
    test::fs::resize_file(path, size + 700'000);
    auto reader = JobLogReader::open(path);
    ASSERT_TRUE(reader);
    JobLogRecord record;
    while (reader->next(record).value()) EXPECT_EQ(record.end, 11'500'000);
    EXPECT_EQ(reader->report().records, lines);
    EXPECT_EQ(reader->report().truncated, cuts);
    EXPECT_EQ(reader->report().bytes, size + 700'000);
  }
}

}  // namespace
}  // namespace assay::timeline
