#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "serve/page_files.h"
#include "serve/server.h"

namespace assay {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTypes{
    {{".html", "text/html; charset=utf-8"},
     {".css", "text/css; charset=utf-8"},
     {".js", "text/javascript; charset=utf-8"}}};

// Takes as long whatever it is compared with.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

std::string_view token_in(std::string_view question) {
  constexpr std::string_view kToken = "token=";
  while (!question.empty()) {
    const std::size_t end = question.find('&');
    const std::string_view part = question.substr(0, end);
    if (part.starts_with(kToken)) return part.substr(kToken.size());
    if (end == std::string_view::npos) break;
    question.remove_prefix(end + 1);
  }
  return {};
}

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// The number of "/cases/12".
std::optional<std::size_t> part_in(std::string_view path) {
  constexpr std::string_view kCases = "/cases/";
  if (!path.starts_with(kCases)) return std::nullopt;
  path.remove_prefix(kCases.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (error != std::errc() || end != path.data() + path.size()) return std::nullopt;
  return number;
}

Reply refused(int status, const std::string& why) {
  return {status, "text/plain; charset=utf-8", why + "\n"};
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "localhost" || host == "[::1]" || host == "::1";
}

Reply reply_to(const std::string& target, const std::string& host_header,
               const ServeOptions& options, const Shown& shown) {
  const std::size_t question = target.find('?');
  const std::string_view path = std::string_view(target).substr(0, question);
  const std::string_view asked = question == std::string::npos
                                     ? std::string_view()
                                     : std::string_view(target).substr(question + 1);
  if (is_loopback(options.host) && !is_loopback(without_port(host_header))) {
    return refused(403, "this page is for this machine");
  }
  const std::optional<std::size_t> part = part_in(path);
  const bool is_data = path == "/data.json" || part;
  const bool is_page = path == "/" || path == "/index.html";
  if (!options.token.empty() && (is_data || is_page) && !same(token_in(asked), options.token)) {
    return refused(403, "the address needs its token, as `assay serve` has printed it");
  }
  if (part && *part >= shown.parts.size()) return refused(404, "there is no such part");
  if (part) return {200, "application/gzip", *shown.parts[*part]};
  if (is_data) return {200, "application/json", shown.data};
  const std::string_view name = is_page ? "index.html" : path.substr(path.starts_with('/') ? 1 : 0);
  for (const PageFile& file : page_files()) {
    if (file.name != name) continue;
    for (const auto& [ending, type] : kTypes) {
      if (!name.ends_with(ending)) continue;
      return {200, std::string(type), std::string(file.bytes.begin(), file.bytes.end())};
    }
  }
  return refused(404, "nothing is here");
}

}  // namespace assay
