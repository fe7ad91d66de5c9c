#include "http/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>

namespace assay::http {
namespace {

// Takes the same time for every `b` of the length of `a`.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

bool has_cookie(std::string_view cookies, const std::string& name, std::string_view value) {
  const std::string prefix = name + "=";
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view cookie = cookies.substr(0, end);
    cookie.remove_prefix(std::min(cookie.find_first_not_of(' '), cookie.size()));
    if (cookie.starts_with(prefix) && same(value, cookie.substr(prefix.size()))) return true;
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return false;
}

}  // namespace

bool is_trusted_host(std::string_view header) {
  std::string_view host = header.substr(0, header.find(':'));
  if (header.starts_with('[')) {
    const std::size_t end = header.find(']');
    if (end == std::string_view::npos) return false;
    host = header.substr(1, end - 1);
    header.remove_prefix(end + 1);
  } else {
    header.remove_prefix(host.size());
  }
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!header.empty() &&
      (header[0] != ':' || !std::all_of(header.begin() + 1, header.end(), is_digit)))
    return false;
  boost::system::error_code error;
  (void)boost::asio::ip::make_address(std::string(host), error);
  return !error || host == "localhost";
}

bool is_token(std::string_view token) {
  const auto unescaped = [](unsigned char c) {
    return (c < 128 && std::isalnum(c) != 0) ||
           std::string_view("-._~").find(char(c)) != std::string_view::npos;
  };
  return !token.empty() && std::ranges::all_of(token, unescaped);
}

std::string cookie_name(std::uint16_t port) {
  // Browsers send a cookie to every port of a host.
  return fmt::format("assay-{}", port);
}

Access access_to(std::string_view target, std::string_view cookies, const Options& options,
                 std::uint16_t port) {
  const std::string_view path = target.substr(0, target.find('?'));
  const std::size_t second = path.find('/', 1);
  if (path.starts_with('/') && second != std::string_view::npos &&
      same(options.token, path.substr(1, second - 1))) {
    const std::string_view inner = path.substr(second);
    return {true, inner, inner == "/" && !options.open_paths.empty()};
  }
  const auto& open = options.open_paths;
  const std::string_view name = path.substr(std::min(path.rfind('/'), path.size()));
  const bool granted = std::ranges::find(open, name == "/" ? path : name) != open.end() ||
                       has_cookie(cookies, cookie_name(port), options.token);
  return {granted, path, false};
}

}  // namespace assay::http
