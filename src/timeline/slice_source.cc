#include "timeline/slice_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <queue>
#include <string>
#include <type_traits>

namespace assay::timeline {
namespace {

static_assert(std::is_trivially_copyable_v<Slice>, "slices are spilled as bytes");

constexpr std::size_t kReadSlices = (32U << 10U) / sizeof(Slice);

bool begins_before(const Slice& a, const Slice& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
}

Result<Fd> make_spill_file(const std::filesystem::path& folder) {
  std::string name = (folder / "assay-sort-XXXXXX").string();
  Fd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return errno_error(fmt::format("cannot create a temporary file in {}", folder.string()));
  ::unlink(name.c_str());
  return fd;
}

// The slices of one sorted run: those in the buffer, then those in the spill file.
class RunSource : public SliceSource {
 public:
  explicit RunSource(std::vector<Slice> slices) : buffer_(std::move(slices)) {}
  RunSource(std::shared_ptr<Fd> fd, std::uint64_t first, std::uint64_t count)
      : fd_(std::move(fd)), offset_(first), left_(count) {}

  Result<bool> next(Slice& slice) override {
    if (at_ == buffer_.size()) {
      if (left_ == 0) return false;
      ASSAY_CHECK(refill());
    }
    slice = buffer_[at_++];
    return true;
  }

 private:
  Status refill() {
    buffer_.resize(std::min<std::uint64_t>(left_, kReadSlices));
    const auto bytes = std::as_writable_bytes(std::span(buffer_));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = ::pread(fd_->get(), bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(offset_ * sizeof(Slice) + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return errno_error("cannot read the temporary file for sorting");
      done += static_cast<std::size_t>(got);
    }
    offset_ += buffer_.size();
    left_ -= buffer_.size();
    at_ = 0;
    return {};
  }

  std::shared_ptr<Fd> fd_;
  std::uint64_t offset_ = 0;  // in slices
  std::uint64_t left_ = 0;    // in the file
  std::vector<Slice> buffer_;
  std::size_t at_ = 0;
};

// The next slice of a stream.
struct Head {
  Slice slice;
  std::size_t stream;
};
struct LaterHead {
  bool operator()(const Head& a, const Head& b) const {
    if (a.slice.begin != b.slice.begin) return a.slice.begin > b.slice.begin;
    if (a.slice.end != b.slice.end) return a.slice.end < b.slice.end;
    return a.stream > b.stream;
  }
};
using Heads = std::priority_queue<Head, std::vector<Head>, LaterHead>;

struct Open {
  Slice slice;
  std::uint64_t order;
};
// Orders by end; at equal ends, the slice that began last ends first.
struct EndsLater {
  bool operator()(const Open& a, const Open& b) const {
    return a.slice.end != b.slice.end ? a.slice.end > b.slice.end : a.order < b.order;
  }
};

class Merger {
 public:
  Merger(std::span<const std::unique_ptr<TraceWriter>> writers, std::size_t tracks)
      : writers_(writers), open_on_(tracks) {
    counts_.overlapping.resize(tracks);
  }

  void take(const Slice& slice) {
    close_until(slice.begin);
    if (open_on_[slice.track] == kMaxOpen) {
      ++counts_.overlapping[slice.track];
      return;
    }
    ++open_on_[slice.track];
    ++counts_.slices;
    for (const auto& writer : writers_) writer->begin_slice(slice);
    open_.push({slice, counts_.slices});
  }

  MergeCounts finish() {
    close_until(std::numeric_limits<Nanos>::max());
    return std::move(counts_);
  }

 private:
  void close_until(Nanos time) {
    while (!open_.empty() && open_.top().slice.end <= time) {
      const Slice slice = open_.top().slice;
      open_.pop();
      --open_on_[slice.track];
      for (const auto& writer : writers_) writer->end_slice(slice);
    }
  }

  std::span<const std::unique_ptr<TraceWriter>> writers_;
  std::vector<std::uint32_t> open_on_;
  std::priority_queue<Open, std::vector<Open>, EndsLater> open_;
  MergeCounts counts_;
};

}  // namespace

Result<bool> MemorySource::next(Slice& slice) {
  if (slices_.empty()) return false;
  slice = slices_.front();
  slices_ = slices_.subspan(1);
  return true;
}

Status SliceSorter::spill() {
  if (fd_ == nullptr) {
    ASSAY_TRY(Fd fd, make_spill_file(folder_));
    fd_ = std::make_shared<Fd>(std::move(fd));
  }
  if (!std::ranges::is_sorted(chunk_, begins_before)) {
    std::ranges::stable_sort(chunk_, begins_before);
  }
  ASSAY_CHECK(write_all(fd_->get(), std::as_bytes(std::span(chunk_))));
  if (runs_.empty() || begins_before(chunk_.front(), last_)) {
    runs_.push_back({runs_.empty() ? 0 : runs_.back().first + runs_.back().count, 0});
  }
  runs_.back().count += chunk_.size();
  last_ = chunk_.back();
  chunk_.clear();
  return {};
}

Status SliceSorter::finish(std::vector<std::unique_ptr<SliceSource>>& sources) {
  if (runs_.empty() && chunk_.size() <= kSmall) {
    std::ranges::stable_sort(chunk_, begins_before);
    chunk_.shrink_to_fit();
    sources.push_back(std::make_unique<RunSource>(std::move(chunk_)));
  } else if (!chunk_.empty()) {
    ASSAY_CHECK(spill());
  }
  for (const Run& run : runs_) {
    sources.push_back(std::make_unique<RunSource>(fd_, run.first, run.count));
  }
  return {};
}

Result<MergeCounts> merge_slices(std::span<const std::unique_ptr<SliceSource>> sources,
                                 std::span<const std::unique_ptr<TraceWriter>> writers,
                                 std::size_t tracks) {
  Heads heads;
  Merger merger(writers, tracks);
  const auto push = [&](std::size_t i) -> Status {
    Head head{{}, i};
    ASSAY_TRY(const bool more, sources[i]->next(head.slice));
    if (more) heads.push(head);
    return {};
  };
  for (std::size_t i = 0; i < sources.size(); ++i) ASSAY_CHECK(push(i));
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    merger.take(head.slice);
    ASSAY_CHECK(push(head.stream));
  }
  return merger.finish();
}

}  // namespace assay::timeline
