#include "http/server.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <list>
#include <memory>
#include <optional>
#include <random>

#include "http/access.h"

namespace assay::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr std::size_t kMaxConnections = 128;
constexpr std::size_t kOtherDescriptors = 24;  // of the rest of the process
constexpr std::uint32_t kMaxHeader = 16'384;   // bytes
constexpr auto kHeaderTime = 10s;    // from one response to the next request's last header line
constexpr auto kChunkTime = 30s;     // for a client to take one chunk of a response
constexpr auto kAcceptPause = 50ms;  // after accept() failed

// A connection needs two descriptors: its socket, and the file that it sends.
std::size_t connection_limit() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return kMaxConnections;
  const std::size_t all = std::max<std::size_t>(descriptors.rlim_cur, kOtherDescriptors + 2);
  return std::min(kMaxConnections, (all - kOtherDescriptors) / 2);
}

class Connection;

class Server {
 public:
  Server(const Options& options, const Handler& handler)
      : options_(options),
        handler_(handler),
        acceptor_(context_, tcp::endpoint(asio::ip::make_address(options.host), options.port)),
        pause_(context_),
        port_(acceptor_.local_endpoint().port()) {}

  void run(const std::atomic<bool>& stop) {
    asio::signal_set signals(context_, SIGINT, SIGTERM);
    signals.async_wait([&](const beast::error_code&, int) { context_.stop(); });
    accept();
    while (!stop && !context_.stopped()) context_.run_for(250ms);
  }

  std::uint16_t port() const { return port_; }
  std::list<Connection*>& open() { return open_; }
  // The response to a request. `cookie` receives the value of Set-Cookie.
  Response respond(const wire::request<wire::empty_body>& request, std::string& cookie) const;

 private:
  void accept();
  // Closes the connection that has been silent for longest; false without any.
  bool evict();

  const Options& options_;
  const Handler& handler_;
  const std::size_t connection_limit_ = connection_limit();
  // Ordered by last activity. Outlives the connections, which context_ owns.
  std::list<Connection*> open_;
  asio::io_context context_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::uint16_t port_;
};

