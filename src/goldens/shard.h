#pragma once

// Shards: files of recorded cases. A shard is a sequence of frames. A frame holds some cases,
// compressed together, and a checksum. A shard only grows, so a killed writer leaves whole frames
// and at most one torn frame at the end, which its checksum shows.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "case/canonical.h"

struct ZSTD_CCtx_s;

namespace assay {

// The format of shards, index and header. Readers refuse any other.
inline constexpr std::uint32_t kGoldensVersion = 1;

using GoldenBytes = std::vector<std::uint8_t>;

struct GoldenCase {
  CaseId id = 0;
  GoldenBytes bytes;
};

// A frame in a shard.
struct FramePlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;     // with its head
  std::uint64_t sequence = 0;  // later recordings have larger numbers
  std::vector<CaseId> cases;
};

// Appends frames to shards of its own in a folder, and begins a new shard when one is large. No
// other process writes to these files.
class ShardWriter {
 public:
  explicit ShardWriter(std::filesystem::path folder);
  ~ShardWriter();
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) noexcept;

  // Writes one frame. After it returns, the cases survive the end of the process.
  Status append(std::span<const GoldenCase> cases);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::filesystem::path folder_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  Fd file_;
  std::uint64_t size_ = 0;
};

// The sound frames of a shard, up to the first damaged one. `sound_bytes` gets their size.
Result<std::vector<FramePlace>> read_places(const std::filesystem::path& shard,
                                            std::uint64_t& sound_bytes);
// The cases of the frame. An error if its checksum or its structure is wrong.
Result<std::vector<GoldenCase>> read_frame(const std::filesystem::path& shard, std::uint64_t offset,
                                           std::uint64_t bytes);

}  // namespace assay
