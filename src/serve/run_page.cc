#include "serve/run_page.h"

#include <chrono>
#include <condition_variable>
#include <nlohmann/json.hpp>

#include "base/values.h"
#include "pages/page.h"
#include "report/run_report.h"
#include "serve/report_page.h"

namespace assay {
namespace {

using namespace std::chrono_literals;

// What stands behind a prefix: "12" of "/cases/12".
std::optional<std::string_view> behind(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

std::optional<std::size_t> part_in(std::string_view whole) {
  const auto named = behind(whole, "/cases/");
  if (!named) return std::nullopt;
  std::size_t number = 0;
  return read_number(*named, number) ? std::optional(number) : std::nullopt;
}

}  // namespace

RunPage::RunPage(std::unique_ptr<RunSource> source, std::string where)
    : where_(std::move(where)),
      source_(std::move(source)),
      reader_([this](const std::stop_token& stop) { watch(stop); }) {}

void RunPage::watch(const std::stop_token& stop) {
  constexpr auto kPause = 1s;
  std::condition_variable_any stopped;
  auto shown = std::chrono::steady_clock::time_point();
  while (!stop.stop_requested()) {
    const auto more = source_->poll();
    const auto now = std::chrono::steady_clock::now();
    if (!more || !*more || now - shown > kPause) {
      nlohmann::json page = source_->json();
      if (!more) page["trouble"] = more.error().message;
      if (more) page["reading"] = *more;
      auto parts = source_->parts();
      if (!parts) page["trouble"] = parts.error().message;
      put({json_text(page), parts ? std::move(*parts) : std::vector<CaseList::Part>()});
      shown = now;
    }
    if (more && *more) continue;
    std::unique_lock lock(mutex_);
    stopped.wait_for(lock, stop, kPause, [] { return false; });
  }
}

void RunPage::put(Shown shown) {
  const std::scoped_lock lock(mutex_);
  shown_ = std::make_shared<const Shown>(std::move(shown));
}

std::shared_ptr<const RunPage::Shown> RunPage::shown() const {
  const std::scoped_lock lock(mutex_);
  return shown_;
}

std::optional<PageReply> RunPage::reply(std::string_view path) const {
  if (path == "/data.json") return PageReply{"application/json", shown()->data};
  if (const auto part = part_in(path)) {
    const auto now = shown();
    if (*part >= now->parts.size()) return std::nullopt;
    return PageReply{"application/gzip", *now->parts[*part]};
  }
  if (const auto digest = behind(path, "/finding/"); digest && !where_.empty()) {
    return PageReply{"application/json", served_finding(where_, *digest).value_or("{}")};
  }
  if (const auto name = behind(path, "/log/"); name && !where_.empty()) {
    auto log = served_log(where_, *name);
    if (!log) return std::nullopt;
    return PageReply{"text/plain; charset=utf-8", std::move(*log)};
  }
  return file(path);
}

std::optional<PageReply> RunPage::file(std::string_view path) {
  for (const pages::ServedFile& file : pages::served_files()) {
    if (file.path == path) return PageReply{std::string(file.type), file.text};
  }
  return std::nullopt;
}

std::vector<std::string> RunPage::file_paths() {
  std::vector<std::string> paths;
  for (const pages::ServedFile& file : pages::served_files()) paths.emplace_back(file.path);
  return paths;
}

}  // namespace assay
