#include "report/scripts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "base/fd.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "lane/python_command.h"
#include "report/run_report.h"

namespace assay {
namespace {

constexpr int kVersion = 1;  // of assay.scripts
constexpr std::chrono::seconds kLimit{300};

Result<std::string> whole_file(const Fd& file) {
  return read_file(fmt::format("/proc/self/fd/{}", file.get()));
}

}  // namespace

Result<std::vector<nlohmann::json>> ask_scripts(const FrameworkConfig& python,
                                                const std::vector<nlohmann::json>& requests) {
  if (requests.empty()) return std::vector<nlohmann::json>();
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Fd in, make_memory_file("requests"));
  ASSAY_TRY(const Fd out, make_memory_file("answers"));
  ASSAY_TRY(const Fd log, make_memory_file("log"));
  const std::string message = json_text({{"v", kVersion}, {"requests", requests}});
  ASSAY_CHECK(write_all(in.get(), std::as_bytes(std::span(message))));
  if (::lseek(in.get(), 0, SEEK_SET) != 0) return errno_error("lseek");
  SpawnOptions options = module_command(python, package, "assay.scripts.__main__");
  options.fds = {{in.get(), 0}, {out.get(), 1}, {log.get(), 2}};
  auto process = Process::spawn(options);
  if (!process) {
    return fail(fmt::format("no Python writes scripts: {}; ASSAY_PYTHON names one",
                            process.error().message));
  }
  ASSAY_TRY(const ExitStatus status, process->wait_at_most(kLimit));
  ASSAY_TRY(const std::string text, whole_file(out));
  nlohmann::json answer = parse_json(text);
  if (status.ok() && answer.is_object() && answer["answers"].size() == requests.size()) {
    return answer["answers"].get<std::vector<nlohmann::json>>();
  }
  ASSAY_TRY(const std::string said, whole_file(log));
  std::string_view last = trimmed(said);
  last.remove_prefix(last.rfind('\n') + 1);
  return fail(fmt::format(
      "{} writes no scripts ({}): {}; ASSAY_PYTHON names another Python, of 3.10 or newer",
      python.python, status.describe(), last));
}

Result<std::vector<nlohmann::json>> ask_scripts(const std::vector<nlohmann::json>& requests) {
  FrameworkConfig python;
  python.python = any_python();
  return ask_scripts(python, requests);
}

}  // namespace assay
