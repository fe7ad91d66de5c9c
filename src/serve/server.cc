#include "serve/server.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "report/run_report.h"
#include "serve/source.h"

namespace assay {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;
using namespace std::chrono_literals;

// What the page shows at the moment: written by the thread that reads the run, read by the one that
// answers.
class Board {
 public:
  void put(Shown shown) {
    const std::scoped_lock lock(mutex_);
    shown_ = std::make_shared<const Shown>(std::move(shown));
  }
  std::shared_ptr<const Shown> shown() const {
    const std::scoped_lock lock(mutex_);
    return shown_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Shown> shown_ = std::make_shared<const Shown>(Shown{"{}", {}});
};

// Reads the run until it is told to stop.
void watch_run(const std::stop_token& stop, RunSource& source, Board& board) {
  constexpr auto kPause = 1s;
  constexpr auto kStep = 50ms;
  auto shown = std::chrono::steady_clock::time_point();
  while (!stop.stop_requested()) {
    const auto more = source.poll();
    const auto now = std::chrono::steady_clock::now();
    if (!more || !*more || now - shown > kPause) {
      nlohmann::json page = source.json();
      if (!more) page["trouble"] = more.error().message;
      if (more) page["reading"] = *more;
      auto parts = source.parts();
      if (!parts) page["trouble"] = parts.error().message;
      board.put({json_text(page), parts ? std::move(*parts) : std::vector<CaseList::Part>()});
      shown = now;
    }
    if (more && *more) continue;
    for (auto waited = 0ms; waited < kPause && !stop.stop_requested(); waited += kStep) {
      std::this_thread::sleep_for(kStep);
    }
  }
}

// One client, which may ask several times. Lives as long as its handlers do; one that stalls is
// dropped.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(tcp::socket socket, const ServeOptions& options, const Board& board)
      : stream_(std::move(socket)), options_(options), board_(board) {}

  void read() {
    request_ = {};
    stream_.expires_after(30s);
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  void answer() {
    const bool head = request_.method() == http::verb::head;
    Reply reply{405, "text/plain; charset=utf-8", "GET and HEAD only\n"};
    if (head || request_.method() == http::verb::get) {
      reply = reply_to(std::string(request_.target()), std::string(request_[http::field::host]),
                       options_, *board_.shown());
    }
    response_ = {};
    response_.version(request_.version());
    response_.keep_alive(request_.keep_alive());
    response_.result(static_cast<unsigned>(reply.status));
    response_.set(http::field::content_type, reply.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.content_length(reply.body.size());
    if (!head) response_.body() = std::move(reply.body);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (error) return;
                        if (self->response_.keep_alive()) return self->read();
                        // A browser that has hung up needs no end.
                        (void)self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{16384};
  http::request<http::empty_body> request_;
  http::response<http::string_body> response_;
  const ServeOptions& options_;
  const Board& board_;
};

void accept_clients(tcp::acceptor& acceptor, const ServeOptions& options, const Board& board) {
  acceptor.async_accept([&](const beast::error_code& error, tcp::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (!error) std::make_shared<Client>(std::move(socket), options, board)->read();
    accept_clients(acceptor, options, board);
  });
}

}  // namespace

Status serve_run(const ServeOptions& options, const std::function<void(std::uint16_t)>& listening,
                 const std::atomic<bool>& stop) {
  ASSAY_TRY(const std::unique_ptr<RunSource> source, open_source(options.where));
  try {
    Board board;
    boost::asio::io_context context;
    const auto address = boost::asio::ip::make_address(options.host);
    tcp::acceptor acceptor(context, tcp::endpoint(address, options.port));
    boost::asio::signal_set signals(context, SIGINT, SIGTERM);
    signals.async_wait([&](const beast::error_code&, int) { context.stop(); });
    accept_clients(acceptor, options, board);
    const std::jthread reader(
        [&](const std::stop_token& enough) { watch_run(enough, *source, board); });
    listening(acceptor.local_endpoint().port());
    while (!stop && !context.stopped()) context.run_for(250ms);
    return {};
  } catch (const std::exception& error) {
    return fail(fmt::format("cannot serve on {}:{}: {}", options.host, options.port, error.what()));
  }
}

}  // namespace assay
