#include "store/record_packer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <cstring>

#include "store/record_dictionary.h"

namespace assay {
namespace {

// Level 1 compresses a record to a twelfth of its size. Level 9 saves another sixth of that, at a
// fifth of the speed.
constexpr int kLevel = 1;
constexpr std::uint64_t kMostRecordBytes = std::uint64_t{64} << 20;

// Made once per process: making a dictionary takes as long as packing some hundred records.
const ZSTD_CDict& packing_dictionary() {
  static ZSTD_CDict* const made =
      ZSTD_createCDict(record_dictionary().data(), record_dictionary().size(), kLevel);
  return *made;
}

const ZSTD_DDict& unpacking_dictionary() {
  static ZSTD_DDict* const made =
      ZSTD_createDDict(record_dictionary().data(), record_dictionary().size());
  return *made;
}

bool is_packed(std::span<const std::uint8_t> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER;
}

}  // namespace

void RecordPacker::Free::operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
RecordPacker::RecordPacker() : context_(ZSTD_createCCtx()) {}
RecordPacker::~RecordPacker() = default;
RecordPacker::RecordPacker(RecordPacker&&) noexcept = default;
RecordPacker& RecordPacker::operator=(RecordPacker&&) noexcept = default;

std::vector<std::uint8_t> RecordPacker::pack(std::span<const std::uint8_t> record) {
  if (record.empty()) return {};
  std::vector<std::uint8_t> packed(ZSTD_compressBound(record.size()));
  const std::size_t size =
      ZSTD_compress_usingCDict(context_.get(), packed.data(), packed.size(), record.data(),
                               record.size(), &packing_dictionary());
  // Compression into a large enough buffer fails only if memory runs out. Unpacking accepts a plain
  // record.
  if (ZSTD_isError(size) != 0) return {record.begin(), record.end()};
  packed.resize(size);
  return packed;
}

void RecordUnpacker::Free::operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
RecordUnpacker::RecordUnpacker() : context_(ZSTD_createDCtx()) {}
RecordUnpacker::~RecordUnpacker() = default;
RecordUnpacker::RecordUnpacker(RecordUnpacker&&) noexcept = default;
RecordUnpacker& RecordUnpacker::operator=(RecordUnpacker&&) noexcept = default;

Status RecordUnpacker::unpack(std::span<const std::uint8_t> packed,
                              std::vector<std::uint8_t>& record) {
  if (!is_packed(packed)) {
    record.assign(packed.begin(), packed.end());
    return {};
  }
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size > kMostRecordBytes)
    return fail("a stored record is damaged: its size is missing or above 64 MiB");
  record.resize(size);
  const std::size_t read =
      ZSTD_decompress_usingDDict(context_.get(), record.data(), record.size(), packed.data(),
                                 packed.size(), &unpacking_dictionary());
  if (ZSTD_isError(read) != 0 || read != size) {
    return fail(fmt::format("a stored record is damaged: {}",
                            ZSTD_isError(read) != 0 ? ZSTD_getErrorName(read) : "it ends early"));
  }
  return {};
}

}  // namespace assay
