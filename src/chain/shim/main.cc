// The shim. Under the name of an interpreter or another program it passes its command on to the
// run, which starts the real program. In a rehearsal it records the command, makes the files that
// the next command may look for, and ends with 0. Under its own name, `assay-shim FOLDER [--trust]
// COMMAND…` runs a command shut in (sandbox.h).

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "chain/shim/call.h"
#include "chain/shim/sandbox.h"

namespace assay::chain::shim {
namespace {

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return -1;
  std::strcpy(address.sun_path, path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    ::close(fd);
    return -1;
  }
  return fd;
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(fd, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Sends the text with our input. Only its first byte carries the descriptor.
bool send_call(int socket, std::string_view text) {
  char first = text.front();
  iovec part{&first, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  constexpr int kInput = STDIN_FILENO;
  std::memcpy(CMSG_DATA(head), &kInput, sizeof kInput);
  ssize_t sent = 0;
  while ((sent = ::sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  if (sent != 1) {  // a closed input cannot be sent
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  }
  return sent == 1 && write_whole(socket, text.substr(1));
}

bool read_whole(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(fd, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// Copies output until the command's end. Returns its exit code; -1 if the run is gone.
int relay(int socket) {
  std::array<char, kAnswerHead> head{};
  std::string bytes;
  while (read_whole(socket, head.data(), head.size())) {
    bytes.resize(bytes_after({head.data(), head.size()}));
    if (!read_whole(socket, bytes.data(), bytes.size())) return -1;
    const auto kind = static_cast<Answer>(head[0]);
    if (kind == Answer::exit) return static_cast<int>(std::strtol(bytes.c_str(), nullptr, 10));
    // Nobody may read it any more, as behind `| head -1`: then SIGPIPE ends us, as it would the
    // command.
    (void)write_whole(kind == Answer::errors ? STDERR_FILENO : STDOUT_FILENO, bytes);
  }
  return -1;
}

// Sends the call and this process's input to the run's socket, writes the command's output where
// the script wants it, and returns the command's exit code. The run ends the command if this
// process ends first. Returns -1 if the run cannot be reached.
int pass_on(const Call& call, const char* socket) {
  const int fd = connect_to(socket);
  if (fd < 0 || !send_call(fd, encode(call))) return -1;
  const int code = relay(fd);
  ::close(fd);
  return code;
}

// Becomes the real program, without the run: for errands (call.h). Returns only if it cannot.
void become(const std::vector<std::string>& argv) {
  std::vector<std::string> own = argv;
  if (const char* path = std::getenv(kPathVariable)) ::setenv("PATH", path, 1);
  const char* python = std::getenv(kPythonVariable);
  // As argv[0], too: by it Python finds its own environment.
  if (python != nullptr && is_python(own.front())) own.front() = python;
  std::vector<char*> words;
  words.reserve(own.size() + 1);
  for (std::string& word : own) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
}

namespace fs = std::filesystem;

int complain(const std::string& text) {
  const std::string line = "assay-shim: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  return kNoSandbox;
}

void touch(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream(file, std::ios::app).flush();
}

// The lines of a variable.
std::vector<std::string> lines_of(const char* variable) {
  const char* value = std::getenv(variable);
  std::istringstream text(value == nullptr ? "" : value);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void make_outputs(const Call& call) {
  std::vector<std::string> names{"inference.pdmodel", "inference.pdiparams", "model.pdmodel",
                                 "model.pdiparams"};
  for (std::string& name : lines_of(kMakeVariable)) names.push_back(std::move(name));
  for (const std::string& output : outputs_of(call.argv)) {
    if (is_file_name(output)) {
      touch(output);
      continue;
    }
    for (const std::string& name : names) touch(fs::path(output) / name);
  }
}

// `chmod +x FILE…`, where the sandbox changes no attributes: a copy that is executable takes the
// file's place.
void make_executable(const std::vector<std::string>& argv) {
  const bool adds = argv.size() > 2 && argv[1].find('-') == std::string::npos &&
                    argv[1].find_first_of("x1357") != std::string::npos;
  for (std::size_t i = 2; adds && i < argv.size(); ++i) {
    std::error_code error;
    if (!fs::is_regular_file(argv[i], error)) continue;
    const std::string copy = argv[i] + ".assay-copy";
    const int to = ::open(copy.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (to < 0) continue;
    std::ostringstream text;
    text << std::ifstream(argv[i], std::ios::binary).rdbuf();
    const bool whole = ::write(to, text.str().data(), text.str().size()) ==
                       static_cast<ssize_t>(text.str().size());
    ::close(to);
    if (whole) fs::rename(copy, argv[i], error);
  }
}

void make_built() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const std::string& program : lines_of(kBuiltVariable)) {
    fs::create_directories(fs::path(program).parent_path(), error);
    fs::create_symlink(self, program, error);
  }
}

Call own_call(int argc, char** argv) {
  Call call;
  call.argv.assign(argv, argv + argc);
  for (char** entry = environ; *entry != nullptr; ++entry) call.environment.emplace_back(*entry);
  std::error_code error;
  call.folder = fs::current_path(error).string();
  call.output = fs::read_symlink("/proc/self/fd/1", error).string();
  call.errors = fs::read_symlink("/proc/self/fd/2", error).string();
  return call;
}

int run(const Call& call, const char* socket) {
  if (is_errand(call.argv)) {
    become(call.argv);
    return complain("cannot start " + call.argv.front() + ": " + std::strerror(errno));
  }
  const int code = pass_on(call, socket);
  return code >= 0 ? code : complain("the run of assay has ended, or was not found");
}

// What the real interpreter prints for `python -c CODE`; nothing if CODE needs more than the
// standard library.
std::optional<std::string> answer_of(const std::vector<std::string>& argv) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    std::vector<std::string> own{argv.front(), "-I", "-S"};
    own.insert(own.end(), argv.begin() + 1, argv.end());
    std::vector<char*> words;
    words.reserve(own.size() + 1);
    for (std::string& word : own) words.push_back(word.data());
    words.push_back(nullptr);
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    for (std::string folder; std::getline(folders, folder, ':');) {
      for (const std::string& name :
           {fs::path(argv.front()).filename().string(), std::string("python3")}) {
        const std::string program = folder + "/" + name;
        if (!fs::equivalent(program, self, error)) ::execv(program.c_str(), words.data());
      }
    }
    ::_exit(1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t bytes = 0; (bytes = ::read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  int status = 0;
  const bool ended = child > 0 && ::waitpid(child, &status, 0) == child;
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

int record(const Call& call) {
  if (is_errand(call.argv) && call.argv[1] == "-c" && call.argv.size() > 2) {
    if (const auto answer = answer_of(call.argv)) {
      (void)!::write(STDOUT_FILENO, answer->data(), answer->size());
      return 0;
    }
  }
  const char* file = std::getenv(kRecordVariable);
  const int fd = file == nullptr ? -1 : ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return complain("no record to write to: started outside of a rehearsal?");
  const std::string text = encode(call);
  // One write, so that records of processes that run at the same time do not mix.
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!whole) return complain("cannot write the record");
  if (fs::path(call.argv.front()).filename() == "chmod") {
    make_executable(call.argv);
  } else {
    make_outputs(call);
  }
  make_built();
  return 0;
}

// Waits for the first process of the namespaces. When this process ends, so do they. SIGXFSZ ends
// it where the folder takes too much.
int wait_for(pid_t child, const std::string& folder) {
  constexpr int kEvery = 200;  // milliseconds
  pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (::poll(&ended, 1, kEvery) == 0 && takes_too_much(folder)) {
      ::kill(child, SIGKILL);
      ::raise(SIGXFSZ);
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_shut_in(const std::string& folder, bool trusted, char** command) {
  forget_environment();
  if (separate()) {
    const pid_t child = ::fork();
    if (child < 0) return complain(std::string("fork: ") + std::strerror(errno));
    if (child > 0) return wait_for(child, folder);
  }
  leave_terminal();
  drop_root(folder);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after drop_root(), which clears it
  const std::string missing = shut_in(folder);
  if (!missing.empty() && !trusted) return complain("the kernel lacks " + missing);
  ::execvp(command[0], command);
  return complain(std::string("cannot start ") + command[0] + ": " + std::strerror(errno));
}

}  // namespace
}  // namespace assay::chain::shim

int main(int argc, char** argv) {
  using namespace assay::chain::shim;
  if (fs::path(argv[0]).filename() != "assay-shim") {
    const char* socket = std::getenv(kSocketVariable);
    const Call call = own_call(argc, argv);
    return socket != nullptr ? run(call, socket) : record(call);
  }
  const bool trusted = argc > 2 && std::strcmp(argv[2], "--trust") == 0;
  const int first = trusted ? 3 : 2;
  if (argc <= first) return complain("usage: assay-shim FOLDER [--trust] COMMAND…");
  return run_shut_in(argv[1], trusted, argv + first);
}
