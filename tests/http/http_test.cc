// The HTTP server, asked by a plain client.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "http/access.h"
#include "http/server.h"

namespace assay::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Fd connected(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

// All that the server sends until it closes the connection.
std::string ask(std::uint16_t port, const std::string& request) {
  const Fd socket = connected(port);
  EXPECT_TRUE(socket);
  (void)::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string reply;
  char buffer[65536];
  for (ssize_t got = 0; (got = ::read(socket.get(), buffer, sizeof buffer)) > 0;) {
    reply.append(buffer, static_cast<std::size_t>(got));
  }
  return reply;
}

std::string get(std::uint16_t port, const std::string& path, const std::string& more = "") {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + more +
                       "\r\n");
}

class AServer : public ::testing::Test {
 protected:
  AServer() {
    for (std::size_t i = 0; i < large_.size(); ++i) large_[i] = static_cast<char>(i * 31);
    options_.token = "secret";
    options_.open_paths = {"/", "/page.js"};
    std::promise<std::uint16_t> port;
    server_ = std::jthread([this, &port] {
      const Status status = serve(
          options_, [this](std::string_view path) { return handle(path); },
          [&](std::uint16_t got) { port.set_value(got); }, stop_);
      EXPECT_TRUE(status.has_value());
    });
    port_ = port.get_future().get();
  }
  ~AServer() override { stop_ = true; }
  AServer(const AServer&) = delete;
  AServer& operator=(const AServer&) = delete;

  Response handle(std::string_view path) const {
    if (path == "/") return {.type = "text/html", .body = "the page"};
    if (path == "/data") return {.body = "the data", .allow_origin = "https://ui.example"};
    if (path == "/large") return {.body = large_};
    if (path != "/file") return {.status = 404};
    Response response;
    response.file = *make_memory_file("trace");
    EXPECT_TRUE(write_all(response.file.get(), std::as_bytes(std::span(large_))));
    ::lseek(response.file.get(), 0, SEEK_SET);
    return response;
  }

  std::string large_ = std::string(300'000, '\0');
  Options options_;
  std::atomic<bool> stop_ = false;
  std::uint16_t port_ = 0;
  std::jthread server_;
};

TEST_F(AServer, SendsBodiesAndFiles) {
  for (const char* path : {"/secret/large", "/secret/file"}) {
    const std::string reply = get(port_, path);
    EXPECT_THAT(reply.substr(0, 400), StartsWith("HTTP/1.1 200 OK"));
    EXPECT_TRUE(reply.ends_with(large_)) << path;
  }
  const std::string head =
      ask(port_, "HEAD /secret/file HTTP/1.1\r\nHost: [::1]:1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 300000"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_THAT(get(port_, "/secret/../../etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(
      ask(port_, "POST /secret/data HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
      StartsWith("HTTP/1.1 405"));
}

TEST_F(AServer, AnswersSeveralRequestsOfOneConnection) {
  const std::string one = "GET /secret/data HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string reply = ask(port_, one + one + "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(reply.find("the data"), reply.rfind("the data"));
  EXPECT_TRUE(reply.ends_with("the page"));
}

TEST_F(AServer, AsksForTheToken) {
  EXPECT_TRUE(get(port_, "/").ends_with("the page"));
  for (const char* path : {"/data", "/secreT/data", "/secret", "//data", "/data?token=secret"}) {
    EXPECT_THAT(get(port_, path), StartsWith("HTTP/1.1 403")) << path;
  }
  EXPECT_TRUE(get(port_, "/secret/data?x=1").ends_with("the data"));
  const std::string welcome = get(port_, "/secret/");
  EXPECT_THAT(welcome, StartsWith("HTTP/1.1 303"));
  EXPECT_THAT(welcome, HasSubstr("Location: /\r\n"));
  const std::string cookie = cookie_name(port_) + "=secret";
  EXPECT_THAT(welcome,
              HasSubstr("Set-Cookie: " + cookie + "; Path=/; SameSite=Strict; HttpOnly\r\n"));
  EXPECT_TRUE(get(port_, "/data", "Cookie: a=b; " + cookie + "\r\n").ends_with("the data"));
  EXPECT_THAT(get(port_, "/data", "Cookie: " + cookie + "x\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(get(port_, "/data", "Cookie: ;;  ;=\r\n"), StartsWith("HTTP/1.1 403"));
}

TEST_F(AServer, TellsBrowsersWhatTheyMayDo) {
  for (const char* path : {"/", "/secret/data", "/unknown"}) {
    const std::string reply = get(port_, path);
    EXPECT_THAT(reply, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(reply, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(reply, HasSubstr("Cache-Control: no-store"));
  }
  EXPECT_THAT(get(port_, "/secret/data"),
              HasSubstr("Access-Control-Allow-Origin: https://ui.example\r\n"));
  EXPECT_THAT(get(port_, "/data"), Not(HasSubstr("Access-Control-Allow-Origin")));
}

TEST_F(AServer, RefusesOtherHosts) {
  EXPECT_THAT(ask(port_, "GET / HTTP/1.1\r\nHost: 127.evil.example\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask(port_, "GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 403"));
}

TEST_F(AServer, RefusesLongHeaders) {
  EXPECT_THAT(get(port_, "/", "X: " + std::string(12'000, 'x') + "\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get(port_, "/", "X: " + std::string(20'000, 'x') + "\r\n"),
              testing::AnyOf(StartsWith("HTTP/1.1 431"),
                             ""));  // empty: reset while the client was still sending
}

TEST_F(AServer, AnswersBesideManyIdleConnections) {
  std::vector<Fd> idle;
  while (idle.size() < 400) idle.push_back(connected(port_));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(get(port_, "/").ends_with("the page"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Access, TrustsIpLiteralsAndLocalhost) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "10.1.2.3:8000", "localhost", "localhost:1",
                           "[::1]", "[fe80::1]:443"}) {
    EXPECT_TRUE(is_trusted_host(host)) << host;
  }
  for (const char* host :
       {"", ":80", "evil.example", "127.evil.example", "127.0.0.1.evil.example:80",
        "localhost.evil.example", "evil.localhost", "127.0.0.1:80.evil.example", "[evil]", "[::1",
        "[::1].evil.example", "[::1]x", "127.1", "2130706433", "LOCALHOST x"}) {
    EXPECT_FALSE(is_trusted_host(host)) << host;
  }
}

TEST(Access, TheAddressOfAllAddressesIsOneThatOthersCanOpen) {
  for (const char* host : {"0.0.0.0", "::"}) {
    const std::string shown = address({.host = host, .token = "t"}, 8080);
    EXPECT_THAT(shown, Not(HasSubstr(host)));
    EXPECT_TRUE(is_trusted_host(shown.substr(7, shown.find(':', 7) - 7))) << shown;
  }
  EXPECT_EQ(address({.host = "::1", .token = "t"}, 80), "http://[::1]:80/t/");
}

TEST(Access, TokensNeedNoEscapes) {
  EXPECT_TRUE(is_token(new_token()));
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
  EXPECT_TRUE(is_token("a-secret.Of_9~"));
  for (const char* bad : {"", "a/b", "a b", "a;b", "a\nb", "\xc3\xa4"})
    EXPECT_FALSE(is_token(bad)) << bad;
  Options options;
  options.token = "a/b";
  const auto status = serve(options, {}, {}, std::atomic<bool>(true));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace assay::http
