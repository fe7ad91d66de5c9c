#include "chain/shim/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::chain::shim {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kForeignCalls = 0x40000000;  // numbers of the x32 ABI start here
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kForeignCalls = 0x80000000;
#else
#error "the sandbox knows the system calls of x86-64 and aarch64 only"
#endif

// Calls that fail with EPERM. Landlock controls neither sockets nor truncation by path everywhere.
constexpr std::array kRefused{
    __NR_socket,
    __NR_io_uring_setup,
    __NR_ptrace,
    __NR_process_vm_writev,
    __NR_mount,
    __NR_umount2,
    __NR_unshare,
    __NR_setns,
    __NR_bpf,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_truncate,
    __NR_prlimit64,
    __NR_sched_setaffinity,
    __NR_setpriority,
    __NR_shmget,
    __NR_semget,
    __NR_msgget,
    __NR_mq_open,
    __NR_open_by_handle_at,
};

// Calls that do nothing and succeed: signals, and attributes of files, which Landlock leaves open.
constexpr std::array kIgnored {
  __NR_kill, __NR_tkill, __NR_tgkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
      __NR_pidfd_send_signal, __NR_fchmod, __NR_fchmodat, __NR_fchown, __NR_fchownat,
      __NR_utimensat, __NR_setxattr, __NR_lsetxattr, __NR_fsetxattr, __NR_removexattr,
      __NR_lremovexattr, __NR_fremovexattr, 452 /* fchmodat2 */, 463 /* setxattrat */,
      466 /* removexattrat */, 469 /* file_setattr */,
#if defined(__x86_64__)
      __NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes, __NR_futimesat,
#endif
};

// Calls that open a file, and which argument has the flags.
constexpr std::array kOpens {
  std::pair{__NR_openat, 2},
#if defined(__x86_64__)
      std::pair{__NR_open, 1},
#endif
};

// The requests of ioctl that programs need on their own files and pipes. All others fail: TIOCSTI
// types into a terminal, and FS_IOC_SETFLAGS changes attributes through a read-only descriptor.
constexpr std::array<std::uint32_t, 7> kRequests{TCGETS,  TIOCGWINSZ, TIOCGPGRP, FIONREAD,
                                                 FIONBIO, FIOCLEX,    FIONCLEX};

// Rights that the headers of older systems lack, by the version of Landlock that has them.
constexpr std::uint64_t kRefer = 1ULL << 13;
constexpr std::uint64_t kTruncate = 1ULL << 14;
constexpr std::uint64_t kWrites = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                  LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                  LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

// The user that root becomes: of no system account, and small enough for a container's map of
// users.
constexpr uid_t kUser = 64'921;

constexpr rlim_t kMaxProcesses = 512;
constexpr rlim_t kMaxFileBytes = rlim_t{64} << 20;
constexpr rlim_t kMaxMemory = rlim_t{4} << 30;

std::string lacks(std::string_view what) {
  return std::string(what) + " (" + std::strerror(errno) + ")";
}

bool allow(int ruleset, const char* path, std::uint64_t rights) {
  const int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = fd;
  const bool done =
      ::syscall(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  ::close(fd);
  return done;
}

std::string limit_writes(const std::string& folder) {
  const long version =
      ::syscall(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return lacks("Landlock (Linux 5.13, and `landlock` among its lsm=)");
  std::uint64_t rights = kWrites;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = rights;
  const int ruleset = static_cast<int>(
      ::syscall(__NR_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0));
  if (ruleset < 0) return lacks("a Landlock ruleset");
  const std::uint64_t in_folder =
      rights & ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
  const std::uint64_t on_device = rights & (LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate);
  if (!allow(ruleset, folder.c_str(), in_folder) || !allow(ruleset, "/dev/null", on_device) ||
      ::syscall(__NR_landlock_restrict_self, ruleset, 0) != 0) {
    return lacks("Landlock's rule for " + folder);
  }
  ::close(ruleset);
  return {};
}

std::string limit_calls() {
  const auto answer = [](std::uint32_t value) { return sock_filter{BPF_RET | BPF_K, 0, 0, value}; };
  const auto load = [](std::uint32_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
  };
  // The lower half of an argument, which holds all flags and requests.
  const auto argument = [](int index) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index);
  };
  // Skips the next instruction unless the loaded value equals this one.
  const auto if_equal = [](std::uint32_t value) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value};
  };
  std::vector<sock_filter> program{
      load(offsetof(seccomp_data, arch)),
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kArchitecture},
      answer(SECCOMP_RET_KILL_PROCESS),
      load(offsetof(seccomp_data, nr)),
      sock_filter{BPF_JMP | BPF_JGE | BPF_K, 0, 1, kForeignCalls},
      answer(SECCOMP_RET_ERRNO | ENOSYS),
  };
  for (const int call : kRefused) {
    program.push_back(if_equal(static_cast<std::uint32_t>(call)));
    program.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  }
  for (const int call : kIgnored) {
    program.push_back(if_equal(static_cast<std::uint32_t>(call)));
    program.push_back(answer(SECCOMP_RET_ERRNO));
  }
  // Before its third version, Landlock lets a read-only open truncate. openat2 hides its flags in
  // memory; programs that get ENOSYS use openat.
  program.push_back(if_equal(__NR_openat2));
  program.push_back(answer(SECCOMP_RET_ERRNO | ENOSYS));
  for (const auto& [call, flags] : kOpens) {
    program.insert(
        program.end(),
        {sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 7, static_cast<std::uint32_t>(call)},
         load(argument(flags)), sock_filter{BPF_ALU | BPF_AND | BPF_K, 0, 0, O_TRUNC | O_ACCMODE},
         if_equal(O_TRUNC), answer(SECCOMP_RET_ERRNO | EPERM), if_equal(O_TRUNC | O_ACCMODE),
         answer(SECCOMP_RET_ERRNO | EPERM), load(offsetof(seccomp_data, nr))});
  }
  program.push_back(sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, __NR_ioctl});
  program.push_back(answer(SECCOMP_RET_ALLOW));
  program.push_back(load(argument(1)));
  for (const std::uint32_t request : kRequests) {
    program.push_back(if_equal(request));
    program.push_back(answer(SECCOMP_RET_ALLOW));
  }
  program.push_back(answer(SECCOMP_RET_ERRNO | ENOTTY));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    return lacks("seccomp filters");
  }
  return {};
}

