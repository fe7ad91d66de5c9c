#include "wire/frame.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace assay::wire {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

Result<std::size_t> checked_length(const std::uint8_t* bytes) {
  std::uint32_t length = 0;
  std::memcpy(&length, bytes, kLengthBytes);
  if (length > kMaxFrame)
    return fail("a message of " + std::to_string(length) + " bytes is too long");
  return length;
}

}  // namespace

void append_frame(Bytes& out, std::span<const std::uint8_t> message) {
  const auto length = static_cast<std::uint32_t>(message.size());
  const std::size_t begin = out.size();
  out.resize(begin + kLengthBytes + message.size());
  std::memcpy(out.data() + begin, &length, kLengthBytes);
  std::copy(message.begin(), message.end(),
            out.begin() + static_cast<std::ptrdiff_t>(begin + kLengthBytes));
}

assay::Status send_frame(int socket, std::span<const std::uint8_t> message) {
  if (message.size() > kMaxFrame) {
    return fail("a message of " + std::to_string(message.size()) + " bytes is too long");
  }
  Bytes frame;
  append_frame(frame, message);  // one write for both, so that the peer wakes once
  return send_all(socket, std::as_bytes(std::span(frame)));
}

Result<std::optional<Bytes>> receive_frame(int socket) {
  std::array<std::uint8_t, kLengthBytes> header{};
  ASSAY_TRY(const bool open, read_exactly(socket, std::as_writable_bytes(std::span(header))));
  if (!open) return std::optional<Bytes>();
  ASSAY_TRY(const std::size_t length, checked_length(header.data()));
  Bytes message(length);
  ASSAY_TRY(const bool whole, read_exactly(socket, std::as_writable_bytes(std::span(message))));
  if (!whole && length > 0) return fail("the peer closed in the middle of a message");
  return std::optional<Bytes>(std::move(message));
}

Result<bool> FrameReader::feed(int socket) {
  std::array<std::uint8_t, 1 << 16> chunk;
  if (begin_ > 0) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  while (true) {
    const ssize_t got = ::recv(socket, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got > 0) {
      buffer_.insert(buffer_.end(), chunk.begin(), chunk.begin() + got);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    if (errno == ECONNRESET) return false;
    return errno_error("recv");
  }
}

Result<std::optional<Bytes>> FrameReader::next() {
  if (buffer_.size() - begin_ < kLengthBytes) return std::optional<Bytes>();
  ASSAY_TRY(const std::size_t length, checked_length(buffer_.data() + begin_));
  if (buffer_.size() - begin_ < kLengthBytes + length) return std::optional<Bytes>();
  const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_ + kLengthBytes);
  Bytes message(first, first + static_cast<std::ptrdiff_t>(length));
  begin_ += kLengthBytes + length;
  return std::optional<Bytes>(std::move(message));
}

}  // namespace assay::wire
