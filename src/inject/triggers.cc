#include "inject/triggers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/statistics.h"

namespace assay::inject {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReasonFile = "why.txt";

double seconds(Nanos time) { return static_cast<double>(time) / 1e9; }

}  // namespace

std::string SlowSteps::ended(std::int64_t number, Nanos duration) {
  std::string reason;
  if (last_.size() >= kFewest) {
    const Nanos usual = upper_median(std::vector(last_.begin(), last_.end()));
    if (static_cast<double>(duration) > factor_ * static_cast<double>(usual)) {
      reason = fmt::format("slow step: step {} took {:.3f} s, the median is {:.3f} s", number,
                           seconds(duration), seconds(usual));
    }
  }
  last_.push_back(duration);
  if (last_.size() > kMost) last_.pop_front();
  return reason;
}

void HangWatch::collective_launched(std::uint32_t correlation, std::string_view name, Nanos time) {
  collectives_.push_back({++sequence_, correlation, time, false, std::string(name)});
  if (collectives_.size() > kKept) collectives_.pop_front();
}

void HangWatch::ended(std::uint32_t correlation, Nanos time) {
  last_news_ = time;
  last_ended_ = std::max(last_ended_, correlation);
  // The latest ones end soonest, so search from the end.
  for (auto it = collectives_.rbegin(); it != collectives_.rend(); ++it) {
    if (it->correlation < correlation) break;
    if (it->correlation == correlation) it->ended = true;
  }
}

bool HangWatch::overdue(Nanos time) const {
  const bool collective =
      std::any_of(collectives_.begin(), collectives_.end(), [&](const LaunchedCollective& one) {
        return !one.ended && time - one.launched >= patience_ && told_ != one.correlation;
      });
  const std::uint32_t last = last_launch_.load(std::memory_order_relaxed);
  return collective ||
         (last > last_ended_ && last_news_ != 0 && time - last_news_ >= patience_ && told_ != last);
}

std::string HangWatch::stuck(Nanos time) {
  for (const LaunchedCollective& one : collectives_) {
    if (one.ended || time - one.launched < patience_) continue;
    if (told_ == one.correlation) return {};
    told_ = one.correlation;
    return fmt::format(
        "hang: {}, collective number {}, was launched {:.0f} s ago and has not ended", one.name,
        one.sequence, seconds(time - one.launched));
  }
  const std::uint32_t last = last_launch_.load(std::memory_order_relaxed);
  const bool waiting = last > last_ended_;
  if (!waiting || last_news_ == 0) last_news_ = time;
  if (!waiting || time - last_news_ < patience_ || told_ == last) return {};
  told_ = last;
  return fmt::format("hang: no kernel has ended for {:.0f} s", seconds(time - last_news_));
}

std::string HangWatch::stuck_in_step(std::int64_t number, Nanos lasted) {
  if (lasted < patience_ || told_step_ == number) return {};
  told_step_ = number;
  return fmt::format("hang: step {}, whose work is not recorded, has not ended after {:.0f} s",
                     number, seconds(lasted));
}

void HangWatch::forget() {
  last_launch_ = last_ended_ = 0;
  collectives_.clear();
}

DumpFolders::DumpFolders(fs::path folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  while (fs::exists(path(next_), ignored)) ++next_;
}

fs::path DumpFolders::path(std::int64_t number) const {
  return folder_ / fmt::format("dump-{}", number);
}

std::optional<DumpFolders::Dump> DumpFolders::next() {
  std::error_code error;
  Dump dump{path(next_), {}};
  if (!fs::is_directory(dump.folder, error)) return std::nullopt;
  ++next_;
  if (auto reason = read_file(dump.folder / kReasonFile)) dump.reason = std::move(*reason);
  return dump;
}

Status DumpFolders::ask(std::string_view reason) const {
  // Created under a temporary name, so that the dump appears together with its reason.
  const fs::path made = folder_ / fmt::format(".dump.{}.{}", next_, ::getpid());
  std::error_code error;
  fs::create_directories(made, error);
  if (error) return fail(fmt::format("cannot create {}: {}", made.string(), error.message()));
  Status written = write_file(made / kReasonFile, reason);
  if (written) fs::rename(made, path(next_), error);
  std::error_code ignored;
  if (!written || error) fs::remove_all(made, ignored);
  if (written && error && !fs::is_directory(path(next_), ignored)) {
    return fail(fmt::format("cannot create {}: {}", path(next_).string(), error.message()));
  }
  return written;
}

}  // namespace assay::inject
