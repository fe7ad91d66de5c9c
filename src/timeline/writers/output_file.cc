#include "timeline/writers/output_file.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace assay::timeline {

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  ASSAY_TRY(AtomicFile file, AtomicFile::create(path));
  return OutputFile(std::move(file));
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
  if (status_) status_ = file_.write({buffer_.data(), used_});
  used_ = 0;
}

namespace {

// "000" to "999", concatenated.
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
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kMicro = 1000;
  if (nanos < kSecond) {  // no leading zeros
    if (nanos < 0) {
      put("-");
      nanos = -nanos;
    }
    put_number(nanos / kMicro);
    put(".");
    put({kThreeDigits.data() + 3 * (nanos % kMicro), 3});
    return;
  }
  if (nanos / kSecond != second_) {
    second_ = nanos / kSecond;
    second_text_ = std::to_string(second_);
  }
  put(second_text_);
  const auto rest = static_cast<std::uint32_t>(nanos % kSecond);
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
  return file_.commit();
}

std::string json_escaped(std::string_view text) {
  const std::string quoted = dumped(nlohmann::json(text));
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace assay::timeline
