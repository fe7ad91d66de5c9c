#include "lane/fork_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "base/wake_guard.h"
#include "device/device.h"
#include "lane/address.h"
#include "lane/message.h"
#include "lane/python_command.h"

namespace assay {
namespace {

constexpr int kBacklog = 4096;
constexpr int kListenFd = 3;
constexpr int kReadyFd = 4;
constexpr int kImportKills = 20;
constexpr std::chrono::seconds kStopGrace{2};

// The environment of lanes:
// - malloc keeps freed memory for the next case, in huge pages. New pages for every tensor cost
// half
//   of all CPU time. MemoryWatch (src/native) returns the excess.
// - malloc fills new memory with 0x7f, which is 3.4e38 as float32. A result from uninitialised
// memory
//   is then wrong in every run, not by chance.
// - One OpenMP thread: more of them spin against the other lanes.
// - Small caches: they grow with every new shape otherwise.
constexpr std::array kLaneEnvironment = {
    "GLIBC_TUNABLES=glibc.malloc.perturb=128:glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:"
    "glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=16777216",
    kGpuOrder,
    kGpuQueues,
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY=64",
    "LRU_CACHE_CAPACITY=64",
    "GLOG_minloglevel=2",
    "FLAGS_use_stride_kernel=1",
};

// .venv/NAME/bin/python of the source tree, which `make setup` makes; empty if there is none.
std::string own_environment(const std::string& name) {
  const auto package = LanePackage::find();
  if (!package) return {};
  const auto python = package->python_path.parent_path() / ".venv" / name / "bin" / "python";
  std::error_code error;
  return std::filesystem::exists(python, error) ? python.string() : std::string();
}

// The Python of the environment that assay is installed in. The wheel's command names it
// (python/assay/__main__.py); a program that is called by its path lies in
// PREFIX/lib/pythonX.Y/site-packages. Empty if assay is not installed.
std::string installing_python() {
  if (const char* named = std::getenv("ASSAY_PYTHON"); named != nullptr) return named;
  const auto package = LanePackage::find();
  if (!package) return {};
  const std::filesystem::path packages = package->python_path.parent_path().parent_path();
  if (packages.filename() != "site-packages") return {};
  const auto python = packages.parent_path().parent_path().parent_path() / "bin" / "python3";
  std::error_code error;
  return std::filesystem::exists(python, error) ? python.string() : std::string();
}

}  // namespace

std::string python_of(const std::string& framework) {
  std::string python = own_environment(framework);
  if (python.empty()) python = installing_python();
  return python.empty() ? "python3" : python;
}

std::string any_python() {
  std::string python = installing_python();
  for (const char* framework : {"torch", "paddle"}) {
    if (python.empty()) python = own_environment(framework);
  }
  return python.empty() ? "python3" : python;
}

Result<LanePackage> LanePackage::find() {
  ASSAY_TRY(const std::string program, own_executable());
  const std::filesystem::path bin = std::filesystem::path(program).parent_path();
  std::filesystem::path native = bin.parent_path() / "lib";
  for (std::filesystem::path folder = bin; folder != folder.parent_path();
       folder = folder.parent_path()) {
    const std::filesystem::path python = folder / "python";
    if (!std::filesystem::exists(native)) native = folder / "lib";
    if (std::filesystem::exists(python / "assay" / "lane.py")) return LanePackage{python, native};
  }
  return fail("the lane package (python/assay) was not found beside " + program +
              "; install assay as a whole, or run it from its build folder");
}

Result<ForkServer> ForkServer::start(const FrameworkConfig& config, const LanePackage& package,
                                     std::filesystem::path log) {
  ForkServer server;
  server.config_ = config;
  server.package_ = package;
  server.log_ = std::move(log);
  ASSAY_TRY(BoundSocket bound, listen_anywhere(kBacklog));
  server.listener_ = std::move(bound.socket);
  server.address_ = std::move(bound.address);
  if (config.keep.count() > 0) {
    ASSAY_CHECK(server.ask_kept());
  } else {
    ASSAY_CHECK(server.launch());
  }
  return server;
}

SpawnOptions module_command(const FrameworkConfig& config, const LanePackage& package,
                            std::string_view module) {
  SpawnOptions options;
  options.argv = config.command;
  for (std::string& word : python_command(config.python, module)) {
    options.argv.push_back(std::move(word));
  }
  options.environment.assign(kLaneEnvironment.begin(), kLaneEnvironment.end());
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    options.environment.push_back("LD_LIBRARY_PATH=" + without_empty_entries(libraries));
  }
  std::string path =
      fmt::format("PYTHONPATH={}:{}", package.python_path.string(), package.native_path.string());
  for (const std::string& entry : config.environment) {
    constexpr std::string_view kPath = "PYTHONPATH=";
    if (entry.starts_with(kPath)) {
      path += ":" + entry.substr(kPath.size());  // behind ours, so that it cannot replace it
    } else {
      options.environment.push_back(entry);
    }
  }
  options.environment.push_back(without_empty_entries(path));
  return options;
}

