// Stands in for a project's scripts. Each argument is one thing to do, in order; arguments that are
// none of these are passed over, as a real script's flags would be.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace {

bool starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

void make_file(const std::string& path, std::size_t bytes) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::ofstream out(path, std::ios::binary);
  out << std::string(bytes, 'w');
  out.close();
  if (!out) {
    std::perror("write");
    std::_Exit(5);
  }
}

void flood(long megabytes) {
  const std::string line = "this line comes again and again and says nothing at all, loss: 1.0\n";
  std::string block;
  while (block.size() < (1U << 20)) block += line;
  for (long i = 0; i < megabytes; ++i) {
    std::size_t done = 0;
    while (done < block.size()) {
      const ssize_t got = ::write(1, block.data() + done, block.size() - done);
      if (got <= 0) std::_Exit(6);
      done += static_cast<std::size_t>(got);
    }
  }
  std::printf("\nthe last line\n");
}

// Waits until the stand-in GPU was looked at so often from now on.
void await_looks(std::uintmax_t number) {
  const char* path = std::getenv("FAKE_NVML");
  if (path == nullptr) return;
  const std::string looks = std::string(path) + ".looks";
  std::filesystem::remove(looks);
  std::error_code error;
  while (std::filesystem::file_size(looks, error) < number || error) ::usleep(10'000);
}

// The state of the stand-in GPU from here on, with SELF as our own process number; stays until
// somebody has looked at it thrice, so that nobody has seen only half of it.
void show_gpu_state(std::string state) {
  const char* path = std::getenv("FAKE_NVML");
  if (path == nullptr) return;
  const std::size_t at = state.find("SELF");
  if (at != std::string::npos) state.replace(at, 4, std::to_string(::getpid()));
  std::ofstream(path) << state << '\n';
  await_looks(3);
}

// Uses so much memory.
void eat(long megabytes) {
  const std::string block(static_cast<std::size_t>(megabytes) << 20, 'w');
  std::printf("ate %c\n", block[block.size() / 2]);
}

// Waits until so many of us are here at one time.
void meet(std::ptrdiff_t number) {
  std::filesystem::create_directories("meeting");
  std::ofstream("meeting/" + std::to_string(::getpid()));
  while (std::distance(std::filesystem::directory_iterator("meeting"), {}) < number)
    ::usleep(10'000);
}

// Stays for a while; false when another of us is here.
bool alone(double seconds) {
  if (!std::filesystem::create_directory("occupied")) return false;
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  return std::filesystem::remove("occupied");
}

}  // namespace

int main(int argc, char** argv) {
  std::string save = ".";
  for (int i = 1; i < argc; ++i) {
    if (starts(argv[i], "--out=")) save = argv[i] + 6;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = word.substr(word.find('=') + 1);
    if (starts(word, "say=")) std::printf("%s\n", value.c_str());
    if (starts(word, "make=")) make_file(save + "/" + value, 100);
    if (starts(word, "exit=")) return std::atoi(value.c_str());
    if (starts(word, "flood=")) flood(std::atol(value.c_str()));
    if (starts(word, "eat=")) eat(std::atol(value.c_str()));
    if (starts(word, "fill="))
      make_file(save + "/big", static_cast<std::size_t>(std::atol(value.c_str())) << 20);
    if (starts(word, "env=")) {
      const char* found = std::getenv(value.c_str());
      std::printf("%s=%s\n", value.c_str(), found != nullptr ? found : "(unset)");
    }
    if (starts(word, "gpu=")) show_gpu_state(value);
    if (starts(word, "looks=")) await_looks(static_cast<std::uintmax_t>(std::atol(value.c_str())));
    if (starts(word, "meet=")) meet(std::atol(value.c_str()));
    if (starts(word, "alone=") && !alone(std::atof(value.c_str()))) return 7;
    if (starts(word, "await=")) {
      while (!std::filesystem::exists(value)) ::usleep(10'000);
    }
    if (word == "crash") ::raise(SIGSEGV);
    if (starts(word, "sleep=")) ::usleep(static_cast<useconds_t>(std::atof(value.c_str()) * 1e6));
    const bool apart = word == "hang_apart" || word == "orphan_apart";  // in a session of its own
    if (apart || word == "hang" || word == "stubborn" || word == "orphan") {
      if (word == "stubborn") ::signal(SIGTERM, SIG_IGN);
      const pid_t child = ::fork();  // a data loader, say: it must not outlive the stage either
      if (child == 0) {
        if (apart) ::setsid();
        for (;;) ::pause();
      }
      std::printf("child %d\n", static_cast<int>(child));
      std::fflush(stdout);
      if (starts(word, "orphan")) return 0;
      for (;;) ::pause();
    }
    if (word == "chatter") {
      for (;;) {
        std::printf("still here\n");
        std::fflush(stdout);
        ::usleep(20'000);
      }
    }
    std::fflush(stdout);
  }
  return 0;
}
