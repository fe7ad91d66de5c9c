#pragma once

// The assay program, run as a user runs it, with fake frameworks unless a test says otherwise.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"

namespace assay::testing {

// What makes a lane a fake one: entries of its environment in assay.toml.
std::string fake_environment();

struct CliResult {
  ExitStatus status;
  std::string output;  // stdout and stderr together
};

class Cli {
 public:
  Cli();   // makes a folder of its own
  ~Cli();  // and removes it

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path run() const { return folder_ / "run"; }

  // Writes assay.toml again, with these entries ("A=1") in the environment of Paddle's lanes.
  void set_paddle_environment(const std::vector<std::string>& entries);

  // A corpus file in the folder with these lines.
  std::string write_cases(const std::vector<std::string>& lines,
                          const std::string& name = "cases.txt");

  // `assay ARGUMENTS…`; waits for it.
  CliResult call(const std::vector<std::string>& arguments) const;
  // Another program, in the folder.
  CliResult call_program(const std::vector<std::string>& argv) const;
  // `assay api` with the fake frameworks and run() as its folder, and these arguments.
  std::vector<std::string> api(const std::vector<std::string>& arguments) const;
  CliResult call_api(const std::vector<std::string>& arguments) const {
    return call(api(arguments));
  }
  Process start(const std::vector<std::string>& arguments) const;
  Process start_program(const std::vector<std::string>& argv) const;

  // Outcome of every case of the run, by its canonical text.
  std::map<std::string, std::string> outcomes() const;
  nlohmann::json report() const;

 private:
  std::filesystem::path folder_;
};

// Texts of cases for the fake frameworks.
std::string tensor(int size);
std::string fake(const std::string& name, int size = 3);
inline const std::string kEcho = R"(paddle.fake.echo(Tensor([3], "float32")))";

// Processes whose command line or environment names `word`, this one left out.
std::vector<pid_t> processes_of(const std::string& word);
// Waits until there are none; false after ten seconds.
bool all_gone(const std::string& word);

// How often the part stands in the text.
std::size_t times(std::string_view text, std::string_view part);

}  // namespace assay::testing