SpawnOptions ForkServer::command() const {
  SpawnOptions options = module_command(config_, package_, "assay.server");
  options.argv.insert(options.argv.end(), {"--framework", config_.name});
  return options;
}

// The environment that no import depends on, with a new folder for the lanes.
Result<std::vector<std::string>> ForkServer::entries_of_run() {
  ASSAY_TRY(lane_folder_, PrivateFolder::make("lanes"));
  std::vector<std::string> entries = config_.of_run;
  entries.push_back("ASSAY_LANE_FOLDER=" + lane_folder_.path().string());
  return entries;
}

Status ForkServer::ask_kept() {
  ASSAY_TRY(FdPair ready, make_pipe());
  ASSAY_CHECK(set_nonblocking(ready.first.get()));
  ASSAY_TRY(const Fd log, open_for_append(log_));
  ASSAY_TRY(const auto of_run, entries_of_run());
  auto kept = KeptServer::ask(command(), config_.keep, of_run, listener_.get(), ready.second.get(),
                              log.get());
  if (!kept) return launch();  // a server of our own, which also reports a broken interpreter
  kept_ = std::move(*kept);
  ready_ = std::move(ready.first);
  return {};
}

Status ForkServer::launch() {
  ASSAY_TRY(FdPair ready, make_pipe());
  ASSAY_CHECK(set_nonblocking(ready.first.get()));
  ASSAY_TRY(const Fd log, open_for_append(log_));
  SpawnOptions options = command();
  ASSAY_TRY(const auto of_run, entries_of_run());
  options.environment.insert(options.environment.end(), of_run.begin(), of_run.end());
  options.fds = {
      {log.get(), 1}, {log.get(), 2}, {listener_.get(), kListenFd}, {ready.second.get(), kReadyFd}};
  auto process = Process::spawn(options);
  if (!process) {
    const std::string why = fmt::format("{}: {}", config_.name, process.error().message);
    if (find_program(options.argv.front())) return fail(why);
    return usage_error(fmt::format("{}; name its interpreter with --{}_python, or in assay.toml",
                                   why, config_.name));
  }
  process_ = std::move(*process);
  continue_after_us(process_.pid());
  ready_ = std::move(ready.first);
  hello_.clear();
  heard_.clear();
  said_hello_ = false;
  return {};
}

namespace {

Result<ServerInfo> server_info(const nlohmann::json& message, const std::string& who) {
  try {
    ServerInfo info;
    info.framework = message.at("framework").get<std::string>();
    info.version = message.at("version").get<std::string>();
    info.python = message.at("python").get<std::string>();
    info.build = message.at("build").get<std::string>();
    info.machine = message.at("machine").get<std::string>();
    info.apis = message.at("apis").get<std::int64_t>();
    info.known_deviations = message.value("accommodates", nlohmann::json::object()).dump();
    info.devices = message.at("devices").get<std::vector<std::string>>();
    info.executions = message.at("executions").get<std::vector<std::string>>();
    info.notes = message.at("notes").get<std::map<std::string, std::string>>();
    info.gradients = message.at("gradients").get<bool>();
    info.own = message.value("own", info.own);
    info.uncompiled = message.at("uncompiled").get<std::string>();
    return info;
  } catch (const nlohmann::json::exception& error) {
    return fail(fmt::format("{} sends a description that assay does not understand: {}", who,
                            error.what()));
  }
}

}  // namespace

void ForkServer::ask_to_stop() const {
  if (process_.running()) process_.signal(SIGTERM);
}

void ForkServer::stop() {
  if (!process_.running()) return;
  (void)process_.stop(kStopGrace);
  while (true) {  // its last words
    const auto heard = read_heartbeat();
    if (!heard || *heard == Heard::nothing_more || *heard == Heard::nothing_yet) return;
  }
}

Status ForkServer::restart() {
  if (process_.running()) return fail(config_.name + ": its fork server still runs");
  return launch();
}

