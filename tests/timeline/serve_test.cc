// The loopback server, asked by a plain client.

#include "timeline/serve.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "support.h"

namespace assay::timeline {
namespace {

std::string ask(std::uint16_t port, const std::string& request) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return "";
  EXPECT_EQ(::write(socket.get(), request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string reply;
  char buffer[65536];
  for (ssize_t got = 0; (got = ::read(socket.get(), buffer, sizeof buffer)) > 0;) {
    reply.append(buffer, static_cast<std::size_t>(got));
  }
  return reply;
}

TEST(Serve, HandsOutTheTraceAndNothingElse) {
  const test::TempFolder folder;
  std::string trace(300'000, '\0');
  for (std::size_t i = 0; i < trace.size(); ++i) trace[i] = static_cast<char>(i * 31);
  const auto path = test::write(folder / "trace", trace);
  std::atomic<bool> stop = false;
  std::promise<std::uint16_t> port;
  std::thread server([&] {
    EXPECT_TRUE(serve_trace(
        path, 0, [&](std::uint16_t got) { port.set_value(got); }, stop));
  });
  const std::uint16_t at = port.get_future().get();
  const std::string reply = ask(at, "GET /trace HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(reply, testing::StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(reply.substr(0, 400),
              testing::HasSubstr("Access-Control-Allow-Origin: https://ui.perfetto.dev"));
  EXPECT_TRUE(reply.ends_with(trace));
  EXPECT_THAT(ask(at, "GET /../../etc/passwd HTTP/1.1\r\n\r\n"),
              testing::StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask(at, "POST /trace HTTP/1.1\r\n\r\n"), testing::StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask(at, "HEAD /trace HTTP/1.1\r\n\r\n"),
              testing::HasSubstr("Content-Length: 300000"));
  stop = true;
  server.join();
}

TEST(Serve, AMissingFileIsAUsageError) {
  const std::atomic<bool> stop = true;
  const auto status = serve_trace(
      "/nowhere/trace", 0, [](std::uint16_t) {}, stop);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace assay::timeline
