#pragma once

// A small HTTP/1.1 server for pages and files that one person reads, on Boost.Beast. It protects
// them from other users of the machine and from web sites in the reader's browser; it has no TLS.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace assay::http {

struct Response {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  Fd file{};                   // sent in place of `body` where open; its offset is 0
  std::string allow_origin{};  // the web site whose scripts may read the response; empty: none
};

// Answers a path such as "/data.json", without its query. Runs on the server's thread.
using Handler = std::function<Response(std::string_view path)>;

// Every path needs the token, but for `open_paths`, also below a folder (/run/NAME/page.js). A
// client proves that it knows the token in one of two ways:
//   /TOKEN/path   the path with the token before it; GET /TOKEN/ sets the cookie and redirects to /
//   /path         with the cookie (SameSite=Strict, HttpOnly)
struct Options {
  std::string host = "127.0.0.1";  // an address of this machine
  std::uint16_t port = 0;          // 0: any free one
  std::string token{};             // letters, digits and "-._~"
  std::vector<std::string> open_paths{};
};

// 128 random bits as hexadecimal digits.
std::string new_token();

// The address of `path` for a browser, with the token. Of 0.0.0.0 and ::, an address of this
// machine that other machines can reach.
std::string address(const Options& options, std::uint16_t port, std::string_view path = "");

// Serves GET and HEAD until `stop` is true (read four times a second), SIGINT or SIGTERM. Calls
// `listening` with the port. A usage error for a malformed token; an engine error when the address
// cannot be listened on.
Status serve(const Options& options, const Handler& handler,
             const std::function<void(std::uint16_t)>& listening, const std::atomic<bool>& stop);

}  // namespace assay::http
