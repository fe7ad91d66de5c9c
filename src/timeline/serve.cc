#include "timeline/serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <csignal>
#include <memory>

#include "base/fd.h"

namespace assay::timeline {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

// One request of one client. Lives as long as its handlers do; a client that stalls is dropped.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(tcp::socket socket, std::filesystem::path path)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), path_(std::move(path)) {}

  void start() {
    limit_time();
    asio::async_read_until(socket_, asio::dynamic_buffer(request_, kMaxRequest), "\r\n\r\n",
                           [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                             if (!error) self->answer();
                           });
  }

 private:
  static constexpr std::size_t kMaxRequest = 16384;

  void limit_time() {
    timer_.expires_after(30s);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      asio::error_code ignored;
      if (!error) (void)self->socket_.close(ignored);
    });
  }

  void answer() {
    const bool get = request_.starts_with("GET ");
    const std::size_t begin = request_.find(' ') + 1;
    const std::string target = request_.substr(begin, request_.find(' ', begin) - begin);
    struct stat status {};
    if ((!get && !request_.starts_with("HEAD ")) || target != "/trace") {
      head_ = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    } else {
      file_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file_ || ::fstat(file_.get(), &status) != 0) {
        head_ = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        file_.reset();
      } else {
        head_ = fmt::format(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nContent-Type: application/octet-stream\r\n"
            "Cache-Control: no-cache\r\nAccess-Control-Allow-Origin: https://ui.perfetto.dev\r\n"
            "Connection: close\r\n\r\n",
            status.st_size);
        if (!get) file_.reset();
      }
    }
    asio::async_write(socket_, asio::buffer(head_),
                      [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                        if (!error) self->send_more();
                      });
  }

  void send_more() {
    limit_time();
    const ssize_t got = file_ ? ::read(file_.get(), chunk_.data(), chunk_.size()) : 0;
    if (got <= 0) {
      timer_.cancel();
      asio::error_code ignored;
      (void)socket_.shutdown(tcp::socket::shutdown_both, ignored);
      return;
    }
    asio::async_write(socket_, asio::buffer(chunk_.data(), static_cast<std::size_t>(got)),
                      [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                        if (!error) self->send_more();
                      });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  std::filesystem::path path_;
  std::string request_;
  std::string head_;
  Fd file_;
  std::array<char, 1 << 16> chunk_{};
};

void accept_clients(tcp::acceptor& acceptor, const std::filesystem::path& path) {
  acceptor.async_accept([&](const asio::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) std::make_shared<Client>(std::move(socket), path)->start();
    accept_clients(acceptor, path);
  });
}

}  // namespace

std::string perfetto_address(std::uint16_t port) {
  // The UI shows groups of tracks closed; this command opens those of a pipeline:
  // [{"id":"dev.perfetto.ExpandTracksByRegex","args":["^(pipeline|machine )"]}]
  return fmt::format(
      "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{}/trace&startupCommands="
      "%5B%7B%22id%22%3A%22dev.perfetto.ExpandTracksByRegex%22%2C"
      "%22args%22%3A%5B%22%5E(pipeline%7Cmachine%20)%22%5D%7D%5D",
      port);
}

Status serve_trace(const std::filesystem::path& path, std::uint16_t port,
                   const std::function<void(std::uint16_t)>& listening,
                   const std::atomic<bool>& stop) {
  if (::access(path.c_str(), R_OK) != 0)
    return usage_error(fmt::format("cannot read {}", path.string()));
  try {
    asio::io_context context;
    tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), port));
    listening(acceptor.local_endpoint().port());
    accept_clients(acceptor, path);
    asio::signal_set signals(context, SIGINT, SIGTERM);
    signals.async_wait([&](const asio::error_code&, int) { context.stop(); });
    while (!stop && !context.stopped()) context.run_for(250ms);
    return {};
  } catch (const std::exception& error) {
    return fail(fmt::format("cannot serve on 127.0.0.1:{}: {}", port, error.what()));
  }
}

}  // namespace assay::timeline
