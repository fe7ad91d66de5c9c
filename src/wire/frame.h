#pragma once

// Messages on a stream socket: a length of four bytes in host order (both ends are on one machine),
// then a FlatBuffer of the schema in messages.fbs, verified before it is read.

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace assay::wire {

// Version of messages between processes, which are all of one build.
inline constexpr std::uint32_t kMessageVersion = 3;
// Version of records, which runs keep.
inline constexpr std::uint32_t kVersion = 2;
struct Record;
// A frame holds no tensor data; a longer one comes from a broken peer.
inline constexpr std::size_t kMaxFrame = std::size_t{256} << 20;

using Bytes = std::vector<std::uint8_t>;

// Appends a frame with this message to `out`.
void append_frame(Bytes& out, std::span<const std::uint8_t> message);

// Sends a message. An error if it is longer than kMaxFrame or the peer is gone.
assay::Status send_frame(int socket, std::span<const std::uint8_t> message);

// Waits for a message; nullopt if the peer has closed the connection.
Result<std::optional<Bytes>> receive_frame(int socket);

// Receives messages from a socket without blocking.
class FrameReader {
 public:
  // Reads the bytes that have arrived. False if the peer has closed the connection.
  Result<bool> feed(int socket);
  // The next complete message; nullopt if there is none yet.
  Result<std::optional<Bytes>> next();

 private:
  Bytes buffer_;
  std::size_t begin_ = 0;
};

// The root of a message. Fails if the bytes are damaged or have another version.
template <typename Root>
Result<const Root*> open(std::span<const std::uint8_t> bytes) {
  flatbuffers::Verifier::Options options;
  options.max_tables = 10'000'000;
  options.check_nested_flatbuffers = false;  // the reader of the inner message verifies it
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), options);
  if (!verifier.VerifyBuffer<Root>(nullptr)) return fail("a message is damaged");
  const Root* root = flatbuffers::GetRoot<Root>(bytes.data());
  constexpr std::uint32_t kExpected = std::is_same_v<Root, Record> ? kVersion : kMessageVersion;
  if (root->version() != kExpected) {
    return fail("a message has version " + std::to_string(root->version()) + ", this assay needs " +
                std::to_string(kExpected) + "; use one build of assay for all its processes");
  }
  return root;
}

inline std::span<const std::uint8_t> bytes_of(const flatbuffers::FlatBufferBuilder& builder) {
  return {builder.GetBufferPointer(), builder.GetSize()};
}

}  // namespace assay::wire
