#include "lane/kept_server.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <filesystem>
#include <set>

#include "lane/address.h"
#include "lane/message.h"

namespace assay {
namespace {

constexpr int kWaitingRuns = 64;
constexpr int kAddressFd = 3;

// Shells change these from command to command, and nothing reads them.
bool changes_by_itself(std::string_view entry) {
  constexpr std::array<std::string_view, 3> kNames = {"_=", "SHLVL=", "OLDPWD="};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return entry.starts_with(name); });
}

// The lines of /proc/self/status that begin with one of these.
std::string inherited_status() {
  constexpr std::array<std::string_view, 4> kLines = {
      "Umask:", "Cpus_allowed:", "Mems_allowed:", "CapEff:"};
  const auto status = read_file("/proc/self/status");
  std::string_view rest = status ? std::string_view(*status) : std::string_view();
  std::string found;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    for (const std::string_view begin : kLines) {
      if (line.starts_with(begin)) found.append(line);
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return found;
}

std::string namespaces() {
  std::set<std::string> links;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/ns", error)) {
    std::error_code unreadable;
    links.insert(std::filesystem::read_symlink(entry.path(), unreadable).string());
  }
  return fmt::format("{}", fmt::join(links, " "));
}

// All that tells two runs apart whose interpreters may not be one.
std::string surroundings(const SpawnOptions& command, const std::filesystem::path& folder) {
  std::string text = fmt::format("{}\n", fmt::join(command.argv, "\n"));
  for (const std::string& entry : environment_of(command)) {
    if (!changes_by_itself(entry)) text += entry + "\n";
  }
  for (const char* file : {"/proc/self/cgroup", "/proc/self/limits"}) {
    text += read_file(file).value_or("");
  }
  return text + fmt::format("{}\n{}\n{}\n{}", folder.string(), inherited_status(), namespaces(),
                            ::getpriority(PRIO_PROCESS, 0));
}

Status start(const SpawnOptions& command, std::chrono::seconds keep, const Fd& listener, int log) {
  SpawnOptions options = command;
  options.argv.insert(options.argv.end(), {"--keep", std::to_string(keep.count())});
  options.fds = {{log, 1}, {log, 2}, {listener.get(), kAddressFd}};
  options.new_group = false;  // it makes a session of its own, which the leader of a group cannot
  options.die_with_parent = false;
  ASSAY_TRY(Process process, Process::spawn(options));
  process.leave();
  return {};
}

}  // namespace

Result<std::string> kept_address(const SpawnOptions& command) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) return fail("the working folder is gone");
  const std::string text = surroundings(command, folder);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("assay-kept-{}-{:016x}{:016x}", ::getuid(), hash.high64, hash.low64);
}

Result<KeptServer> KeptServer::ask(const SpawnOptions& command, std::chrono::seconds keep,
                                   int listener, int ready, int log) {
  ASSAY_TRY(const std::string address, kept_address(command));
  // Who gets the address starts the interpreter; all others wait for it in the socket's queue.
  if (const auto first = listen_at(address, kWaitingRuns)) {
    ASSAY_CHECK(start(command, keep, *first, log));
  }
  KeptServer kept;
  ASSAY_TRY(kept.connection_, connect_to(address));
  const std::string request = nlohmann::json{{"v", kProtocol}, {"server", true}}.dump();
  ASSAY_CHECK(send_with_fds(kept.connection_.get(), std::as_bytes(std::span(request)),
                            std::array{listener, ready, log}));
  return kept;
}

std::optional<Process> KeptServer::wait(std::chrono::milliseconds limit) {
  auto message = receive_message(connection_.get(), limit);
  if (!message || !*message || (*message)->fds.size() != 1) return std::nullopt;
  const auto pid = static_cast<pid_t>(number_in((*message)->json, "pid"));
  if (pid <= 0) return std::nullopt;
  return Process::adopt(pid, std::move((*message)->fds.front()));
}

}  // namespace assay
