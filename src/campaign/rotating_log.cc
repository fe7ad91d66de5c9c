#include "campaign/rotating_log.h"

#include <span>
#include <string>

namespace assay {

Result<RotatingLog> RotatingLog::open(std::filesystem::path path, std::uint64_t file_bytes,
                                      int files) {
  RotatingLog log(std::move(path), file_bytes, files);
  ASSAY_TRY(log.file_, open_for_append(log.path_));
  std::error_code error;
  const auto size = std::filesystem::file_size(log.path_, error);
  if (!error) log.written_ = size;
  return log;
}

Status RotatingLog::write(std::string_view text) {
  while (!text.empty()) {
    std::string_view part = text;
    if (written_ + part.size() > file_bytes_) {
      const std::size_t line =
          text.rfind('\n', file_bytes_ > written_ ? file_bytes_ - written_ : 0);
      part = text.substr(0, line == std::string_view::npos ? 0 : line + 1);
    }
    if (part.empty() && written_ == 0) part = text;  // a line that is longer than a file
    if (part.empty()) {
      ASSAY_CHECK(rotate());
      continue;
    }
    ASSAY_CHECK(write_all(file_.get(), std::as_bytes(std::span(part))));
    written_ += part.size();
    text.remove_prefix(part.size());
  }
  return {};
}

Status RotatingLog::rotate() {
  const auto numbered = [this](int number) {
    return number == 0 ? path_
                       : std::filesystem::path(path_.string() + "." + std::to_string(number));
  };
  std::error_code ignored;
  std::filesystem::remove(numbered(files_ - 1), ignored);
  for (int number = files_ - 1; number > 0; --number) {
    std::filesystem::rename(numbered(number - 1), numbered(number), ignored);
  }
  ASSAY_TRY(file_, open_for_append(path_));
  written_ = 0;
  return {};
}

}  // namespace assay
