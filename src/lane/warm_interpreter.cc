#include "lane/warm_interpreter.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <filesystem>
#include <set>

#include "base/secret.h"
#include "lane/address.h"
#include "lane/kept_record.h"
#include "lane/message.h"

namespace assay {
namespace {

constexpr int kWaitingRuns = 64;
constexpr int kAddressFd = 3;
constexpr std::chrono::seconds kHandshake{2};

// Shells change these with every command, and no import reads them.
bool changes_by_itself(std::string_view entry) {
  constexpr std::array<std::string_view, 3> kNames = {"_=", "SHLVL=", "OLDPWD="};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return entry.starts_with(name); });
}

// The lines of /proc/self/status that a child inherits.
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

// Two runs may share an interpreter only where these texts are equal.
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

Result<pid_t> start(const SpawnOptions& command, std::chrono::seconds keep, const Fd& listener,
                    int log, const std::filesystem::path& record) {
  SpawnOptions options = command;
  options.argv.insert(options.argv.end(),
                      {"--keep", std::to_string(keep.count()), "--kept-record", record.string()});
  options.fds = {{log, 1}, {log, 2}, {listener.get(), kAddressFd}};
  options.new_group = false;  // the leader of a group could not make a session of its own
  options.die_with_parent = false;
  ASSAY_TRY(Process process, Process::spawn(options));
  const pid_t pid = process.pid();
  process.leave();
  return pid;
}

std::string address_of(const std::string& secret) { return "assay-kept-" + secret; }

// A stopped process answers nothing, and may stay so for ever.
bool is_stopped(pid_t pid) {
  const char state = process_state(pid);
  return state == 'T' || state == 't';
}

// Connects to the server of the record, or starts one and writes its record.
Result<Fd> find_or_start(const KeptFile& file, const SpawnOptions& command,
                         std::chrono::seconds keep, int log) {
  if (const auto record = read_kept_record(file.path())) {
    auto connection = connect_now(address_of(record->secret));
    if (connection) return connection;
  }
  KeptRecord record;
  ASSAY_TRY(record.secret, new_secret());
  ASSAY_TRY(const Fd listener, listen_at(address_of(record.secret), kWaitingRuns));
  ASSAY_TRY(record.pid, start(command, keep, listener, log, file.path()));
  ASSAY_CHECK(file.write(record));
  return connect_now(address_of(record.secret));
}

}  // namespace

Result<std::string> kept_name(const SpawnOptions& command) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) return fail("the working folder is gone");
  const std::string text = surroundings(command, folder);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("kept-{:016x}{:016x}", hash.high64, hash.low64);
}

Result<KeptServer> KeptServer::ask(const SpawnOptions& command, std::chrono::seconds keep,
                                   const std::vector<std::string>& of_run, int listener, int ready,
                                   int log) {
  ASSAY_TRY(const std::string name, kept_name(command));
  ASSAY_TRY(const KeptFile file, KeptFile::lock(name, kHandshake));
  KeptServer kept;
  kept.record_ = file.path();
  ASSAY_TRY(kept.connection_, find_or_start(file, command, keep, log));
  const std::string request = nlohmann::json{{"v", kProtocol}, {"environment", of_run}}.dump();
  ASSAY_CHECK(send_with_fds(kept.connection_.get(), std::as_bytes(std::span(request)),
                            std::array{listener, ready, log}));
  return kept;
}

std::optional<Process> KeptServer::wait(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kLook{100};
  const auto began = std::chrono::steady_clock::now();
  auto fine = began;  // when it last had a reason to be silent: it imports, and is not stopped
  while (std::chrono::steady_clock::now() - began < limit) {
    auto message = receive_message(connection_.get(), kLook);
    if (!message || !*message) return std::nullopt;
    if (!(*message)->json.empty()) {
      const auto pid = static_cast<pid_t>(number_in((*message)->json, "pid"));
      if (pid <= 0 || (*message)->fds.size() != 1) return std::nullopt;
      return Process::adopt(pid, std::move((*message)->fds.front()));
    }
    const auto now = std::chrono::steady_clock::now();
    const auto record = read_kept_record(record_);
    if (record && !record->ready && !is_stopped(record->pid)) fine = now;
    if (now - fine > kHandshake) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace assay
