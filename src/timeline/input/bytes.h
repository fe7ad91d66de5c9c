#pragma once

// Takes little-endian values from the front of a text.

#include <cstring>
#include <string_view>

namespace assay::timeline {

struct Bytes {
  std::string_view rest;
  bool ok = true;  // false after a missing value

  template <typename T>
  T get() {
    T value{};
    const std::string_view raw = get_bytes(sizeof value);
    if (ok) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view get_bytes(std::size_t count) {
    if (rest.size() < count) {
      ok = false;
      return {};
    }
    const std::string_view bytes = rest.substr(0, count);
    rest.remove_prefix(count);
    return bytes;
  }
};

}  // namespace assay::timeline
