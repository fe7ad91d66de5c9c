#pragma once

// The file format of `assay timeline record`, one file for each process. Little-endian.
//
//   header  "ASSAYREC", u32 version, u32 pid, 64 bytes of host name
//   block   u32 'BLK1', u32 bytes, u64 xxh64 of the payload, payload
//   payload records: u8 what, u16 bytes of data, data
//
// A block is written by one write() and defines all texts that it uses, so a crash or damage loses
// only single blocks. Times are nanoseconds since 1970.
//
// Ranges and steps of the host have increasing ids and refer to their parent. A GPU slice refers to
// the call that launched it (CUPTI's correlation id). A launches record lists the calls of a range.
// The reader joins them in any order: the GPU interval of a range lasts from the start of its first
// kernel to the end of its last one.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

namespace recording {
inline constexpr std::string_view kMagic = "ASSAYREC";
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kHostBytes = 64;
inline constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + kHostBytes;
inline constexpr std::uint32_t kBlockMagic = 0x314b4c42;  // "BLK1"
inline constexpr std::size_t kBlockHeaderBytes = 16;
inline constexpr std::size_t kMaxBlockBytes = 1U << 20U;
inline constexpr std::size_t kMaxLaunches = 8192;  // in one record
enum class What : std::uint8_t {
  name = 1,
  slice = 2,
  step = 3,
  lost = 4,
  launches = 5,
  note = 6,
  identity = 7,
  collective = 8
};
std::uint64_t checksum(std::string_view payload);  // xxh64
}  // namespace recording

struct RecordedSlice {
  std::string_view name;
  Kind kind = Kind::host;
  bool gpu = false;
  bool job = false;  // a pipeline job, not a kernel or call
  std::int32_t device = kNone;
  std::uint64_t lane = 0;  // a thread, or a stream of the device
  Nanos begin = 0;
  Nanos end = 0;
  std::int32_t micro_batch = kNone;
  std::uint64_t id = 0;  // of a range, or the correlation of a GPU slice
  std::uint64_t parent = 0;
};

// Builds blocks. Not thread-safe.
class RecordingEncoder {
 public:
  static std::string header(std::uint32_t pid, std::string_view host);

  void add(const RecordedSlice& slice);
  void add_step(const Step& step, std::uint64_t id);
  // The launching calls within the range or step `id`; at most kMaxLaunches.
  void add_launches(std::uint64_t id, std::span<const std::uint32_t> correlations);
  void add_note(std::string_view text);
  void add_lost(std::uint64_t records);  // records dropped for lack of room
  // kNone for an unknown number.
  void add_identity(std::int32_t rank, std::int32_t world_size);
  // A collective of a hung process; `sequence` counts the collectives launched by the process.
  void add_collective(std::int64_t sequence, Nanos launched, bool ended, std::string_view name);
  bool full() const { return payload_.size() > recording::kMaxBlockBytes / 2; }
  bool empty() const { return payload_.empty(); }
  // The block for the file; empties the encoder.
  std::string take_block();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::uint32_t name_id(std::string_view name);

  std::string payload_;
  std::string scratch_;  // the record under construction
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> names_;
};

}  // namespace assay::timeline
