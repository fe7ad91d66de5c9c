#pragma once

// What the tests of the timeline share: folders that go, logs in Paddle's format, traces read back.

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"

namespace assay::timeline::test {

namespace fs = std::filesystem;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "assay-timeline-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline fs::path write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// A job's line as Paddle prints it; times in milliseconds, as text.
inline std::string job_line(int job, const std::string& type, int micro_batch,
                            const std::string& begin, const std::string& end) {
  return "I1120 10:20:30.123456 12345 program_interpreter.cc:220] Profiler Info: Job (" +
         std::to_string(job) + "), type = " + type +
         ", micro_batch_id = " + std::to_string(micro_batch) + ", job_start_time = " + begin +
         ", job_end_time = " + end + "\n";
}

// The material beside the source tree, or an empty path.
inline fs::path shared_folder() {
  const char* named = std::getenv("ASSAY_SHARED");
  const fs::path folder =
      named != nullptr ? fs::path(named) : fs::path(ASSAY_SOURCE_DIR) / "../shared";
  return fs::exists(folder / "timeline") ? folder / "timeline" : fs::path();
}

inline nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, false);
}

// The events of a Chrome trace, each as (everything but its time) -> sorted times in microseconds.
// Counting from `origin` keeps the fractions that a double of 1.7e15 has no bits for.
using EventTimes = std::map<std::string, std::vector<double>>;
inline EventTimes event_times(const nlohmann::json& trace) {
  EventTimes events;
  for (nlohmann::json event : trace.at("traceEvents")) {
    const double time = event.at("ts").get<double>();
    event.erase("ts");
    events[event.dump()].push_back(time);
  }
  for (auto& [event, times] : events) std::sort(times.begin(), times.end());
  return events;
}

// What a program printed, and how it ended.
struct Ran {
  int code = -1;
  std::string out;
};
inline Ran run_program(const std::vector<std::string>& argv, const fs::path& scratch) {
  const fs::path out = scratch / "stdout";
  Ran ran;
  {
    auto sink = open_for_append(out);
    if (!sink) return ran;
    SpawnOptions options;
    options.argv = argv;
    options.fds = {{sink->get(), 1}};
    auto process = Process::spawn(options);
    if (!process) return ran;
    const auto status = process->wait();
    if (status && status->signal == 0) ran.code = status->code;
  }
  if (auto text = read_file(out)) ran.out = std::move(*text);
  return ran;
}

// A Python of the checkout's environment NAME (.venv/NAME), or an empty path.
inline fs::path venv_python(const std::string& name) {
  const fs::path python = fs::path(ASSAY_SOURCE_DIR) / ".venv" / name / "bin" / "python";
  return fs::exists(python) ? python : fs::path();
}

}  // namespace assay::timeline::test
