#pragma once

// Reads plain, gzip and zstd files; the first bytes decide, not the file's name.

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
  // Returns the number of bytes read, 0 at the end. An error for damaged or truncated compressed
  // data.
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  virtual bool packed() const { return false; }
};

Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path);

// Reads up to 2 MiB ahead in a thread of its own: decompresses while the reader parses. Returns an
// error after the bytes before it.
std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> source);

// The first `bytes` bytes, or fewer where the file is shorter.
Result<std::string> read_head(const std::filesystem::path& path, std::size_t bytes);

// The file itself, or a decompressed copy in a nameless file of the temporary folder, which goes
// with its descriptor. A file that grows more than a trace can is an error.
Result<Fd> open_unpacked(const std::filesystem::path& path);

}  // namespace assay::timeline
