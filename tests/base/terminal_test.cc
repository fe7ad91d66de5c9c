// Colour and width are those of a real terminal: a pseudo-terminal of the kernel.

#include "base/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/fd.h"

namespace assay {
namespace {

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

struct Console {
  Fd master{::posix_openpt(O_RDWR | O_NOCTTY)};
  Fd side;

  explicit Console(unsigned short columns) {
    ::grantpt(master.get());
    ::unlockpt(master.get());
    side = Fd(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
    winsize size{};
    size.ws_col = columns;
    ::ioctl(side.get(), TIOCSWINSZ, &size);
  }
};

class TerminalTest : public ::testing::Test {
 protected:
  Variable no_color_{"NO_COLOR", nullptr};
  Variable columns_{"COLUMNS", nullptr};
  Variable term_{"TERM", "xterm"};
};

TEST_F(TerminalTest, AConsoleHasColourAndItsWidth) {
  const Console console(100);
  const Terminal terminal = Terminal::of(console.side.get());
  EXPECT_TRUE(terminal.is_tty);
  EXPECT_EQ(terminal.width, 100U);
  EXPECT_EQ(terminal.paint(Paint::red, "crash"), "\x1b[31mcrash\x1b[0m");
}

TEST_F(TerminalTest, NoColorDumbAndColumnsAreObeyed) {
  const Console console(100);
  const int fd = console.side.get();
  {
    const Variable no_color("NO_COLOR", "1");
    EXPECT_EQ(Terminal::of(fd).paint(Paint::red, "crash"), "crash");
  }
  {
    const Variable empty("NO_COLOR", "");  // no-color.org: set and not empty
    EXPECT_TRUE(Terminal::of(fd).color);
  }
  {
    const Variable dumb("TERM", "dumb");
    EXPECT_FALSE(Terminal::of(fd).color);
  }
  {
    const Variable columns("COLUMNS", "60");
    EXPECT_EQ(Terminal::of(fd).width, 60U);
  }
  const Variable nonsense("COLUMNS", "60x");
  EXPECT_EQ(Terminal::of(fd).width, 100U);
}

TEST_F(TerminalTest, AFileHasNeither) {
  const Variable columns("COLUMNS", "60");
  const Fd file(::open("/dev/null", O_WRONLY));
  const Terminal terminal = Terminal::of(file.get());
  EXPECT_FALSE(terminal.is_tty);
  EXPECT_EQ(terminal.paint(Paint::red, "crash"), "crash");
  const std::string line(300, 'a');
  EXPECT_EQ(terminal.wrap(line + " b"), line + " b");
  EXPECT_EQ(terminal.cut(line), line);
}

TEST(TerminalText, LinesBreakAtWordsAndKeepTheirIndent) {
  const Terminal terminal{.width = 20};
  EXPECT_EQ(terminal.wrap("  one two three four five\nsix\n"),
            "  one two three four\n  five\nsix\n");
  EXPECT_EQ(terminal.wrap("exactly twenty chars"), "exactly twenty chars");
  EXPECT_EQ(terminal.wrap("a     12  mismatch  b"), "a     12  mismatch\nb");
  // A path that is longer than a line stays whole, to be copied.
  EXPECT_EQ(terminal.wrap("see /a/very/long/path/to/a/log now"),
            "see\n/a/very/long/path/to/a/log\nnow");
  // Colour takes no columns, and a character one, whatever its bytes.
  EXPECT_EQ(terminal.wrap("\x1b[31mone two three\x1b[0m four ·"),
            "\x1b[31mone two three\x1b[0m four ·");
}

TEST(TerminalText, ACutLineFitsAndEndsItsColour) {
  const Terminal terminal{.width = 10};
  EXPECT_EQ(terminal.cut("0123456789"), "0123456789");
  EXPECT_EQ(terminal.cut("0123456789a"), "012345678…");
  EXPECT_EQ(terminal.cut("\x1b[31m0123456789ab\x1b[0m"), "\x1b[31m012345678…\x1b[0m");
}

}  // namespace
}  // namespace assay
