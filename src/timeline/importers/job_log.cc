#include "timeline/importers/job_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "timeline/names.h"

namespace assay::timeline {
namespace {

constexpr char kJobMark[] = "Profiler Info: Job (";
constexpr char kWindowMark[] = "Profiler start at step ";
constexpr char kPushMark[] = "NVTX range push: ";
constexpr char kPopMark[] = "NVTX range pop, time: ";

// \w of a regular expression; every byte above 127 counts as a letter.
bool is_word(char c) {
  const auto lower = static_cast<unsigned char>(c | 0x20);
  return is_digit(c) || (lower >= 'a' && lower <= 'z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A template, so that the comparison with a literal compiles to a few loads.
template <std::size_t kSize>
bool skip(const char*& cursor, const char* end, const char (&literal)[kSize]) {
  constexpr std::size_t kLength = kSize - 1;
  if (static_cast<std::size_t>(end - cursor) >= kLength &&
      std::memcmp(cursor, literal, kLength) == 0) {
    cursor += kLength;
    return true;
  }
  // Stop at the first difference: this tells a truncated record from a malformed one.
  const auto* const limit = cursor + std::min<std::ptrdiff_t>(end - cursor, kLength);
  cursor = std::mismatch(cursor, limit, literal).first;
  return false;
}

// The leading digits of 8 bytes, parsed by Lemire's parse_eight_digits after moving them to the end
// of the word.
struct Digits {
  unsigned count = 0;
  std::uint64_t value = 0;
};
Digits leading_digits(const char* text) {
  constexpr unsigned kBits = 8;
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  word ^= 0x3030303030303030;  // a digit becomes its value, anything else more than 9
  // A carry out of a non-digit affects only bytes after it.
  const std::uint64_t others = (word | (word + 0x7676767676767676)) & 0x8080808080808080;
  const auto count = static_cast<unsigned>(std::countr_zero(others)) / kBits;
  if (count == 0) return {};
  word <<= (sizeof word - count) * kBits;
  word = word * 10 + (word >> 8U);
  constexpr std::uint64_t kPairs = 0x000000FF000000FF;
  word =
      ((word & kPairs) * 0x000F424000000064 + ((word >> 16U) & kPairs) * 0x0000271000000001) >> 32U;
  return {count, word};
}

constexpr std::array<std::int64_t, 9> kPowersOfTen{1,      10,      100,      1000,     10000,
                                                   100000, 1000000, 10000000, 100000000};

bool parse_number(const char*& cursor, const char* end, std::int64_t& value) {
  const char* const begin = cursor;
  std::int64_t result = 0;
  while (end - cursor >= 8 && cursor - begin <= 8) {
    const Digits digits = leading_digits(cursor);
    result = result * kPowersOfTen[digits.count] + static_cast<std::int64_t>(digits.value);
    cursor += digits.count;
    if (digits.count < 8) {
      value = result;
      return cursor > begin;
    }
  }
  // 18 digits always fit; longer numbers are malformed.
  for (; cursor < end && is_digit(*cursor); ++cursor) {
    if (cursor - begin == 18) return false;
    result = result * 10 + (*cursor - '0');
  }
  value = result;
  return cursor > begin;
}

bool parse_word(const char*& cursor, const char* end, std::string_view& word) {
  const char* const begin = cursor;
  while (cursor < end && is_word(*cursor)) ++cursor;
  word = {begin, static_cast<std::size_t>(cursor - begin)};
  return !word.empty();
}

bool parse_time(const char*& cursor, const char* end, Nanos& time) {
  const auto parsed = parse_milliseconds(cursor, end);
  if (parsed) time = *parsed;
  return parsed.has_value();
}

bool parse_job(const char*& p, const char* end, JobLogRecord& job) {
  job.what = JobLogRecord::What::job;
  return skip(p, end, kJobMark) && parse_number(p, end, job.number) && skip(p, end, "), type = ") &&
         parse_word(p, end, job.type) && skip(p, end, ", micro_batch_id = ") &&
         parse_number(p, end, job.micro_batch) && skip(p, end, ", job_start_time = ") &&
         parse_time(p, end, job.begin) && skip(p, end, ", job_end_time = ") &&
         parse_time(p, end, job.end);
}

bool parse_window(const char*& p, const char* end, JobLogRecord& window) {
  window.what = JobLogRecord::What::window;
  return skip(p, end, kWindowMark) && parse_number(p, end, window.number) &&
         skip(p, end, " and end at step");
}

bool parse_push(const char*& p, const char* end, JobLogRecord& push) {
  push.what = JobLogRecord::What::push;
  if (!skip(p, end, kPushMark)) return false;
  // Every NVTX range prints this line, but only ranges named by a number are steps. The others
  // become step -1, so that pops match their pushes.
  const char* const name = p;
  if (parse_number(p, end, push.number) && skip(p, end, ", time: ")) {
    return parse_time(p, end, push.begin);
  }
  p = name;
  const auto* line_end =
      static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
  if (line_end == nullptr) line_end = end;
  constexpr char kTime[] = ", time: ";
  const char* const time = std::search(p, line_end, std::begin(kTime), std::end(kTime) - 1);
  push.number = kNone;
  p = time;
  return time > name && skip(p, line_end, kTime) && parse_time(p, line_end, push.begin);
}

bool parse_pop(const char*& p, const char* end, JobLogRecord& pop) {
  pop.what = JobLogRecord::What::pop;
  pop.number = 0;
  return skip(p, end, kPopMark) && parse_time(p, end, pop.begin);
}

}  // namespace

const char* find_record_mark(const char* begin, const char* end) {
  const char* p = begin;
#ifdef __SSE2__
  const __m128i first_p = _mm_set1_epi8('P');
  const __m128i then_r = _mm_set1_epi8('r');
  const __m128i first_n = _mm_set1_epi8('N');
  const __m128i then_v = _mm_set1_epi8('V');
  for (; end - p > 16; p += 16) {
    __m128i here;
    __m128i next;
    std::memcpy(&here, p, sizeof here);
    std::memcpy(&next, p + 1, sizeof next);
    const __m128i profiler =
        _mm_and_si128(_mm_cmpeq_epi8(here, first_p), _mm_cmpeq_epi8(next, then_r));
    const __m128i nvtx = _mm_and_si128(_mm_cmpeq_epi8(here, first_n), _mm_cmpeq_epi8(next, then_v));
    const auto hits = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(profiler, nvtx)));
    if (hits != 0) return p + std::countr_zero(hits);
  }
#endif
  for (; end - p > 1; ++p) {
    if ((p[0] == 'P' && p[1] == 'r') || (p[0] == 'N' && p[1] == 'V')) return p;
  }
  return end;
}

std::optional<Nanos> parse_milliseconds(const char*& cursor, const char* end) {
  constexpr std::int64_t kNanosPerMilli = 1'000'000;
  constexpr unsigned kFractionDigits = 6;
  std::int64_t whole = 0;
  if (!parse_number(cursor, end, whole)) return std::nullopt;
  if (whole > std::numeric_limits<Nanos>::max() / kNanosPerMilli - 1) return std::nullopt;
  std::int64_t fraction = 0;
  unsigned digits = 0;
  if (end - cursor > 1 && *cursor == '.' && is_digit(cursor[1])) {
    ++cursor;
    if (end - cursor >= 8) {
      const Digits found = leading_digits(cursor);
      if (found.count <= kFractionDigits) {
        cursor += found.count;
        digits = found.count;
        fraction = static_cast<std::int64_t>(found.value);
      }
    }
    for (; cursor < end && is_digit(*cursor); ++cursor) {
      if (digits == kFractionDigits) continue;
      fraction = fraction * 10 + (*cursor - '0');
      ++digits;
    }
  }
  fraction *= kPowersOfTen[kFractionDigits - digits];
  return whole * kNanosPerMilli + fraction;
}

JobLogReader::JobLogReader(Fd fd, std::string path, bool sparse)
    : fd_(std::move(fd)), sparse_(sparse), buffer_(kBufferBytes) {
  cursor_ = limit_ = buffer_.data();
  report_.path = std::move(path);
  report_.format = "job log";
}

Result<JobLogReader> JobLogReader::open(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(fmt::format("cannot read {}", path.string()));
  // Advice only; pipes and some file systems refuse it.
  static_cast<void>(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
  struct stat status {};
  constexpr std::int64_t kBlockBytes = 512;  // the unit of st_blocks
  const bool sparse =
      ::fstat(fd.get(), &status) == 0 && status.st_blocks * kBlockBytes < status.st_size;
  return JobLogReader(std::move(fd), path.string(), sparse);
}

// Moves unread bytes to the front and fills the rest of the buffer. False at the end of the file.
Result<bool> JobLogReader::refill() {
  if (at_end_) return false;
  const auto left = static_cast<std::size_t>(limit_ - cursor_);
  std::memmove(buffer_.data(), cursor_, left);
  cursor_ = buffer_.data();
  limit_ = cursor_ + left;
  while (static_cast<std::size_t>(limit_ - cursor_) < buffer_.size()) {
    skip_hole();
    const std::size_t used = static_cast<std::size_t>(limit_ - cursor_);
    if (used == buffer_.size()) break;
    const ssize_t got = ::read(fd_.get(), buffer_.data() + used, buffer_.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(fmt::format("cannot read {}", report_.path));
    if (got == 0) {
      at_end_ = true;
      break;
    }
    limit_ += got;
    report_.bytes += static_cast<std::uint64_t>(got);
  }
  return static_cast<std::size_t>(limit_ - cursor_) > left;
}

// After a file system crash, a log may have holes of gigabytes. One NUL, which ends a record,
// replaces a hole. The buffer has room for it.
void JobLogReader::skip_hole() {
  if (!sparse_) return;
  const off_t here = ::lseek(fd_.get(), 0, SEEK_CUR);
  off_t data = ::lseek(fd_.get(), here, SEEK_DATA);
  if (data < 0 && errno == ENXIO) data = ::lseek(fd_.get(), 0, SEEK_END);  // a hole up to the end
  if (data <= here) return;
  report_.bytes += static_cast<std::uint64_t>(data - here);
  buffer_[static_cast<std::size_t>(limit_ - buffer_.data())] = '\0';
  ++limit_;
}

Result<bool> JobLogReader::next(JobLogRecord& record) {
  for (;;) {
    cursor_ = find_record_mark(cursor_, limit_);
    // A record must be complete in the buffer; the last byte may start a mark.
    if (static_cast<std::size_t>(limit_ - cursor_) < kMaxRecordBytes && !at_end_) {
      if (cursor_ == limit_ && limit_ > buffer_.data()) --cursor_;
      ASSAY_TRY(const bool more, refill());
      if (more) continue;
    }
    if (limit_ - cursor_ < 2) return false;
    if (parse_here(record)) return true;
  }
}

// Parses a record at the cursor and moves after it, or by one byte on failure.
bool JobLogReader::parse_here(JobLogRecord& record) {
  const std::string_view rest(cursor_, static_cast<std::size_t>(std::min<std::ptrdiff_t>(
                                           limit_ - cursor_, kMaxRecordBytes)));
  const char* p = cursor_;
  const char* const end = rest.data() + rest.size();
  bool taken = false;
  // "Profiler Info: J" and "NVTX range p" identify the record even if it is truncated.
  const bool meant_job = rest.starts_with("Profiler Info: J");
  const bool meant_range = rest.starts_with("NVTX range p");
  if (meant_job) {
    taken = parse_job(p, end, record);
  } else if (meant_range) {
    taken =
        rest.starts_with("NVTX range pu") ? parse_push(p, end, record) : parse_pop(p, end, record);
  } else {
    taken = parse_window(p, end, record);
  }
  if (!taken) {
    if (meant_job || meant_range) judge_failure(p);
    ++cursor_;
    return false;
  }
  cursor_ = p;
  if (record.what == JobLogRecord::What::job) {
    if (record.end < record.begin) {
      ++report_.records;
      ++report_.backwards;
      return false;
    }
    judge_job(record);
  } else if (record.number != kNone) {
    ++report_.records;
  }
  return true;
}

void JobLogReader::judge_failure(const char* stop) {
  if (stop < limit_ && *stop == '.') ++stop;  // a number may be truncated after its point
  const bool broken_off = stop == limit_ || *stop == '\n' || *stop == '\r' || *stop == '\0';
  ++(broken_off ? report_.truncated : report_.malformed);
}

void JobLogReader::judge_job(const JobLogRecord& job) {
  ++report_.records;
  if (cursor_ < limit_ && *cursor_ != '\n' && *cursor_ != '\r') ++report_.interleaved;
  if (job.begin < last_begin_) ++report_.non_monotonic;
  last_begin_ = job.begin;
}

}  // namespace assay::timeline
