#pragma once

// A real PostgreSQL for one test program, in a folder of its own: no port, one socket in that
// folder.

#include <fmt/format.h>
#include <pwd.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "folder.h"

namespace assay::testing {

class PostgresServer {
 public:
  // Where Debian keeps the server's programs; nullopt: it is not installed.
  static std::optional<std::filesystem::path> programs() {
    const std::filesystem::path versions = "/usr/lib/postgresql";
    std::error_code error;
    for (const auto& version : std::filesystem::directory_iterator(versions, error)) {
      if (std::filesystem::exists(version.path() / "bin" / "initdb")) return version.path() / "bin";
    }
    return std::nullopt;
  }

  // With a host, an address of this machine, it listens there as well, for other machines. With
  // megabytes it has a disk of its own, of that size; that needs root, and a machine that lets it
  // mount.
  explicit PostgresServer(std::string host = "", int megabytes = 0) : host_(std::move(host)) {
    if (megabytes > 0) {
      const std::string size = fmt::format("size={}m", megabytes);
      if (::mount("assay-test", folder_.path().c_str(), "tmpfs", 0, size.c_str()) != 0) {
        throw std::runtime_error("no disk can be mounted here");
      }
      mounted_ = true;
    }
    // The server refuses to run as root, so everything belongs to its own user then.
    if (::geteuid() == 0) {
      const passwd* user = ::getpwnam("postgres");
      if (user == nullptr || ::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) != 0) {
        throw std::runtime_error("there is no user postgres");
      }
    }
    ::chmod(folder_.path().c_str(), 0755);
    must(call({(*programs() / "initdb").string(), "-D", data(), "-U", "assay", "-A", "trust", "-E",
               "UTF8", "--no-sync"}));
    if (!host_.empty()) {
      std::ofstream(data() + "/pg_hba.conf", std::ios::app)
          << "host all all " << host_ << "/24 trust\n";
    }
    start();
    must(call({(*programs() / "createdb").string(), "-h", folder_.path(), "-U", "assay", "runs"}));
  }
  ~PostgresServer() {
    stop();
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  void start() {
    must(call({(*programs() / "pg_ctl").string(), "-D", data(), "-w", "-l", folder_ / "log", "-o",
               fmt::format("-c listen_addresses='{}' -c port={} -c fsync=off {} -k {}", host_,
                           kPort, mounted_ ? "-c max_wal_size=32MB" : "", folder_.path().string()),
               "start"}));
  }
  void stop() {
    (void)call({(*programs() / "pg_ctl").string(), "-D", data(), "-w", "-m", "immediate", "stop"});
  }

  // Of its own disk: leaves no room there, and gives it back.
  void fill_disk() const {
    std::ofstream ballast(folder_ / "ballast", std::ios::binary);
    const std::string block(1 << 16, 'x');
    while (ballast.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void free_disk() const { std::filesystem::remove(folder_ / "ballast"); }

  // Every name is a schema of its own, empty at first.
  std::string address(const std::string& schema) {
    (void)call({(*programs() / "psql").string(), "-h", folder_.path(), "-U", "assay", "-q", "-c",
                "CREATE SCHEMA IF NOT EXISTS " + schema, "runs"});
    return "postgresql://assay@/runs?host=" + folder_.path().string() +
           "&options=-csearch_path%3D" + schema;
  }
  // The same, as another machine knows it.
  std::string far_address(const std::string& schema) const {
    return fmt::format("postgresql://assay@{}:{}/runs?options=-csearch_path%3D{}", host_, kPort,
                       schema);
  }

 private:
  std::string data() const { return folder_ / "data"; }

  static void must(const Result<ExitStatus>& ended) {
    if (!ended || !ended->ok()) throw std::runtime_error("PostgreSQL could not be started");
  }

  static Result<ExitStatus> call(std::vector<std::string> argv) {
    if (::geteuid() == 0) {
      const std::vector<std::string> as_user{"runuser", "-u", "postgres", "--"};
      argv.insert(argv.begin(), as_user.begin(), as_user.end());
    }
    SpawnOptions options;
    options.argv = std::move(argv);
    options.directory = "/";
    options.die_with_parent = false;  // the server itself stays until stop()
    ASSAY_TRY(const Fd nothing, open_for_append("/dev/null"));
    options.fds = {{nothing.get(), 1}, {nothing.get(), 2}};
    ASSAY_TRY(Process process, Process::spawn(options));
    return process.wait();
  }

  static constexpr int kPort = 5432;  // also of the socket's name
  std::string host_;
  Folder folder_;
  bool mounted_ = false;
};

}  // namespace assay::testing
