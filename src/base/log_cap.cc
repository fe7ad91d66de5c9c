#include "base/log_cap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/fd.h"

namespace assay {

Status cap_log(const std::filesystem::path& path, std::uint64_t most) {
  ASSAY_TRY(const Fd file, open_output(path, O_RDWR | O_APPEND));
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return errno_error("cannot read " + path.string());
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (size <= most) return {};
  const std::uint64_t kept = most / 4;
  std::string text = fmt::format("\n[assay: {} bytes were cut here]\n", size - 2 * kept);
  const std::size_t line = text.size();
  text.resize(line + kept);
  const ssize_t got =
      ::pread(file.get(), text.data() + line, kept, static_cast<off_t>(size - kept));
  if (got < 0 || ::ftruncate(file.get(), static_cast<off_t>(kept)) != 0) {
    return errno_error("cannot shorten " + path.string());
  }
  text.resize(line + static_cast<std::size_t>(got));
  return write_all(file.get(), std::as_bytes(std::span(text)));
}

Status cap_logs(const std::filesystem::path& folder, std::uint64_t most) {
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (files->path().filename() == "compute-sanitizer.log") continue;
    if (files->is_regular_file(error) && files->file_size(error) > most) {
      ASSAY_CHECK(cap_log(files->path(), most));
    }
  }
  return {};
}

}  // namespace assay
