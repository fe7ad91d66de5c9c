#pragma once

// Compresses records for a store, with a dictionary that all records share.
//
// A packed record is a Zstandard frame (RFC 8878) that names the dictionary. Older stores hold
// plain records; the frame's magic number tells them apart.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace assay {

class RecordPacker {
 public:
  RecordPacker();
  ~RecordPacker();
  RecordPacker(RecordPacker&&) noexcept;
  RecordPacker& operator=(RecordPacker&&) noexcept;

  // The packed record; empty for an empty record.
  std::vector<std::uint8_t> pack(std::span<const std::uint8_t> record);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

class RecordUnpacker {
 public:
  RecordUnpacker();
  ~RecordUnpacker();
  RecordUnpacker(RecordUnpacker&&) noexcept;
  RecordUnpacker& operator=(RecordUnpacker&&) noexcept;

  // Unpacks a record, packed or plain. An error for damaged data, an unknown dictionary, and
  // records above 64 MiB.
  Status unpack(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& record);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace assay
