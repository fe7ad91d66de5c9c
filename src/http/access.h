#pragma once

// Which requests the server answers.

#include <cstdint>
#include <string>
#include <string_view>

#include "http/server.h"

namespace assay::http {

// Whether a Host header is an IP literal or `localhost`, with or without a port. A web site that
// rebinds its own name to this machine's address sends that name.
bool is_trusted_host(std::string_view header);

// Whether the token fits into a path and a cookie unescaped.
bool is_token(std::string_view token);

std::string cookie_name(std::uint16_t port);

struct Access {
  bool granted = false;
  std::string_view path;     // without token and query
  bool sets_cookie = false;  // the request was GET /TOKEN/
};
// Decides about a request by its target and its Cookie header.
Access access_to(std::string_view target, std::string_view cookies, const Options& options,
                 std::uint16_t port);

}  // namespace assay::http
