#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"
#include "base/utf8.h"
#include "base/values.h"

namespace assay {
namespace {

constexpr std::size_t kLeastWidth = 40;  // on a narrower terminal the terminal itself breaks lines
constexpr char kEscape = '\x1b';
// All that paint() writes.
constexpr std::array<std::string_view, 6> kPaints{"\x1b[1m",  "\x1b[2m",  "\x1b[31m",
                                                  "\x1b[32m", "\x1b[33m", "\x1b[0m"};

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

std::size_t width_of(int fd) {
  const std::string_view columns = variable("COLUMNS");
  std::size_t width = 0;
  if (read_number(columns, width) && width > 0) return std::max(width, kLeastWidth);
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  return std::max<std::size_t>(size.ws_col, kLeastWidth);
}

std::string_view code_of(Paint paint) {
  constexpr std::array<std::string_view, 5> kCodes{"1", "2", "31", "32", "33"};
  return kCodes.at(static_cast<std::size_t>(paint));
}

// The bytes of the colour that the text starts with; 0: none.
std::size_t paint_size(std::string_view text) {
  for (const std::string_view paint : kPaints) {
    if (text.starts_with(paint)) return paint.size();
  }
  return 0;
}

// The bytes of the escape sequence or character that starts the text, which is not empty.
std::size_t unit_size(std::string_view text) {
  if (text.front() == kEscape) {
    const std::size_t end = text.find('m');
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  return std::min(character_size(text.front()), text.size());
}

void wrap_line(std::string_view line, std::size_t width, std::string& out) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::size_t column = indent;
  out.append(line.substr(0, indent));
  line.remove_prefix(indent);
  bool at_start = true;
  while (!line.empty()) {
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view gap = line.substr(0, blanks);
    line.remove_prefix(blanks);
    const std::string_view word = line.substr(0, std::min(line.find(' '), line.size()));
    line.remove_prefix(word.size());
    const std::size_t columns = columns_of(word);
    if (!at_start && column + gap.size() + columns > width) {
      out.append(1, '\n').append(indent, ' ').append(word);
      column = indent + columns;
    } else {
      out.append(gap).append(word);
      column += gap.size() + columns;
    }
    at_start = false;
  }
}

}  // namespace

void show_text(std::FILE* out, std::string_view text) {
  const std::string safe = printable(text);
  std::fwrite(safe.data(), 1, safe.size(), out);
}

void show_line(std::FILE* out, std::string_view text) {
  const std::string line = one_line(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), out);
  std::fflush(out);
}

void show_painted(std::FILE* out, std::string_view text) {
  std::string safe;
  std::size_t from = 0;  // what is before it has been taken
  for (std::size_t at = text.find(kEscape); at != std::string_view::npos;
       at = text.find(kEscape, at + 1)) {
    const std::size_t size = paint_size(text.substr(at));
    if (size == 0) continue;
    safe.append(printable(text.substr(from, at - from))).append(text.substr(at, size));
    from = at + size;
  }
  safe += printable(text.substr(from));
  std::fwrite(safe.data(), 1, safe.size(), out);
}

Terminal Terminal::of(int fd) {
  Terminal terminal;
  terminal.is_tty = ::isatty(fd) == 1;
  if (!terminal.is_tty) return terminal;
  terminal.color = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  terminal.width = width_of(fd);
  return terminal;
}

std::string Terminal::paint(Paint paint, std::string_view text) const {
  if (!color || text.empty()) return std::string(text);
  std::string painted("\x1b[");
  return painted.append(code_of(paint)).append("m").append(text).append("\x1b[0m");
}

std::string Terminal::wrap(std::string_view text) const {
  if (width == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    wrap_line(text.substr(0, end), width, out);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Terminal::cut(std::string_view text) const {
  if (width == 0 || columns_of(text) <= width) return std::string(text);
  std::string out;
  for (std::size_t column = 0; !text.empty();) {
    const std::string_view unit = text.substr(0, unit_size(text));
    text.remove_prefix(unit.size());
    // Escape sequences behind the cut stay: one of them ends the colour.
    if (unit.front() == kEscape) {
      out += unit;
    } else if (++column < width) {
      out += unit;
    } else if (column == width) {
      out += "…";
    }
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::string_view unit = text.substr(0, unit_size(text));
    if (unit.front() != kEscape) ++columns;
    text.remove_prefix(unit.size());
  }
  return columns;
}

}  // namespace assay