void limit(decltype(RLIMIT_CPU) what, rlim_t value) {
  const rlimit both{value, value};
  (void)::setrlimit(what, &both);
}

void write_map(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  (void)!::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace

std::string shut_in(const std::string& folder) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return lacks("no_new_privs");
  std::string missing = limit_writes(folder);
  return missing.empty() ? limit_calls() : missing;
}

bool separate() {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, kMaxFileBytes);
  limit(RLIMIT_AS, kMaxMemory);
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user == 0) return ::unshare(CLONE_NEWPID) == 0;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return false;
  write_map("/proc/self/setgroups", "deny");
  const auto same = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  write_map("/proc/self/uid_map", same(user));
  write_map("/proc/self/gid_map", same(group));
  limit(RLIMIT_NPROC, kMaxProcesses);
  return true;
}

void drop_root(const std::string& folder) {
  if (::geteuid() != 0) return;
  std::error_code error;
  (void)!::lchown(folder.c_str(), kUser, kUser);
  for (auto it = std::filesystem::recursive_directory_iterator(folder, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (!it->is_symlink()) (void)!::lchown(it->path().c_str(), kUser, kUser);
  }
  limit(RLIMIT_NPROC, kMaxProcesses);
  ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  (void)!::setgroups(0, nullptr);
  if (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0) return;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  sets[0].effective = sets[0].permitted = sets[0].inheritable = 1U << CAP_DAC_READ_SEARCH;
  (void)!::syscall(__NR_capset, &header, sets.data());
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0);
}

bool takes_too_much(const std::string& folder) {
  constexpr std::uintmax_t kMaxFiles = 100'000;
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 30;
  std::uintmax_t files = 0;
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (it->is_symlink(gone)) continue;  // the copy of the project
    ++files;
    if (it->is_regular_file(gone)) bytes += it->file_size(gone);
  }
  return files > kMaxFiles || bytes > kMaxBytes;
}

void leave_terminal() {
  if (::setsid() >= 0) return;
  const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC);  // the leader of a group keeps it
  if (terminal < 0) return;
  (void)!::ioctl(terminal, TIOCNOTTY);
  ::close(terminal);
}

void forget_environment() {
  constexpr std::array<std::string_view, 22> kNeeded{
      "PATH",         "HOME",        "LANG",    "LC_*",           "TERM",
      "TZ",           "USER",        "PWD",     "TMPDIR",         "LD_LIBRARY_PATH",
      "CONDA_*",      "VIRTUAL_ENV", "CUDA_*",  "NCCL_*",         "FLAGS_*",
      "OMP_*",        "MKL_*",       "PYTHON*", "BENCHMARK_ROOT", "BASH_FUNC_kill%%",
      "ASSAY_SHIM_*", kKeepVariable};
  const char* value = std::getenv(kKeepVariable);
  const std::string kept = std::string(",") + (value == nullptr ? "" : value) + ",";
  const auto is_needed = [&](std::string_view name) {
    if (kept.find("," + std::string(name) + ",") != std::string::npos) return true;
    return std::any_of(kNeeded.begin(), kNeeded.end(), [&](std::string_view needed) {
      return needed.ends_with('*') ? name.starts_with(needed.substr(0, needed.size() - 1))
                                   : name == needed;
    });
  };
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
    if (!is_needed(name)) names.emplace_back(name);
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

}  // namespace assay::chain::shim
