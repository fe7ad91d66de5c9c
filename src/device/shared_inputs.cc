#include "device/shared_inputs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <new>
#include <vector>

#include "fill/checksum.h"
#include "fill/filled.h"

namespace assay {
namespace {

constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 40;  // address space, not memory
constexpr std::uint64_t kPage = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
std::uint64_t blocks_in(std::uint64_t bytes) { return (bytes + kFillBlock - 1) / kFillBlock; }

// The state of a block, stored in front of its tensor.
struct Block {
  std::atomic<std::uint64_t> sum;  // the block's part of the tensor's checksum
  std::atomic<std::uint64_t> of;   // the tensor's mark, once the block is written
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::uint64_t table_bytes(std::uint64_t bytes) {
  return whole_pages(blocks_in(bytes) * sizeof(Block));
}

// The finalizer of MurmurHash3: every input bit affects every output bit.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCDU;
  value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53U;
  return value ^ (value >> 33);
}

// A mapping of a part of the file.
class Part {
 public:
  Part(int fd, std::uint64_t offset, std::uint64_t bytes, int flags)
      : data_(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset))),
        bytes_(bytes) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    if (data_ != MAP_FAILED) ::munmap(data_, bytes_);
  }
  explicit operator bool() const { return data_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::byte* release() { return static_cast<std::byte*>(std::exchange(data_, MAP_FAILED)); }

 private:
  void* data_;
  std::uint64_t bytes_;
};

bool write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

// A tensor that is being written to the file.
struct Making {
  const FillRule& rule;
  const FillKey& key;
  DType dtype;
  std::uint64_t bytes;
  int fd;
  std::uint64_t offset;  // of the tensor in the file
  std::span<Block> blocks;
  std::uint64_t mark;  // identifies its blocks
  std::vector<std::byte> buffer;

  bool make(std::uint64_t block) {
    const std::uint64_t from = block * kFillBlock;
    const std::span<std::byte> out =
        std::span(buffer).first(std::min<std::uint64_t>(kFillBlock, bytes - from));
    const std::uint64_t sum = fill_block(rule, key, dtype, out, block);
    if (!write_at(fd, out, offset + from)) return false;
    blocks[block].sum.store(sum, std::memory_order_relaxed);
    blocks[block].of.store(mark, std::memory_order_release);
    return true;
  }
};

}  // namespace

struct SharedInputs::Header {
  std::atomic<std::uint64_t> renewed;                       // number of calls of renew()
  std::array<std::atomic<std::uint64_t>, kPlaces> content;  // mark of the tensor there; 0: none
  std::array<std::atomic<std::uint64_t>, kPlaces> next;     // the next block to make
};

SharedTensor::~SharedTensor() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

std::uint64_t SharedInputs::room_for(std::uint64_t bytes) {
  if (bytes > kFileBytes / 2) return 0;
  return table_bytes(bytes) + whole_pages(bytes);
}

Result<SharedInputs> SharedInputs::create() {
  static_assert(sizeof(Header) <= kFirst);
  ASSAY_TRY(Fd file, make_memory_file("assay-inputs"));
  if (::ftruncate(file.get(), static_cast<off_t>(kFileBytes)) != 0) {
    return errno_error("shared inputs");
  }
  ASSAY_TRY(SharedInputs inputs, open(std::move(file)));
  ::new (inputs.header_.data()) Header{};
  return inputs;
}

Result<SharedInputs> SharedInputs::open(Fd file) {
  ASSAY_TRY(Mapping header, Mapping::map(file.get(), kFirst, /*writable=*/true));
  return SharedInputs(std::move(file), std::move(header));
}

void SharedInputs::renew() {
  for (std::size_t i = 0; i < kPlaces; ++i) {
    header().content[i].store(0);
    header().next[i].store(0);
  }
  header().renewed.fetch_add(1);
}

std::uint64_t SharedInputs::held() const {
  struct stat facts {};
  constexpr std::uint64_t kStatBlock = 512;
  if (::fstat(file_.get(), &facts) != 0) return 0;
  return static_cast<std::uint64_t>(facts.st_blocks) * kStatBlock;
}

void SharedInputs::trim(std::uint64_t keep) {
  keep = whole_pages(std::max(keep, kFirst));
  if (keep >= kFileBytes) return;
  // After a failure the memory stays allocated.
  (void)::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(keep), static_cast<off_t>(kFileBytes - keep));
}

std::optional<SharedTensor> SharedInputs::make(const FillRule& rule, const FillKey& key,
                                               DType dtype, std::uint64_t count,
                                               std::uint64_t offset, std::size_t place) {
  const std::uint64_t bytes = count * size_of(dtype);
  const std::uint64_t room = room_for(bytes);
  if (room == 0 || room > kFileBytes || offset > kFileBytes - room || place >= kPlaces) {
    return std::nullopt;
  }
  // Everything that decides the bytes, their place, and the generation of the file.
  std::uint64_t content = header().renewed.load();
  for (const std::uint64_t part :
       {key.seed, key.case_id, static_cast<std::uint64_t>(key.tensor), count, offset,
        static_cast<std::uint64_t>(dtype), static_cast<std::uint64_t>(rule.kind),
        std::bit_cast<std::uint64_t>(rule.low), std::bit_cast<std::uint64_t>(rule.high),
        static_cast<std::uint64_t>(rule.extent)}) {
    content = mixed(content ^ part) + 1;
  }
  content = std::max<std::uint64_t>(content, 1);
  std::uint64_t there = 0;
  if (!header().content[place].compare_exchange_strong(there, content) && there != content) {
    return std::nullopt;
  }
  const Part table(fd(), offset, table_bytes(bytes), MAP_SHARED);
  if (!table) return std::nullopt;
  const std::uint64_t data = offset + table_bytes(bytes);
  const std::uint64_t blocks = blocks_in(bytes);
  Making making{rule,
                key,
                dtype,
                bytes,
                fd(),
                data,
                {reinterpret_cast<Block*>(table.data()), blocks},
                content,
                std::vector<std::byte>(std::min<std::uint64_t>(kFillBlock, bytes))};
  std::atomic<std::uint64_t>& next = header().next[place];
  for (std::uint64_t block = next.fetch_add(1); block < blocks; block = next.fetch_add(1)) {
    if (!making.make(block)) return std::nullopt;
  }
  std::uint64_t sum = 0;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    // Another lane is making the block, or has died while it did.
    const bool made = making.blocks[block].of.load(std::memory_order_acquire) == content;
    if (!made && !making.make(block)) return std::nullopt;
    sum += making.blocks[block].sum.load(std::memory_order_relaxed);
  }
  Part own(fd(), data, bytes, MAP_PRIVATE | MAP_NORESERVE);
  if (!own) return std::nullopt;
  // Maps all pages at once instead of one by one on first access.
  (void)::madvise(own.data(), bytes, MADV_POPULATE_READ);
  return SharedTensor({own.release(), bytes}, checksum_of_sum(sum, bytes));
}

}  // namespace assay
