#include "base/terminal.h"

#include "base/text.h"

namespace assay {

void show_text(std::FILE* out, std::string_view text) {
  const std::string safe = printable(text);
  std::fwrite(safe.data(), 1, safe.size(), out);
}

void show_line(std::FILE* out, std::string_view text) {
  const std::string line = one_line(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), out);
  std::fflush(out);
}

}  // namespace assay
