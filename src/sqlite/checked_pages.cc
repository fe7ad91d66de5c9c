#include "sqlite/checked_pages.h"

#include <sqlite3.h>

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace assay {
namespace {

// In front of the file of the layer below, in memory that SQLite has reserved for both.
struct CheckedFile {
  sqlite3_file base;
  bool checks;  // the header reserves room for checksums
};

sqlite3_file* below(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<CheckedFile*>(file) + 1);
}

// Whether so many bytes at `at` are a page; the header is read by itself, too.
bool is_page(int bytes) { return bytes >= 512 && (bytes & (bytes - 1)) == 0; }

// The 20th byte of the header tells how many bytes each page reserves.
void look_at_header(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 at) {
  constexpr int kHeaderBytes = 100;
  constexpr std::size_t kReserved = 20;
  if (at != 0 || bytes < kHeaderBytes) return;
  reinterpret_cast<CheckedFile*>(file)->checks =
      static_cast<const unsigned char*>(data)[kReserved] == kReservedBytes;
}

// `at` makes a page that stands at another's position differ.
XXH64_hash_t sum_of(const void* page, int bytes, sqlite3_int64 at) {
  return XXH3_64bits_withSeed(page, static_cast<std::size_t>(bytes - kReservedBytes),
                              static_cast<XXH64_hash_t>(at));
}

char* place_of_sum(void* page, int bytes) {
  return static_cast<char*>(page) + (bytes - kReservedBytes);
}

int read_page(sqlite3_file* file, void* data, int bytes, sqlite3_int64 at) {
  const int code = below(file)->pMethods->xRead(below(file), data, bytes, at);
  if (code != SQLITE_OK) return code;
  look_at_header(file, data, bytes, at);
  if (!reinterpret_cast<CheckedFile*>(file)->checks || !is_page(bytes)) return code;
  const XXH64_hash_t sum = sum_of(data, bytes, at);
  static_assert(sizeof sum == kReservedBytes);
  return std::memcmp(&sum, place_of_sum(data, bytes), sizeof sum) == 0 ? SQLITE_OK
                                                                       : SQLITE_IOERR_DATA;
}

int write_page(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 at) {
  look_at_header(file, data, bytes, at);
  if (reinterpret_cast<CheckedFile*>(file)->checks && is_page(bytes)) {
    // SQLite does not use the reserved bytes of its buffer, which is not constant in truth.
    const XXH64_hash_t sum = sum_of(data, bytes, at);
    std::memcpy(place_of_sum(const_cast<void*>(data), bytes), &sum, sizeof sum);
  }
  return below(file)->pMethods->xWrite(below(file), data, bytes, at);
}

template <auto Method, typename... Values>
int pass(sqlite3_file* file, Values... values) {
  return (below(file)->pMethods->*Method)(below(file), values...);
}

constexpr sqlite3_io_methods kMethods{
    .iVersion = 1,
    .xClose = pass<&sqlite3_io_methods::xClose>,
    .xRead = read_page,
    .xWrite = write_page,
    .xTruncate = pass<&sqlite3_io_methods::xTruncate>,
    .xSync = pass<&sqlite3_io_methods::xSync>,
    .xFileSize = pass<&sqlite3_io_methods::xFileSize>,
    .xLock = pass<&sqlite3_io_methods::xLock>,
    .xUnlock = pass<&sqlite3_io_methods::xUnlock>,
    .xCheckReservedLock = pass<&sqlite3_io_methods::xCheckReservedLock>,
    .xFileControl = pass<&sqlite3_io_methods::xFileControl>,
    .xSectorSize = pass<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = pass<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_file(sqlite3_vfs* layer, const char* name, sqlite3_file* file, int flags, int* given) {
  auto* base = static_cast<sqlite3_vfs*>(layer->pAppData);
  // Journals and logs have checksums of SQLite.
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return base->xOpen(base, name, file, flags, given);
  *reinterpret_cast<CheckedFile*>(file) = {};
  const int code = base->xOpen(base, name, below(file), flags, given);
  // SQLite closes a file that has methods, also after an error.
  if (below(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return code;
}

// A copy of the layer `base` whose files are checked. SQLite keeps the address.
sqlite3_vfs layer_over(const char* base, const char* name) {
  sqlite3_vfs* found = sqlite3_vfs_find(base);
  sqlite3_vfs made = *found;
  made.szOsFile += static_cast<int>(sizeof(CheckedFile));
  made.zName = name;
  made.pAppData = found;
  made.xOpen = open_file;
  made.pNext = nullptr;
  return made;
}

const char* registered(sqlite3_vfs& layer) {
  sqlite3_vfs_register(&layer, /*makeDflt=*/0);
  return layer.zName;
}

}  // namespace

const char* checked_pages() {
  static sqlite3_vfs layer = layer_over(nullptr, "assay-pages");
  static const char* const name = registered(layer);
  return name;
}

const char* checked_pages_unlocked() {
  static sqlite3_vfs layer = layer_over("unix-none", "assay-pages-unlocked");
  static const char* const name = registered(layer);
  return name;
}

}  // namespace assay
