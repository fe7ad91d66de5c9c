#include "chain/run/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/terminal.h"
#include "base/text.h"
#include "base/utf8.h"

namespace assay::chain::run {

void Progress::clear() {
  if (out_ == nullptr || shown_ == 0) return;
  std::fputs("\r", out_);
  show(out_, "{:{}}", "", shown_);
  std::fputs("\r", out_);
  std::fflush(out_);
  shown_ = 0;
}

void Progress::note(const std::string& text) {
  if (out_ == nullptr) return;
  clear();
  show(out_, "{}\n", text);
  std::fflush(out_);
}

void Progress::started(const plan::Stage& stage) { tick(stage.name); }

void Progress::finished(const plan::Stage& stage, const stage::Outcome& outcome) {
  ++done_;
  const std::string memory =
      outcome.peak.rss_mb >= 1 ? fmt::format(", {:.0f} MB", outcome.peak.rss_mb) : "";
  const std::string log =
      outcome.passed() || outcome.log_bytes == 0 ? "" : fmt::format(" (log: {})", stage.log);
  note(fmt::format("[{}/{}] {:<12} {} ({:.1f} s{}){}{}", done_, std::max(done_, total_),
                   name(outcome.state), stage.name, outcome.seconds, memory,
                   outcome.detail.empty() ? "" : ": " + outcome.detail, log));
}

void Progress::tick(const std::string& running) {
  if (out_ == nullptr || !live_) return;
  constexpr std::size_t kWidest = 110;
  std::string line = one_line(fmt::format("[{}/{}] {}", done_, std::max(done_, total_), running));
  line.resize(std::min(line.size(), kWidest));
  line.resize(find_bad_byte(line));  // no half of a character
  std::fputs("\r", out_);
  show(out_, "{:{}}", line, std::max(shown_, line.size()));
  std::fflush(out_);
  shown_ = std::max(shown_, line.size());
}

}  // namespace assay::chain::run
