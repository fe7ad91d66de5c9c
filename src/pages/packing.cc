#include "pages/packing.h"

#include <zlib.h>

#include <cstdint>

namespace assay::pages {
namespace {

constexpr int kLevel = 6;
constexpr int kGzip = 16;  // added to the window bits: writes a gzip header
constexpr int kMemory = 8;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

Result<std::string> gzipped(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, MAX_WBITS + kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return fail("zlib: out of memory");
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) return fail("zlib cannot compress a part of the page");
  return packed;
}

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::uint32_t byte =
          i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0;
      three = three << 8U | byte;
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool there = i + k <= bytes.size();
      text += there ? kDigits[three >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace assay::pages
