#include "chain/results/npy.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace assay::chain::results {
namespace {

template <typename Number>
std::vector<double> numbers_in(std::string_view data) {
  std::vector<double> values;
  values.reserve(data.size() / sizeof(Number));
  for (std::size_t at = 0; at + sizeof(Number) <= data.size(); at += sizeof(Number)) {
    Number value;
    std::memcpy(&value, data.data() + at, sizeof value);
    values.push_back(static_cast<double>(value));
  }
  return values;
}

// Returns the text after `'name': '` up to the next quote.
std::string_view quoted_field(std::string_view header, std::string_view name) {
  const std::size_t at = header.find(name);
  if (at == std::string_view::npos) return {};
  const std::size_t open = header.find('\'', at + name.size());
  const std::size_t close = open == std::string_view::npos ? open : header.find('\'', open + 1);
  if (close == std::string_view::npos) return {};
  return header.substr(open + 1, close - open - 1);
}

}  // namespace

Result<std::vector<double>> read_npy(std::string_view bytes) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kVersionEnd = 8;
  if (!bytes.starts_with(kMagic) || bytes.size() < kVersionEnd + 4) {
    return usage_error("this is not a .npy file");
  }
  const bool old = bytes[6] == 1;  // the header length has 2 bytes, from version 2 on 4
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + kVersionEnd, old ? 2 : 4);
  const std::size_t start = kVersionEnd + (old ? 2 : 4) + length;
  if (start > bytes.size()) return usage_error("the .npy file is truncated");
  const std::string_view type = quoted_field(bytes.substr(0, start), "'descr':");
  const std::string_view data = bytes.substr(start);
  if (type == "<f4") return numbers_in<float>(data);
  if (type == "<f8") return numbers_in<double>(data);
  if (type == "<i4") return numbers_in<std::int32_t>(data);
  if (type == "<i8") return numbers_in<std::int64_t>(data);
  return usage_error(
      fmt::format("a .npy file of type `{}` is not read (only f4, f8, i4, i8)", type));
}

}  // namespace assay::chain::results
