#pragma once

// The file that `assay timeline record` writes, one a process. Little-endian.
//
//   header  "ASSAYREC", u32 version, u32 pid, 64 bytes of host name
//   block   u32 'BLK1', u32 bytes, u64 xxh64 of the payload, payload
//   payload records: u8 what, u16 bytes of the rest, the rest
//
// A block is written by one write() and names every text it uses itself, so that a process that
// dies, or a block that is damaged, costs no more than that block. Times are nanoseconds since
// 1970.
//
// Ranges and steps of the host have ids, which grow with time, and name their parent. A slice of a
// GPU names the call that launched it (CUPTI's correlation id), and launches say which range made
// which calls. The reader joins them, in whatever order they come: a range's GPU interval goes from
// its first kernel's start to its last one's end.

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
inline constexpr std::size_t kMaxLaunches = 8192;  // of one record
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

// A slice as the recorder knows it: its lane is a thread, or a stream of a device.
struct RecordedSlice {
  std::string_view name;
  Kind kind = Kind::host;
  bool gpu = false;
  bool job = false;  // a pipeline job, not a kernel or call
  std::int32_t device = kNone;
  std::uint64_t lane = 0;
  Nanos begin = 0;
  Nanos end = 0;
  std::int32_t micro_batch = kNone;
  std::uint64_t id = 0;  // of a range; of a GPU slice: its correlation
  std::uint64_t parent = 0;
};

// Builds one block after another. Not safe for threads by itself.
class RecordingEncoder {
 public:
  static std::string header(std::uint32_t pid, std::string_view host);

  void add(const RecordedSlice& slice);
  void add_step(const Step& step, std::uint64_t id);
  // The calls that the range or step `id` made. At most kMaxLaunches.
  void add_launches(std::uint64_t id, std::span<const std::uint32_t> correlations);
  void add_note(std::string_view text);
  void add_lost(std::uint64_t records);  // what the recorder had no room for
  // The process's place in its job; kNone where it does not know.
  void add_identity(std::int32_t rank, std::int32_t world_size);
  // A collective of a process that hangs: its place among those that the process has launched.
  void add_collective(std::int64_t sequence, Nanos launched, bool ended, std::string_view name);
  bool full() const { return payload_.size() > recording::kMaxBlockBytes / 2; }
  bool empty() const { return payload_.empty(); }
  // The block as it goes to the file; the encoder is empty after it.
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
  std::string scratch_;  // the record that is being made
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> names_;
};

}  // namespace assay::timeline
