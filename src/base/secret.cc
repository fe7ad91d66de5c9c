#include "base/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/fd.h"

namespace assay {

Result<std::string> new_secret() {
  std::array<std::uint64_t, 2> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != sizeof bits) return errno_error("getrandom");
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

bool is_ours_alone(const struct ::stat& facts) {
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  return facts.st_uid == ::geteuid() && (facts.st_mode & kOthers) == 0;
}

Status write_secret(const std::filesystem::path& file, const std::string& text) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  const Fd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       S_IRUSR | S_IWUSR));
  if (!made) return errno_error("cannot make " + file.string());
  return write_all(made.get(), std::as_bytes(std::span(text)));
}

Result<std::string> read_secret(const std::filesystem::path& file) {
  const Fd opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!opened) return errno_error("cannot read " + file.string());
  struct stat facts {};
  if (::fstat(opened.get(), &facts) != 0) return errno_error("cannot read " + file.string());
  if (!S_ISREG(facts.st_mode) || !is_ours_alone(facts)) {
    return fail(fmt::format("{} is open to other users", file.string()));
  }
  std::array<char, 256> text{};
  const ssize_t got = ::read(opened.get(), text.data(), text.size());
  if (got < 0) return errno_error("cannot read " + file.string());
  const std::string_view read(text.data(), static_cast<std::size_t>(got));
  return std::string(read.substr(0, read.find('\n')));
}

}  // namespace assay
