#include "goldens/shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "fill/fill.h"

namespace assay {
namespace {

constexpr std::array<char, 8> kMagic{'a', 's', 'a', 'y', 'g', 'o', 'l', 'd'};
// A static server hands out whole files, and a reader keeps each one once.
constexpr std::uint64_t kShardBytes = std::uint64_t{8} << 20;
// Level 9 takes three times as long and saves 1 to 3%.
constexpr int kLevel = 3;
constexpr std::uint64_t kMostFrameBytes = std::uint64_t{3} << 30;
constexpr std::uint64_t kMostCases = 1 << 16;

struct FrameHead {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kGoldensVersion;
  std::uint32_t cases = 0;
  std::uint64_t sequence = 0;
  std::uint64_t packed = 0;    // bytes after the head and the list of cases
  std::uint64_t raw = 0;       // bytes when unpacked
  std::uint64_t checksum = 0;  // of all other bytes of the frame
};
static_assert(sizeof(FrameHead) == 48);

struct CasePlace {
  CaseId id = 0;
  std::uint64_t bytes = 0;  // in the unpacked data, after the earlier cases
};

std::span<const std::byte> bytes_of(const auto& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint64_t checksum_of(FrameHead head, std::span<const std::byte> rest) {
  head.checksum = checksum(rest);
  return checksum(bytes_of(head));
}

std::uint64_t now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

// The head and the rest of a frame at `offset`, checked; nullopt at the end of the file.
struct Frame {
  FrameHead head;
  std::vector<std::byte> rest;
  std::vector<CasePlace> places() const {
    std::vector<CasePlace> found(head.cases);
    std::memcpy(found.data(), rest.data(), found.size() * sizeof(CasePlace));
    return found;
  }
};

Result<Frame> frame_at(int file, const std::filesystem::path& shard, std::uint64_t offset) {
  const auto damaged = [&] {
    return fail(fmt::format("{} is damaged at byte {}", shard.string(), offset));
  };
  const auto read = [&](std::span<std::byte> to, std::uint64_t from) {
    std::size_t got = 0;
    while (got < to.size()) {
      const ssize_t some =
          ::pread(file, to.data() + got, to.size() - got, static_cast<off_t>(from + got));
      if (some == 0 || (some < 0 && errno != EINTR)) return false;
      got += static_cast<std::size_t>(std::max<ssize_t>(some, 0));
    }
    return true;
  };
  Frame frame;
  if (!read(std::as_writable_bytes(std::span(&frame.head, 1)), offset)) return damaged();
  const FrameHead& head = frame.head;
  if (head.magic != kMagic) return damaged();
  if (head.version != kGoldensVersion) {
    return fail(fmt::format("{} has format {}, and this assay reads format {}", shard.string(),
                            head.version, kGoldensVersion));
  }
  if (head.cases > kMostCases || head.packed > kMostFrameBytes || head.raw > kMostFrameBytes) {
    return damaged();
  }
  const std::uint64_t rest = head.cases * sizeof(CasePlace) + head.packed;
  const off_t end = ::lseek(file, 0, SEEK_END);
  if (end < 0 || offset + sizeof head + rest > static_cast<std::uint64_t>(end)) return damaged();
  frame.rest.resize(rest);
  if (!read(frame.rest, offset + sizeof head)) return damaged();
  if (checksum_of(head, frame.rest) != head.checksum) return damaged();
  return frame;
}

Result<Fd> open_shard(const std::filesystem::path& shard) {
  Fd file(::open(shard.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error(fmt::format("cannot read {}", shard.string()));
  return file;
}

}  // namespace

void ShardWriter::Free::operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
ShardWriter::ShardWriter(std::filesystem::path folder)
    : folder_(std::move(folder)), context_(ZSTD_createCCtx()) {}
ShardWriter::~ShardWriter() = default;
ShardWriter::ShardWriter(ShardWriter&&) noexcept = default;
ShardWriter& ShardWriter::operator=(ShardWriter&&) noexcept = default;

Status ShardWriter::append(std::span<const GoldenCase> cases) {
  FrameHead head;
  head.cases = static_cast<std::uint32_t>(cases.size());
  head.sequence = now();
  for (const GoldenCase& one : cases) head.raw += one.bytes.size();
  if (head.raw > kMostFrameBytes) return fail("a batch of goldens is too large for a frame");
  GoldenBytes raw;
  raw.reserve(head.raw);
  const std::size_t list = cases.size() * sizeof(CasePlace);
  std::vector<std::byte> rest(list + ZSTD_compressBound(head.raw));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CasePlace place{cases[i].id, cases[i].bytes.size()};
    std::memcpy(rest.data() + i * sizeof place, &place, sizeof place);
    raw.insert(raw.end(), cases[i].bytes.begin(), cases[i].bytes.end());
  }
  const std::size_t packed = ZSTD_compressCCtx(context_.get(), rest.data() + list,
                                               rest.size() - list, raw.data(), raw.size(), kLevel);
  if (ZSTD_isError(packed) != 0) {
    return fail(fmt::format("cannot compress goldens: {}", ZSTD_getErrorName(packed)));
  }
  head.packed = packed;
  rest.resize(list + packed);
  head.checksum = checksum_of(head, rest);
  if (!file_ || size_ > kShardBytes) {
    const auto name = fmt::format("goldens-{:016x}-{}.shard", head.sequence, ::getpid());
    ASSAY_TRY(file_, open_output(folder_ / name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC));
    size_ = 0;
  }
  ASSAY_CHECK(write_all(file_.get(), bytes_of(head)));
  ASSAY_CHECK(write_all(file_.get(), rest));
  size_ += sizeof head + rest.size();
  return {};
}

Result<std::vector<FramePlace>> read_places(const std::filesystem::path& shard,
                                            std::uint64_t& sound_bytes) {
  ASSAY_TRY(const Fd file, open_shard(shard));
  std::vector<FramePlace> found;
  sound_bytes = 0;
  while (true) {
    const auto frame = frame_at(file.get(), shard, sound_bytes);
    if (!frame) return found;
    FramePlace& place = found.emplace_back();
    place.offset = sound_bytes;
    place.bytes = sizeof(FrameHead) + frame->rest.size();
    place.sequence = frame->head.sequence;
    for (const CasePlace& one : frame->places()) place.cases.push_back(one.id);
    sound_bytes += place.bytes;
  }
}

Result<std::vector<GoldenCase>> read_frame(const std::filesystem::path& shard, std::uint64_t offset,
                                           std::uint64_t bytes) {
  ASSAY_TRY(const Fd file, open_shard(shard));
  ASSAY_TRY(const Frame frame, frame_at(file.get(), shard, offset));
  const auto damaged = [&] {
    return fail(fmt::format("{} is damaged at byte {}", shard.string(), offset));
  };
  if (sizeof frame.head + frame.rest.size() != bytes) return damaged();
  const std::size_t list = frame.head.cases * sizeof(CasePlace);
  GoldenBytes raw(frame.head.raw);
  const std::size_t got =
      ZSTD_decompress(raw.data(), raw.size(), frame.rest.data() + list, frame.head.packed);
  if (ZSTD_isError(got) != 0 || got != raw.size()) return damaged();
  std::vector<GoldenCase> cases;
  std::uint64_t from = 0;
  for (const CasePlace& place : frame.places()) {
    if (place.bytes > raw.size() - from) return damaged();
    const auto* const begin = raw.data() + from;
    cases.push_back({place.id, GoldenBytes(begin, begin + place.bytes)});
    from += place.bytes;
  }
  return cases;
}

}  // namespace assay
