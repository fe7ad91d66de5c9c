#include "store/running_now.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr const char* kName = "running.json";
constexpr std::size_t kMostText = 600;  // bytes of a case that are kept
constexpr std::size_t kMostCases = 1'000;

}  // namespace

Status write_running(const fs::path& folder, const std::vector<RunningCase>& cases) {
  nlohmann::json rows = nlohmann::json::array();
  for (const RunningCase& each : cases) {
    if (rows.size() == kMostCases) break;
    rows.push_back({{"case", each.text.substr(0, kMostText)}, {"seconds", each.seconds}});
  }
  const nlohmann::json file = {{"version", kVersion}, {"running", std::move(rows)}};
  return write_file(folder / kName,
                    file.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + '\n');
}

void remove_running(const fs::path& folder) {
  std::error_code none;
  fs::remove(folder / kName, none);
}

std::vector<RunningCase> read_running(const fs::path& folder) {
  std::error_code error;
  const auto written = fs::last_write_time(folder / kName, error);
  if (error || fs::file_time_type::clock::now() - written > std::chrono::seconds(10)) return {};
  std::ifstream stream(folder / kName);
  const auto file = nlohmann::json::parse(stream, nullptr, false);
  std::vector<RunningCase> cases;
  if (!file.is_object() || file.value("version", nlohmann::json()) != kVersion) return cases;
  for (const auto& row : file.value("running", nlohmann::json::array())) {
    if (!row.is_object() || cases.size() == kMostCases) continue;
    const auto text = row.find("case"), seconds = row.find("seconds");
    if (text == row.end() || !text->is_string()) continue;
    if (seconds == row.end() || !seconds->is_number()) continue;
    cases.push_back({text->get<std::string>(), seconds->get<double>()});
  }
  std::ranges::stable_sort(cases, std::greater(), &RunningCase::seconds);
  return cases;
}

}  // namespace assay
