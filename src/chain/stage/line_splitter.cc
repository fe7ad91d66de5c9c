#include "chain/stage/line_splitter.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;

}  // namespace

void LineSplitter::take(std::string_view bytes, const LineHandler& on_line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos && line_.size() < kMaxLine) return;
    this->end(on_line);
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::end(const LineHandler& on_line) {
  if (!line_.empty() && on_line) on_line(line_);
  line_.clear();
}

}  // namespace assay::chain::stage