namespace {
// Whether this end says nothing about the framework, because the signal came from outside. Until
// the server's first statement an interpreter turns SIGINT into exit code 1, without an answer.
bool says_nothing(const ExitStatus& status, int ends_before) {
  constexpr int kInterrupts = 3;  // a server that always ends so is broken
  if (status.known && status.signal == 0 && status.code == 1 && ends_before < kInterrupts) {
    return true;
  }
  constexpr std::array kFromOutside{SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  return !status.known ||
         std::find(kFromOutside.begin(), kFromOutside.end(), status.signal) != kFromOutside.end();
}
}  // namespace

Result<ServerInfo> ForkServer::wait_ready(std::chrono::milliseconds limit) {
  if (kept_) {
    auto process = kept_->wait(limit);
    kept_.reset();
    if (process) {
      process_ = std::move(*process);
      continue_after_us(process_.pid());
    } else {
      ASSAY_CHECK(launch());
    }
  }
  int kills = 0;
  while (true) {
    pollfd wait{ready_.get(), POLLIN, 0};
    const int got = ::poll(&wait, 1, static_cast<int>(limit.count()));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) {
      return fail(fmt::format("{} in {} did not import within {} s", config_.name, config_.python,
                              limit.count() / 1000));
    }
    ASSAY_TRY(const Heard heard, read_heartbeat());
    if (heard == Heard::ready) return read_hello(hello_);
    if (heard != Heard::nothing_more) continue;
    ASSAY_TRY(const ExitStatus status, process_.wait_at_most(kStopGrace));
    const bool said = !says_nothing(status, kills);
    ++kills;
    if (said || kills > kImportKills) {
      return fail(fmt::format("{} in {} ended before it was ready ({}); see {}", config_.name,
                              config_.python, status.describe(), log_.string()));
    }
    ASSAY_CHECK(launch());
  }
}

Result<ForkServer::Heard> ForkServer::read_heartbeat() {
  std::array<char, 4096> chunk;
  const ssize_t bytes = ::read(ready_.get(), chunk.data(), chunk.size());
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::nothing_yet;
  if (bytes <= 0) return Heard::nothing_more;
  if (said_hello_) {
    read_later({chunk.data(), static_cast<std::size_t>(bytes)});
    return Heard::alive;
  }
  hello_.append(chunk.data(), static_cast<std::size_t>(bytes));
  const std::size_t end = hello_.find('\n');
  if (end == std::string::npos) return Heard::alive;
  hello_.resize(end);
  said_hello_ = true;
  ASSAY_TRY([[maybe_unused]] const ServerInfo info, read_hello(hello_));
  return Heard::ready;
}

// Signs of life are empty lines; other lines name what cases have left, or are notes.
void ForkServer::read_later(std::string_view text) {
  constexpr std::size_t kLongest = 1 << 16;
  heard_ += text;
  for (std::size_t end = 0; (end = heard_.find('\n')) != std::string::npos;) {
    const auto message = parse_json(heard_.substr(0, end));
    heard_.erase(0, end + 1);
    if (!message.is_object()) continue;
    for (const auto& [key, texts] : {std::pair{"left", &left_}, std::pair{"notes", &notes_}}) {
      for (const auto& one : message.value(key, nlohmann::json::array())) {
        if (one.is_string()) texts->push_back(one_line(one.get<std::string>()));
      }
    }
  }
  if (heard_.size() > kLongest) heard_.clear();
}

Result<ServerInfo> ForkServer::read_hello(const std::string& line) const {
  const std::string who = fmt::format("{} in {}", config_.name, config_.python);
  const auto message = parse_json(line);
  if (!message.is_object() || message.value("v", 0) != kProtocol) {
    return fail(fmt::format("{} speaks another protocol: {}", who, line));
  }
  if (message.contains("module")) {
    return usage_error(fmt::format(
        "{}: the module {} of assay.toml cannot be imported: {}; lanes do not read PYTHONPATH of "
        "the shell, environment = [\"PYTHONPATH=FOLDER\"] in assay.toml adds a folder",
        who, message["module"].get<std::string>(), message["error"].get<std::string>()));
  }
  if (message.contains("setting")) {
    return usage_error(fmt::format("{}: {}", who, message["error"].get<std::string>()));
  }
  if (message.contains("error")) {
    return fail(fmt::format("{} cannot be imported: {}{}", who, message["error"].get<std::string>(),
                            kDoctorHelps));
  }
  return server_info(message, who);
}

}  // namespace assay
