#include "lane/message.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/json.h"

namespace assay {

Result<std::optional<ServerMessage>> receive_message(int socket, std::chrono::milliseconds limit) {
  pollfd wait{socket, POLLIN, 0};
  int got = -1;
  do {
    got = ::poll(&wait, 1, static_cast<int>(limit.count()));
  } while (got < 0 && errno == EINTR);
  if (got == 0) return std::optional(ServerMessage{nlohmann::json::object(), {}});
  std::array<char, 4096> buffer;
  auto received = receive_with_fds(socket, std::as_writable_bytes(std::span(buffer)));
  if (!received || received->bytes == 0) return std::optional<ServerMessage>();
  ServerMessage message{parse_json({buffer.data(), received->bytes}), std::move(received->fds)};
  if (!message.json.is_object() || number_in(message.json, "v") != kProtocol) {
    return fail("the fork server speaks another protocol");
  }
  return std::optional(std::move(message));
}

std::int64_t number_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace assay
