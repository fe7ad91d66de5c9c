#include "cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "base/atomic_file.h"
#include "store/open_store.h"

namespace assay::testing {
namespace {

constexpr const char* kSettings = R"(version = 1
[frameworks.paddle]
python = "python3"
environment = [{0}, "ASSAY_TEST={1}"{2}]
[frameworks.torch]
python = "python3"
environment = [{0}, "ASSAY_TEST={1}"]
)";

}  // namespace

Cli::Cli() {
  std::string pattern = std::filesystem::temp_directory_path() / "assay-test-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = pattern;
  set_paddle_environment({});
}

Cli::~Cli() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Cli::set_paddle_environment(const std::vector<std::string>& entries) {
  std::string more;
  for (const std::string& entry : entries) more += fmt::format(", \"{}\"", entry);
  const std::string settings = fmt::format(kSettings, fake_environment(), folder_.string(), more);
  if (!write_file(folder_ / "assay.toml", settings)) throw std::runtime_error("assay.toml");
}

std::string fake_environment() {
  std::string entries =
      fmt::format(R"("ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={}/tests/engine/fake")",
                  ASSAY_SOURCE_DIR);
  // The runtime of the sanitizer that the native module is built with (tools/sanitize).
  const char* preload = std::getenv("ASSAY_TEST_PRELOAD");
  return preload == nullptr ? entries : entries + fmt::format(R"(, "LD_PRELOAD={}")", preload);
}

std::string Cli::write_cases(const std::vector<std::string>& lines, const std::string& name) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (!write_file(folder_ / name, text)) throw std::runtime_error(name);
  return (folder_ / name).string();
}

Process Cli::start(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv{ASSAY_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return start_program(argv);
}

Process Cli::start_program(const std::vector<std::string>& argv) const {
  SpawnOptions options;
  options.argv = argv;
  options.directory = folder_.string();
  options.environment = {"ASSAY_TEST=" + folder_.string()};
  const auto log = open_for_append(folder_ / "output.txt");
  options.fds = {{log->get(), 1}, {log->get(), 2}};
  auto process = Process::spawn(options);
  if (!process) throw std::runtime_error(process.error().message);
  return std::move(*process);
}

CliResult Cli::call(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv{ASSAY_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return call_program(argv);
}

CliResult Cli::call_program(const std::vector<std::string>& argv) const {
  std::error_code ignored;
  std::filesystem::remove(folder_ / "output.txt", ignored);
  Process process = start_program(argv);
  CliResult result;
  result.status = *process.wait();
  result.output = *read_file(folder_ / "output.txt");
  return result;
}

std::vector<std::string> Cli::api(const std::vector<std::string>& arguments) const {
  std::vector<std::string> all{"api", "--test_cpu=True", "--log_dir=" + run().string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::map<std::string, std::string> Cli::outcomes() const {
  std::map<std::string, std::string> found;
  auto store = open_store(run(), StoreMode::existing);
  if (!store) throw std::runtime_error(store.error().message);
  const Status read = (*store)->each_finished([&](const FinishedCase& finished) -> Status {
    found[std::string(finished.text)] = name(finished.verdict.outcome);
    return {};
  });
  if (!read) throw std::runtime_error(read.error().message);
  return found;
}

nlohmann::json Cli::report() const {
  return nlohmann::json::parse(call({"report", run().string(), "--json"}).output);
}

std::vector<pid_t> processes_of(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    if (pid == ::getpid()) continue;
    for (const char* file : {"cmdline", "environ"}) {
      const auto text = read_file(entry.path() / file);
      if (text && text->find(word) != std::string::npos) {
        found.push_back(pid);
        break;
      }
    }
  }
  return found;
}

bool all_gone(const std::string& word) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (processes_of(word).empty()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

std::string tensor(int size) { return fmt::format("Tensor([{}], \"float32\")", size); }

std::string fake(const std::string& name, int size) {
  return fmt::format("paddle.fake.{}({})", name, tensor(size));
}

std::size_t times(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

}  // namespace assay::testing
