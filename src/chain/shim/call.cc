#include "chain/shim/call.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace assay::chain::shim {
namespace {

constexpr std::string_view kHeader = "assay-call 1 ";

void add(std::string& out, std::string_view text) {
  out += text;
  out += '\0';
}

// Takes a text up to its NUL; nothing if there is none.
std::optional<std::string> take_text(std::string_view& rest) {
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  std::string text(rest.substr(0, end));
  rest.remove_prefix(end + 1);
  return text;
}

bool take_list(std::string_view& rest, std::vector<std::string>& list) {
  const auto count = take_text(rest);
  if (!count) return false;
  std::size_t left = 0;
  std::from_chars(count->data(), count->data() + count->size(), left);
  while (left-- > 0) {
    auto text = take_text(rest);
    if (!text) return false;
    list.push_back(std::move(*text));
  }
  return true;
}

bool names_output(std::string_view key) {
  std::string lower(key);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.find("save") != std::string::npos || lower.find("out") != std::string::npos;
}

}  // namespace

std::string encode(const Call& call) {
  std::string body;
  add(body, call.folder);
  add(body, call.output);
  add(body, call.errors);
  for (const auto* list : {&call.argv, &call.environment}) {
    add(body, std::to_string(list->size()));
    for (const std::string& text : *list) add(body, text);
  }
  return std::string(kHeader) + std::to_string(body.size()) + '\n' + body;
}

std::optional<Call> take_call(std::string_view& text) {
  if (!text.starts_with(kHeader)) return std::nullopt;
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::size_t bytes = 0;
  std::from_chars(text.data() + kHeader.size(), text.data() + line, bytes);
  if (text.size() - line - 1 < bytes) return std::nullopt;
  std::string_view body = text.substr(line + 1, bytes);
  Call call;
  const auto folder = take_text(body);
  const auto output = take_text(body);
  const auto errors = take_text(body);
  if (!folder || !output || !errors || !take_list(body, call.argv) ||
      !take_list(body, call.environment) || call.argv.empty()) {
    return std::nullopt;
  }
  call.folder = *folder;
  call.output = *output;
  call.errors = *errors;
  text.remove_prefix(line + 1 + bytes);
  return call;
}

std::string answer_head(Answer kind, std::size_t bytes) {
  std::string head(kAnswerHead, '\0');
  head[0] = static_cast<char>(kind);
  for (std::size_t i = kAnswerHead; i-- > 1; bytes >>= 8U) head[i] = static_cast<char>(bytes);
  return head;
}

std::size_t bytes_after(std::string_view head) {
  std::size_t bytes = 0;
  for (std::size_t i = 1; i < kAnswerHead; ++i) {
    bytes = bytes << 8U | static_cast<unsigned char>(head[i]);
  }
  return bytes;
}

bool is_python(std::string_view program) {
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

bool is_errand(const std::vector<std::string>& argv) {
  if (!is_python(argv.front()) || argv.size() < 2) return false;
  if (argv[1] == "-V" || argv[1] == "--version" || argv[1] == "-c") return true;
  return argv.size() > 2 && argv[1] == "-m" && (argv[2] == "pip" || argv[2] == "wget");
}

std::vector<std::string> outputs_of(const std::vector<std::string>& argv) {
  std::vector<std::string> outputs;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    std::string_view key = word.substr(0, equals);
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (word.starts_with('-') && i + 1 < argv.size()) {
      value = argv[i + 1];
    }
    const bool is_path =
        value.find('/') != std::string_view::npos && value.find("://") == std::string_view::npos;
    if (is_path && !value.starts_with('-') && names_output(key)) outputs.emplace_back(value);
  }
  return outputs;
}

bool is_file_name(std::string_view output) {
  constexpr std::array<std::string_view, 4> kExtensions{".onnx", ".txt", ".json", ".nb"};
  return std::ranges::any_of(
      kExtensions, [&](std::string_view extension) { return output.ends_with(extension); });
}

}  // namespace assay::chain::shim
