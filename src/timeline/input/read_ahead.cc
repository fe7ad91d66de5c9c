#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "timeline/input/byte_source.h"

namespace assay::timeline {
namespace {

class ReadAhead : public ByteSource {
 public:
  explicit ReadAhead(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), thread_([this](const std::stop_token& stop) { fill(stop); }) {}

  bool packed() const override { return source_->packed(); }

  Result<std::size_t> read(std::span<char> into) override {
    if (taken_ == block_.size()) {
      taken_ = 0;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
      block_.clear();
      if (ready_.empty()) {
        ASSAY_CHECK(std::exchange(status_, {}));
        return 0;
      }
      block_ = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      changed_.notify_all();
    }
    const std::size_t count = std::min(into.size(), block_.size() - taken_);
    std::memcpy(into.data(), block_.data() + taken_, count);
    taken_ += count;
    return count;
  }

 private:
  static constexpr std::size_t kBlock = 1U << 19U;
  static constexpr std::size_t kBlocks = 3;

  void fill(const std::stop_token& stop) {
    bool more = true;
    while (more) {
      std::vector<char> block(kBlock);
      std::size_t size = 0;
      Status status;
      while (more && size < kBlock) {
        const auto got = source_->read({block.data() + size, kBlock - size});
        if (!got) status = tl::unexpected(got.error());
        more = got && *got > 0;
        if (more) size += *got;
      }
      block.resize(size);
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return ready_.size() < kBlocks; })) return;
      if (size > 0) ready_.push_back(std::move(block));
      ended_ = !more;
      status_ = std::move(status);
      lock.unlock();
      changed_.notify_all();
    }
  }

  std::unique_ptr<ByteSource> source_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::vector<char>> ready_;
  bool ended_ = false;
  Status status_;

  // Used by the reader only.
  std::vector<char> block_;
  std::size_t taken_ = 0;

  std::jthread thread_;  // last: it stops before the other members are destroyed
};

}  // namespace

std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> source) {
  return std::make_unique<ReadAhead>(std::move(source));
}

}  // namespace assay::timeline