// One client, which may send several requests. Its pending handlers own it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Server& server)
      : stream_(std::move(socket)),
        server_(server),
        place_(server.open().insert(server.open().end(), this)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { leave(); }

  void read() {
    extend(kHeaderTime);
    parser_.emplace();
    parser_->header_limit(kMaxHeader);
    wire::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) return self->answer();
                       if (error == wire::error::header_limit)
                         self->refuse(431, "the request's header is too long");
                     });
  }

  void close() {
    leave();
    stream_.close();
  }

 private:
  void leave() {
    if (place_) server_.open().erase(*place_);
    place_.reset();
  }

  void extend(std::chrono::seconds time) {
    stream_.expires_after(time);
    if (place_) server_.open().splice(server_.open().end(), server_.open(), *place_);
  }

  void refuse(unsigned status, std::string reason) {
    response_ = {.status = status, .body = std::move(reason) + "\n"};
    send(false, false, "");
  }

  void answer() {
    const auto& request = parser_->get();
    std::string cookie;
    response_ = server_.respond(request, cookie);
    send(request.method() == wire::verb::head, request.keep_alive(), cookie);
  }

  void send(bool head_only, bool keep_alive, const std::string& cookie) {
    left_ = response_.body.size();
    struct stat status {};
    if (response_.file && ::fstat(response_.file.get(), &status) == 0)
      left_ = static_cast<std::uintmax_t>(status.st_size);
    head_ = {};
    head_.result(response_.status);
    head_.keep_alive(keep_alive);
    head_.content_length(left_);
    head_.set(wire::field::content_type, response_.type);
    head_.set(wire::field::cache_control, "no-store");
    head_.set(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri "
        "'none'; form-action 'none'; frame-ancestors 'none'");
    head_.set("Referrer-Policy", "no-referrer");
    head_.set("X-Content-Type-Options", "nosniff");
    if (!response_.allow_origin.empty())
      head_.set(wire::field::access_control_allow_origin, response_.allow_origin);
    if (!cookie.empty()) head_.set(wire::field::set_cookie, cookie);
    if (response_.status == 303) head_.set(wire::field::location, "/");
    if (head_only) left_ = 0;
    extend(kChunkTime);
    serializer_.emplace(head_);
    wire::async_write_header(stream_, *serializer_,
                             [self = shared_from_this()](beast::error_code error, std::size_t) {
                               if (!error) self->send_more();
                             });
  }

  // Sends the next chunk of the body; after the last one, reads the next request.
  void send_more() {
    if (left_ == 0) {
      response_ = {};
      if (head_.keep_alive()) return read();
      beast::error_code ignored;  // the client may have hung up already
      (void)stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      return;
    }
    const asio::const_buffer chunk = next_chunk();
    if (chunk.size() == 0) return;  // the file became shorter
    left_ -= chunk.size();
    extend(kChunkTime);
    asio::async_write(stream_, chunk,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error) self->send_more();
                      });
  }

  asio::const_buffer next_chunk() {
    const auto most = static_cast<std::size_t>(std::min<std::uintmax_t>(left_, chunk_.size()));
    if (!response_.file) return {response_.body.data() + response_.body.size() - left_, most};
    const ssize_t got = ::read(response_.file.get(), chunk_.data(), most);
    return {chunk_.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{2 * kMaxHeader};
  std::optional<wire::request_parser<wire::empty_body>> parser_;
  Response response_;
  wire::response<wire::empty_body> head_;
  std::optional<wire::response_serializer<wire::empty_body>> serializer_;
  std::uintmax_t left_ = 0;  // bytes of the body that were not sent yet
  std::array<char, 65'536> chunk_{};
  Server& server_;
  std::optional<std::list<Connection*>::iterator> place_;  // in server_.open(), until closed
};

Response Server::respond(const wire::request<wire::empty_body>& request,
                         std::string& cookie) const {
  const auto text = [&](wire::field field) {
    const auto value = request[field];
    return std::string_view(value.data(), value.size());
  };
  const auto refused = [](unsigned status, const char* reason) {
    return Response{.status = status, .body = reason};
  };
  if (!is_trusted_host(text(wire::field::host)))
    return refused(403, "ask by IP address or as localhost: other names may be a web site's\n");
  if (request.method() != wire::verb::get && request.method() != wire::verb::head)
    return refused(405, "GET and HEAD only\n");
  const std::string_view target(request.target().data(), request.target().size());
  const Access access = access_to(target, text(wire::field::cookie), options_, port_);
  if (!access.granted)
    return refused(403, "this needs the token: open the address that assay printed\n");
  if (access.sets_cookie) {
    cookie =
        fmt::format("{}={}; Path=/; SameSite=Strict; HttpOnly", cookie_name(port_), options_.token);
    return refused(303, "");
  }
  return handler_(access.path);
}

bool Server::evict() {
  if (open_.empty()) return false;
  open_.front()->close();
  return true;
}

void Server::accept() {
  acceptor_.async_accept([this](const beast::error_code& error, tcp::socket socket) {
    if (!error) {
      if (open_.size() >= connection_limit_) evict();
      std::make_shared<Connection>(std::move(socket), *this)->read();
      return accept();
    }
    // No descriptor is left; the client waits in the backlog.
    if (evict()) return accept();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const beast::error_code&) { accept(); });
  });
}

// An IPv4 address of this machine that others can reach; 127.0.0.1 if there is none.
std::string own_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "127.0.0.1";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    constexpr unsigned kWanted = IFF_UP | IFF_RUNNING;
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & kWanted) != kWanted || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, NI_MAXHOST> name{};
    if (::getnameinfo(each->ifa_addr, sizeof(sockaddr_in), name.data(), name.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      return name.data();
    }
  }
  return "127.0.0.1";
}

}  // namespace

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::string address(const Options& options, std::uint16_t port, std::string_view path) {
  const bool any = options.host == "0.0.0.0" || options.host == "::";
  const std::string host = any ? own_address() : options.host;
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}/{}/{}", six ? "[" + host + "]" : host, port, options.token,
                     path);
}

Status serve(const Options& options, const Handler& handler,
             const std::function<void(std::uint16_t)>& listening, const std::atomic<bool>& stop) {
  if (!is_token(options.token))
    return usage_error("the token must be of letters, digits, '-', '.', '_' and '~'");
  try {
    Server server(options, handler);
    listening(server.port());
    server.run(stop);
    return {};
  } catch (const std::exception& error) {
    return fail(fmt::format("cannot serve on {}:{}: {}", options.host, options.port, error.what()));
  }
}

}  // namespace assay::http
