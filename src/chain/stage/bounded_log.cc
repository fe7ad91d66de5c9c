#include "chain/stage/bounded_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/atomic_file.h"

namespace assay::chain::stage {

Result<BoundedLog> BoundedLog::create(const std::string& path, std::uint64_t head,
                                      std::size_t tail) {
  ASSAY_CHECK(make_folder(std::filesystem::path(path).parent_path()));
  BoundedLog log;
  ASSAY_TRY(log.file_, open_output(path, O_WRONLY | O_TRUNC));
  log.path_ = path;
  log.head_ = head;
  log.tail_ = tail;
  return log;
}

Status BoundedLog::write(std::string_view bytes) {
  const Status written = write_all(file_.get(), std::as_bytes(std::span(bytes)));
  if (!written) return errno_error("cannot write " + path_);
  return {};
}

Status BoundedLog::append(std::string_view bytes) {
  const std::uint64_t room = seen_ < head_ ? head_ - seen_ : 0;
  seen_ += bytes.size();
  const std::string_view first = bytes.substr(0, room);
  if (!first.empty()) ASSAY_CHECK(write(first));
  bytes.remove_prefix(first.size());
  beyond_ += bytes.size();
  end_ += bytes;
  if (end_.size() > 2 * tail_) end_.erase(0, end_.size() - tail_);
  return {};
}

Status BoundedLog::close() {
  if (!file_) return {};
  const std::string_view kept =
      std::string_view(end_).substr(end_.size() - std::min(end_.size(), tail_));
  Status status;
  if (beyond_ > kept.size()) {
    status = write(fmt::format("\n[assay: {} bytes omitted here]\n", beyond_ - kept.size()));
  }
  if (status && !kept.empty()) status = write(kept);
  file_.reset();
  return status;
}

}  // namespace assay::chain::stage
