// The shim. Under the name of an interpreter or another program it passes its command on to the run
// (pass_on.h). In a rehearsal it records the command, makes the files that the next command may
// look for, and ends with 0. Under its own name, `assay-shim FOLDER [--trust] COMMAND…` runs a
// command shut in (sandbox.h).

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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
#include <vector>

#include "chain/shim/call.h"
#include "chain/shim/pass_on.h"
#include "chain/shim/sandbox.h"

namespace assay::chain::shim {
namespace {

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
