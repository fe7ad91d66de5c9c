#pragma once

// Messages of fork servers: one JSON object each, with descriptors.

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

// The protocol version in every message ("v").
inline constexpr int kProtocol = 1;

struct ServerMessage {
  nlohmann::json json;
  std::vector<Fd> fds;
};

// Waits up to `limit` for the next message. nullopt if the peer has closed; an empty object if
// nothing came in time; an error for another protocol version.
Result<std::optional<ServerMessage>> receive_message(int socket, std::chrono::milliseconds limit);

// The integer under the key; 0 if there is none.
std::int64_t number_in(const nlohmann::json& object, const char* key);

}  // namespace assay
