#pragma once

// Messages on a stream socket: a length of four bytes (host order; both ends are on one machine),
// then a FlatBuffer of the schema in messages.fbs, verified before anyone looks at it.

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace assay::wire {

// Of messages between processes, which are all of one build.
inline constexpr std::uint32_t kMessageVersion = 3;
// Of records, which runs keep.
inline constexpr std::uint32_t kVersion = 2;
struct Record;
// A frame holds descriptions, never tensor data; more than this is a broken peer.
inline constexpr std::size_t kMaxFrame = std::size_t{256} << 20;

using Bytes = std::vector<std::uint8_t>;

// Appends a whole frame to `out`.
void append_frame(Bytes& out, std::span<const std::uint8_t> message);

assay::Status send_frame(int socket, std::span<const std::uint8_t> message);

// Blocks for one whole frame; nullopt when the peer has closed.
Result<std::optional<Bytes>> receive_frame(int socket);

// Collects frames from a socket that must not block: feed() reads what is there, next() gives the
// next whole frame, if any.
class FrameReader {
 public:
  // False: the peer has closed.
  Result<bool> feed(int socket);
  Result<std::optional<Bytes>> next();

 private:
  Bytes buffer_;
  std::size_t begin_ = 0;
};

// The root of a message, or an error when the bytes are not a valid message of our version.
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
    return fail("a message has version " + std::to_string(root->version()) +
                ", this assay speaks " + std::to_string(kExpected) +
                "; use one build of assay for all its processes");
  }
  return root;
}

inline std::span<const std::uint8_t> bytes_of(const flatbuffers::FlatBufferBuilder& builder) {
  return {builder.GetBufferPointer(), builder.GetSize()};
}

}  // namespace assay::wire
