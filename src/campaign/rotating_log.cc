#include "campaign/rotating_log.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/fd.h"

namespace assay::campaign {

Status append_to_log(const std::filesystem::path& path, std::string_view text,
                     std::uint64_t file_bytes, int files) {
  const auto numbered = [&](int number) { return path.string() + "." + std::to_string(number); };
  std::error_code error;
  ASSAY_TRY(Fd file, open_for_append(path));
  std::uint64_t written = std::filesystem::file_size(path, error);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    if (written > 0 && written + line.size() > file_bytes) {
      for (int number = files - 1; number > 1; --number) {
        std::filesystem::rename(numbered(number - 1), numbered(number), error);
      }
      std::filesystem::rename(path, numbered(1), error);
      ASSAY_TRY(file, open_for_append(path));
      written = 0;
    }
    ASSAY_CHECK(write_all(file.get(), std::as_bytes(std::span(line))));
    written += line.size();
    text.remove_prefix(line.size());
  }
  return {};
}

}  // namespace assay::campaign
