#pragma once

// The bytes of a file as they were before somebody packed them: plain, gzip and zstd, told from
// their first bytes and not from the file's name.

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace assay::timeline {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // 0 at the end. An error, when what is packed is damaged or breaks off.
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  virtual bool packed() const { return false; }
};

Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path);

// The first `bytes` bytes, or fewer where the file is shorter.
Result<std::string> read_head(const std::filesystem::path& path, std::size_t bytes);

// A copy of the file with its bytes unpacked.
struct TemporaryCopy {
  Fd fd;
  std::filesystem::path path;  // empty: there was nothing to unpack, and fd is the file itself
};
// Its taker removes the path as soon as it can.
Result<TemporaryCopy> unpack(const std::filesystem::path& path);

// For readers that need a file: the file itself, or an unpacked copy without a name.
Result<Fd> open_unpacked(const std::filesystem::path& path);

}  // namespace assay::timeline
