#include "timeline/writers/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

namespace assay::timeline {

OutputFile::OutputFile(Fd fd, std::filesystem::path path, std::filesystem::path part)
    : fd_(std::move(fd)), path_(std::move(path)), part_(std::move(part)), buffer_(kBufferBytes) {}

OutputFile::~OutputFile() {
  if (fd_ && named_) ::unlink(part_.c_str());
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  std::filesystem::path part = path;
  part += fmt::format(".part.{}", ::getpid());
  // A file without a name goes with the process, whatever ends it. Where the file system has no
  // such files it has a name from the start.
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
  const bool named = !fd;
  if (named) fd = Fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return errno_error(fmt::format("cannot write {}", part.string()));
  OutputFile file(std::move(fd), path, std::move(part));
  file.named_ = named;
  return file;
}

void OutputFile::put_slowly(std::string_view text) {
  flush();
  for (; text.size() > kBufferBytes; text.remove_prefix(kBufferBytes)) {
    std::memcpy(buffer_.data(), text.data(), kBufferBytes);
    used_ = kBufferBytes;
    flush();
  }
  std::memcpy(buffer_.data(), text.data(), text.size());
  used_ = text.size();
}

void OutputFile::flush() {
  if (status_) status_ = write_all(fd_.get(), std::as_bytes(std::span(buffer_.data(), used_)));
  used_ = 0;
}

namespace {

// "000" to "999", one behind the other.
constexpr std::array<char, 3000> kThreeDigits = [] {
  std::array<char, 3000> digits{};
  for (std::size_t i = 0; i < digits.size() / 3; ++i) {
    digits[3 * i] = static_cast<char>('0' + i / 100);
    digits[3 * i + 1] = static_cast<char>('0' + i / 10 % 10);
    digits[3 * i + 2] = static_cast<char>('0' + i % 10);
  }
  return digits;
}();

}  // namespace

void OutputFile::put_microseconds(std::int64_t nanos) {
  constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
  constexpr std::int64_t kNanosPerMicro = 1000;
  if (nanos < kNanosPerSecond) {  // no leading zeros
    if (nanos < 0) {
      put("-");
      nanos = -nanos;
    }
    put_number(nanos / kNanosPerMicro);
    put(".");
    put({kThreeDigits.data() + 3 * (nanos % kNanosPerMicro), 3});
    return;
  }
  if (nanos / kNanosPerSecond != second_) {
    second_ = nanos / kNanosPerSecond;
    second_text_ = std::to_string(second_);
  }
  put(second_text_);
  const auto rest = static_cast<std::uint32_t>(nanos % kNanosPerSecond);
  std::array<char, 10> digits{};
  std::memcpy(digits.data(), kThreeDigits.data() + 3 * (rest / 1'000'000), 3);
  std::memcpy(digits.data() + 3, kThreeDigits.data() + 3 * (rest / 1000 % 1000), 3);
  digits[6] = '.';
  std::memcpy(digits.data() + 7, kThreeDigits.data() + 3 * (rest % 1000), 3);
  put({digits.data(), digits.size()});
}

Status OutputFile::finish() {
  flush();
  if (!status_) return status_;
  if (!named_) {
    const std::string own = fmt::format("/proc/self/fd/{}", fd_.get());
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, part_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return errno_error(fmt::format("cannot name {}", part_.string()));
    }
    named_ = true;
  }
  if (::rename(part_.c_str(), path_.c_str()) != 0) {
    auto error = errno_error(fmt::format("cannot rename {} to {}", part_.string(), path_.string()));
    ::unlink(part_.c_str());
    fd_.reset();
    return error;
  }
  fd_.reset();
  return {};
}

std::string json_escaped(std::string_view text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace assay::timeline
