#include "base/variables.h"

#include <algorithm>
#include <cstdlib>

namespace assay {

std::string with_variables(std::string_view text) {
  constexpr std::string_view kOfName =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t dollar = std::min(text.find('$', at), text.size());
    result.append(text, at, dollar - at);
    const bool braces = text.substr(dollar).starts_with("${");
    const std::size_t begin = std::min(dollar + (braces ? 2 : 1), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kOfName, begin), text.size());
    const bool named = end > begin && (!braces || text.substr(end).starts_with('}'));
    const std::string name(text.substr(begin, end - begin));
    const char* value = named ? std::getenv(name.c_str()) : nullptr;
    at = named ? end + (braces ? 1 : 0) : begin;
    value != nullptr ? result += value : result.append(text, dollar, at - dollar);
  }
  return result;
}

}  // namespace assay
