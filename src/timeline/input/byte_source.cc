#include "timeline/input/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace assay::timeline {
namespace {

constexpr std::size_t kBlock = 1U << 18U;

Result<std::size_t> read_some(int fd, std::span<char> into) {
  ssize_t got = 0;
  do {
    got = ::read(fd, into.data(), into.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno_error("cannot read");
  return static_cast<std::size_t>(got);
}

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(Fd fd) : fd_(std::move(fd)) {}
  Result<std::size_t> read(std::span<char> into) override { return read_some(fd_.get(), into); }

 private:
  Fd fd_;
};

// Buffers compressed bytes for both formats.
class PackedSource : public ByteSource {
 public:
  bool packed() const override { return true; }

 protected:
  explicit PackedSource(Fd fd) : fd_(std::move(fd)), input_(kBlock) {}
  // False at the end of the file.
  Result<bool> fetch() {
    ASSAY_TRY(size_, read_some(fd_.get(), input_));
    at_ = 0;
    return size_ > 0;
  }
  std::size_t left() const { return size_ - at_; }

  Fd fd_;
  std::vector<char> input_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
};

class GzipSource : public PackedSource {
 public:
  explicit GzipSource(Fd fd) : PackedSource(std::move(fd)) {
    constexpr int kGzip = 16;
    good_ = ::inflateInit2(&stream_, MAX_WBITS + kGzip) == Z_OK;
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { ::inflateEnd(&stream_); }

  Result<std::size_t> read(std::span<char> into) override {
    if (!good_) return fail("the gzip data is damaged");
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1U << 30U));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (left() == 0) {
        ASSAY_TRY(const bool more, fetch());
        if (!more) {
          if (between_members_) return 0;
          return fail("the gzip data is truncated");
        }
      }
      stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + at_);
      stream_.avail_in = static_cast<uInt>(left());
      // Bytes after a member that do not start another one are padding.
      if (between_members_ && members_ > 0 && static_cast<unsigned char>(input_[at_]) != 0x1f) {
        at_ = size_ = 0;
        return 0;
      }
      between_members_ = false;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      at_ = size_ - stream_.avail_in;
      if (code == Z_STREAM_END) {  // another member may follow
        between_members_ = true;
        ++members_;
        good_ = ::inflateReset(&stream_) == Z_OK;
        if (!good_) break;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        good_ = false;
        break;
      }
    }
    const std::size_t got = room - stream_.avail_out;
    if (got == 0 && !good_) return fail("the gzip data is damaged");
    return got;
  }

 private:
  z_stream stream_{};
  bool good_ = false;
  bool between_members_ = true;
  int members_ = 0;
};

class ZstdSource : public PackedSource {
 public:
  explicit ZstdSource(Fd fd) : PackedSource(std::move(fd)), stream_(::ZSTD_createDStream()) {
    // A hostile file could request a window of gigabytes.
    constexpr int kMaxWindowLog = 27;
    ::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  Result<std::size_t> read(std::span<char> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos == 0) {
      if (left() == 0) {
        ASSAY_TRY(const bool more, fetch());
        if (!more) {
          if (frame_done_) return 0;
          return fail("the zstd data is truncated");
        }
      }
      ZSTD_inBuffer in{input_.data(), size_, at_};
      const std::size_t code = ::ZSTD_decompressStream(stream_.get(), &out, &in);
      at_ = in.pos;
      if (::ZSTD_isError(code) != 0) {
        return fail(fmt::format("the zstd data is damaged: {}", ::ZSTD_getErrorName(code)));
      }
      frame_done_ = code == 0;
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool frame_done_ = true;
};

enum class Packing { none, gzip, zstd };

Result<Packing> packing_of(int fd) {
  std::array<char, 4> magic{};
  const ssize_t got = ::pread(fd, magic.data(), magic.size(), 0);
  if (got < 0 && errno != ESPIPE) return errno_error("cannot read");
  const std::string_view head(magic.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (head.starts_with("\x1f\x8b")) return Packing::gzip;
  if (head == "\x28\xb5\x2f\xfd") return Packing::zstd;
  return Packing::none;
}

Result<Fd> open_to_read(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return usage_error(fmt::format("cannot read {}", path.string()));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || S_ISDIR(status.st_mode)) {
    return usage_error(fmt::format("cannot read {}: it is a folder", path.string()));
  }
  return fd;
}

// Of what a file may unpack to. Traces pack to a thirtieth at best.
constexpr std::uint64_t kMostGrowth = 100;
constexpr std::uint64_t kLeastUnpacked = std::uint64_t{64} << 20U;

// A packed file, and an error where it grows more than a trace can.
class BoundedSource : public ByteSource {
 public:
  BoundedSource(std::unique_ptr<ByteSource> source, std::uint64_t packed_bytes)
      : source_(std::move(source)), left_(kLeastUnpacked + kMostGrowth * packed_bytes) {}
  bool packed() const override { return true; }

  Result<std::size_t> read(std::span<char> into) override {
    ASSAY_TRY(const std::size_t got, source_->read(into));
    if (got > left_) {
      return fail(fmt::format(
          "unpacked it is more than {} times as large; unpack it yourself if you trust it",
          kMostGrowth));
    }
    left_ -= got;
    return got;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::uint64_t left_;
};

std::unique_ptr<ByteSource> source_of(Fd fd, Packing packing) {
  if (packing == Packing::none) return std::make_unique<PlainSource>(std::move(fd));
  struct stat status {};
  const bool file = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  std::unique_ptr<ByteSource> source;
  if (packing == Packing::gzip) {
    source = std::make_unique<GzipSource>(std::move(fd));
  } else {
    source = std::make_unique<ZstdSource>(std::move(fd));
  }
  if (!file) return source;  // nothing is known of a pipe
  return std::make_unique<BoundedSource>(std::move(source),
                                         static_cast<std::uint64_t>(status.st_size));
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path) {
  ASSAY_TRY(Fd fd, open_to_read(path));
  ASSAY_TRY(const Packing packing, packing_of(fd.get()));
  return source_of(std::move(fd), packing);
}

Result<std::string> read_head(const std::filesystem::path& path, std::size_t bytes) {
  ASSAY_TRY(const auto source, open_bytes(path));
  std::string head;
  std::size_t done = 0;
  while (done < bytes) {
    // Memory grows with the file, not with what is asked for.
    if (done == head.size()) head.resize(std::min(bytes, std::max<std::size_t>(4096, 2 * done)));
    const auto got = source->read({head.data() + done, head.size() - done});
    if (!got && done == 0) return usage_error(path.string() + ": " + got.error().message);
    if (!got || *got == 0) break;
    done += *got;
  }
  head.resize(done);
  return head;
}

Result<Fd> open_unpacked(const std::filesystem::path& path) {
  ASSAY_TRY(Fd fd, open_to_read(path));
  ASSAY_TRY(const Packing packing, packing_of(fd.get()));
  if (packing == Packing::none) return fd;
  const auto source = source_of(std::move(fd), packing);
  ASSAY_TRY(Fd copy, make_nameless_file());
  std::vector<char> block(kBlock);
  for (;;) {
    const auto got = source->read(block);
    if (!got) return usage_error(path.string() + ": " + got.error().message);
    if (*got == 0) return copy;
    const auto written = write_all(copy.get(), std::as_bytes(std::span(block.data(), *got)));
    if (!written) return usage_error(path.string() + ": " + written.error().message);
  }
}

}  // namespace assay::timeline
