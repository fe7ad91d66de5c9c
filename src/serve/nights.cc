#include "serve/nights.h"

#include <algorithm>
#include <charconv>

#include "report/run_report.h"
#include "serve/past_runs.h"
#include "store/folder_watch.h"
#include "store/past_folders.h"

namespace assay {
namespace {

constexpr std::size_t kMostPages = 8;  // each has a thread that reads its run

// "a b" of "a%20b".
std::string decoded(std::string_view path) {
  std::string text;
  for (std::size_t at = 0; at < path.size(); ++at) {
    unsigned char byte = 0;
    const char* const digits = path.data() + at + 1;
    const bool escaped = path[at] == '%' && at + 2 < path.size() &&
                         std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    text += escaped ? static_cast<char>(byte) : path[at];
    if (escaped) at += 2;
  }
  return text;
}

}  // namespace

std::optional<PageReply> Nights::reply(std::string_view path) {
  constexpr std::string_view kRun = "/run/";
  const std::size_t end = path.starts_with(kRun) ? path.find('/', kRun.size()) : path.npos;
  if (end == path.npos) {
    return path == "/data.json" ? PageReply{"application/json", list()} : RunPage::file(path);
  }
  if (auto file = RunPage::file(path.substr(end))) return file;
  const RunPage* page = page_of(decoded(path.substr(kRun.size(), end - kRun.size())));
  return page == nullptr ? std::nullopt : page->reply(path.substr(end));
}

// Reads only the runs that have changed.
std::string Nights::list() {
  nlohmann::json shown{{"name", folder_name(folder_)}, {"nights", nlohmann::json::array()}};
  for (const RunFolder& run : runs_in(folder_)) {
    auto& [written, row] = rows_[run.path.filename()];
    if (written != run.written || row.is_null()) {
      const auto totals = totals_of_folder(run.path);
      row = totals ? run_row(*totals) : nlohmann::json{{"name", run.path.filename().string()}};
      if (!totals) row["trouble"] = totals.error().message;
      written = run.written;
    }
    shown["nights"].push_back(row);
  }
  std::ranges::reverse(shown["nights"]);
  return json_text(shown);
}

const RunPage* Nights::page_of(const std::string& name) {
  if (const auto open = pages_.find(name); open != pages_.end()) return open->second.get();
  const auto runs = runs_in(folder_);
  const auto run =
      std::ranges::find(runs, name, [](const RunFolder& r) { return r.path.filename().string(); });
  if (run == runs.end()) return nullptr;
  auto source = open_source(run->path.string());
  if (!source) return nullptr;
  if (pages_.size() >= kMostPages) pages_.erase(pages_.begin());
  return (pages_[name] = std::make_unique<RunPage>(std::move(*source), run->path.string())).get();
}

}  // namespace assay
