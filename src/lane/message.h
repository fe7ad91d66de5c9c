#pragma once

// What fork servers say: one JSON object a message, with descriptors beside it.

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

// The version that fork servers and lanes name in their messages ("v").
inline constexpr int kProtocol = 1;

struct ServerMessage {
  nlohmann::json json;
  std::vector<Fd> fds;
};

// Waits for the next message that long. nullopt: who talked is gone. An empty object: nothing has
// come in time. An error: it is of another version.
Result<std::optional<ServerMessage>> receive_message(int socket, std::chrono::milliseconds limit);

// A whole number of the object; 0 where there is none.
std::int64_t number_in(const nlohmann::json& object, const char* key);

}  // namespace assay
