#include "chain/script/rehearse.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "chain/script/shim_folder.h"
#include "chain/stage/stage_run.h"
#include "material.h"

namespace assay::chain::script {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace fs = std::filesystem;

// A project with one script, and a folder beside it that the script must not change.
class RehearsalTest : public testing::Test {
 protected:
  RehearsalTest() {
    put(outside() / "kept", "kept\n");
    ::setenv("OUTSIDE", outside().c_str(), 1);
    ::setenv("ASSAY_KEEP_ENVIRONMENT", "OUTSIDE,PORT", 1);
  }

  fs::path project() const { return scratch_.path() / "project"; }
  fs::path outside() const { return scratch_.path() / "outside"; }

  Result<Rehearsal> rehearse_script(const std::string& text, RehearsalOptions options = {}) {
    put(project() / "run.sh", text);
    options.command = {"bash", "run.sh"};
    options.project = project().string();
    if (options.shim.empty()) options.shim = ASSAY_SHIM;
    return rehearse(options);
  }

  Rehearsal good(const std::string& text, RehearsalOptions options = {}) {
    auto done = rehearse_script(text, std::move(options));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done ? *done : Rehearsal{};
  }

 private:
  Scratch scratch_;
};

std::vector<std::vector<std::string>> argvs(const std::vector<Command>& commands) {
  std::vector<std::vector<std::string>> all;
  for (const Command& command : commands) all.push_back(command.argv);
  return all;
}

TEST_F(RehearsalTest, RecordsCommandsInOrderWithWhatTheScriptGivesThem) {
  const Rehearsal done = good(R"(
mkdir -p logs sub
export CUDA_VISIBLE_DEVICES=0
python3.7 train.py --name='two words' "" > logs/train.log 2>&1
unset CUDA_VISIBLE_DEVICES
cd sub; FLAGS_x=1 python eval.py 2>&1 | tee eval.log
for size in 1 2; do
  python infer.py --root=$(pwd)/x --size=$size || exit 3
done
)");
  const std::string root = fs::canonical(project()) / "sub/x";
  EXPECT_THAT(argvs(done.commands),
              ElementsAre(ElementsAre("python3.7", "train.py", "--name=two words", ""),
                          ElementsAre("python", "eval.py"),
                          ElementsAre("python", "infer.py", "--root=" + root, "--size=1"),
                          ElementsAre("python", "infer.py", "--root=" + root, "--size=2")));
  EXPECT_THAT(done.commands[0].environment, ElementsAre("CUDA_VISIBLE_DEVICES=0"));
  EXPECT_EQ(done.commands[0].log, "logs/train.log");
  EXPECT_EQ(done.commands[0].folder, "");
  EXPECT_THAT(done.commands[1].environment, ElementsAre("FLAGS_x=1"));
  EXPECT_EQ(done.commands[1].log, "");
  EXPECT_EQ(done.commands[1].folder, "sub");
  EXPECT_EQ(done.code, 0);
  EXPECT_FALSE(fs::exists(project() / "logs"));  // made in the copy alone
}

// A script may ask Python for what decides its way.
TEST_F(RehearsalTest, TheStandardLibraryAnswers) {
  const Rehearsal done = good(R"sh(
n=$(python3 -c 'import json, sys; print(json.loads("[2, 3]")[int(sys.argv[1])])' 1)
[ "$n" = 3 ] && python train.py
[ -z "$(python3 -c 'import no_such_package; print(1)')" ] && python eval.py
)sh");
  EXPECT_THAT(argvs(done.commands),
              ElementsAre(Contains("train.py"), Contains("-c"), Contains("eval.py")));
}

TEST_F(RehearsalTest, MakesTheFilesThatTheScriptLooksFor) {
  RehearsalOptions options;
  options.makes = {"best/model.pdparams"};
  const Rehearsal done = good(R"(
python train.py --save_dir=./out/a.log
[ -f ./out/a.log/best/model.pdparams ] && python export.py -o save_inference_dir=./out/infer
[ -f ./out/infer/inference.pdmodel ] && python infer.py
[ -d ./none ] && python never.py
)",
                              options);
  EXPECT_THAT(argvs(done.commands),
              ElementsAre(Contains("train.py"), Contains("export.py"), Contains("infer.py")));
}

TEST_F(RehearsalTest, HelpersDoNothingAndAreListed) {
  const Rehearsal done = good(R"(
wget https://example.com/x.tar
python -m pip install x
sleep 600
kill -9 $PPID
git clone https://example.com/x
)");
  EXPECT_THAT(done.commands, IsEmpty());
  EXPECT_THAT(argvs(done.helpers), ElementsAre(Contains("wget"), Contains("pip"), Contains("sleep"),
                                               Contains("kill"), Contains("clone")));
}

TEST_F(RehearsalTest, ProgramsOfTheFileAreTheShimToo) {
  put(project() / "deploy/build/infer", "#!/bin/sh\nexit 9\n");
  RehearsalOptions options;
  options.programs = {"my_converter", "./deploy/build/infer"};
  const Rehearsal done = good(
      "my_converter a && ./deploy/build/infer b\n"
      "rm -r deploy/build; mkdir deploy/build; make; ./deploy/build/infer c\n",
      options);
  EXPECT_THAT(argvs(done.commands), ElementsAre(ElementsAre("my_converter", "a"),
                                                ElementsAre("./deploy/build/infer", "b"),
                                                ElementsAre("./deploy/build/infer", "c")));
}

TEST_F(RehearsalTest, AScriptMayEditTheCopy) {
  put(project() / "conf.yml", "a: 1\n");
  const Rehearsal done = good(R"sh(
sed -i 's/a: 1/a: 2/' conf.yml; echo 'b: 3' >> conf.yml
python train.py "$(tr '\n' ' ' < conf.yml)"
)sh");
  EXPECT_THAT(argvs(done.commands), ElementsAre(ElementsAre("python", "train.py", "a: 2 b: 3 ")));
  EXPECT_EQ(slurp(project() / "conf.yml"), "a: 1\n");
}

TEST_F(RehearsalTest, NothingHappensOutsideOfTheScratchFolder) {
  put(project() / "large.bin", std::string(200'000, 'x'));
  // The user that root becomes owns it, so that Landlock alone protects it.
  constexpr uid_t kUserOfSandbox = 64'921;
  for (const fs::path& path : {outside(), outside() / "kept", project() / "large.bin"}) {
    if (::geteuid() != 0) continue;
    ASSERT_EQ(::chown(path.c_str(), kUserOfSandbox, kUserOfSandbox), 0);
  }
  struct stat before {};
  ASSERT_EQ(::stat((outside() / "kept").c_str(), &before), 0);
  good(R"(
echo x > "$OUTSIDE/new"
echo x >> "$OUTSIDE/kept"
truncate -s 0 "$OUTSIDE/kept"
chmod 777 "$OUTSIDE/kept"; touch -d 2001-01-01 "$OUTSIDE/kept"
mv "$OUTSIDE/kept" "$OUTSIDE/moved"; ln "$OUTSIDE/kept" "$OUTSIDE/linked"
rm -rf "$OUTSIDE"
echo x >> large.bin
)");
  EXPECT_EQ(slurp(outside() / "kept"), "kept\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(outside()), fs::directory_iterator()), 1);
  EXPECT_EQ(fs::file_size(project() / "large.bin"), 200'000U);
  struct stat after {};
  ASSERT_EQ(::stat((outside() / "kept").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
}

// In a child with a terminal of its own, because this process may not lose its terminal.
std::string rehearsed_on_terminal(const std::function<std::string(const std::string&)>& run) {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(::grantpt(terminal.get()) | ::unlockpt(terminal.get()), 0);
  const std::string path = ::ptsname(terminal.get());
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const int own = ::open(path.c_str(), O_RDWR);  // becomes the controlling terminal
    const std::string printed = own < 0 ? "no terminal" : run(path);
    (void)!::write(ends[1], printed.data(), printed.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string printed;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(ends[0], buffer.data(), buffer.size())) > 0)
    printed.append(buffer.data(), got);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return printed;
}

// Keys that a script types into a terminal would be run by the user's shell.
TEST_F(RehearsalTest, AScriptHasNoTerminalToTypeInto) {
  const std::string printed = rehearsed_on_terminal([&](const std::string& path) {
    return good(
               "/usr/bin/python3 - << 'END'\n"
               "import fcntl, os, termios\n"
               "for path in '/dev/tty', '" +
               path +
               "':\n"
               "    try:\n"
               "        terminal = os.open(path, os.O_RDONLY)\n"
               "        if path == '/dev/tty': print('has a terminal')\n"
               "    except OSError: continue\n"
               "    for request in (termios.TIOCSTI, termios.TIOCLINUX, termios.TIOCOUTQ):\n"
               "        try: print('has typed', fcntl.ioctl(terminal, request, b'\\2'))\n"
               "        except OSError as error: print('refused', error.errno)\n"
               "END\n")
        .printed;
  });
  EXPECT_THAT(printed, Not(HasSubstr("has ")));
  EXPECT_THAT(printed, HasSubstr("refused 25\nrefused 25\nrefused 25\n"));  // by seccomp
}

TEST_F(RehearsalTest, AScriptThatFillsTheDiskIsEnded) {
  const auto done =
      rehearse_script("while :; do n=$((n + 1)); head -c 60000000 /dev/zero > $n; done\n");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("makes more than 100,000 files or 1 GiB"));
}

// Nor does a stage of a real run.
TEST_F(RehearsalTest, AStageHasNoTerminal) {
  constexpr const char* kTry = "(exec 3</dev/tty) 2>/dev/null && echo found || echo nothing";
  const fs::path log = outside() / "stage.log";
  const std::string found = rehearsed_on_terminal([&](const std::string&) {
    EXPECT_EQ(std::system(kTry), 0);
    stage::StageCommand command;
    command.argv = {"bash", "-c", kTry};
    command.log = log.string();
    auto run = stage::StageRun::start(command, {}, nullptr);
    while (run && !run->tick()) ::usleep(10'000);
    return slurp(log);
  });
  EXPECT_EQ(found, "nothing\n");
}

TEST_F(RehearsalTest, AReadOnlyDescriptorChangesNothing) {
  const std::string printed =
      good(
          "/usr/bin/python3 - << 'END'\n"
          "import fcntl, os\n"
          "kept = os.environ['OUTSIDE'] + '/kept'\n"
          "file = os.open(kept, os.O_RDONLY)\n"
          "for call in (lambda: os.open(kept, os.O_RDONLY | os.O_TRUNC),\n"
          "             lambda: os.open(kept, os.O_ACCMODE | os.O_TRUNC),\n"
          "             lambda: fcntl.ioctl(file, 0x40086602, bytes(8)),\n"
          "             lambda: fcntl.ioctl(file, 0x401c5820, bytes(28))):\n"
          "    try: print('done', call())\n"
          "    except OSError as error: print('refused', error.errno)\n"
          "END\n")
          .printed;
  EXPECT_THAT(printed, testing::EndsWith("refused 1\nrefused 1\nrefused 25\nrefused 25\n"));
  EXPECT_EQ(read_file(outside() / "kept").value(), "kept\n");
}

TEST_F(RehearsalTest, ThereIsNoNetwork) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::setenv("PORT", std::to_string(ntohs(address.sin_port)).c_str(), 1);
  const Rehearsal done = good(
      "(exec 3<>/dev/tcp/127.0.0.1/$PORT) && python connected.py\n"
      "echo port $PORT\n");
  EXPECT_THAT(done.commands, IsEmpty());
  EXPECT_THAT(done.printed, HasSubstr("port " + std::to_string(ntohs(address.sin_port))));
}

TEST_F(RehearsalTest, SignalsReachNobodyAndSecretsAreGone) {
  ::setenv("database_url", "hunter2", 1);
  const Rehearsal done = good(
      "builtin kill -9 $PPID -1; builtin kill -9 $$\n"
      "python after.py \"$database_url\"\n");
  EXPECT_THAT(argvs(done.commands), ElementsAre(ElementsAre("python", "after.py", "")));
  ::unsetenv("database_url");
}

// The command lines of all processes.
std::vector<std::string> command_lines() {
  std::vector<std::string> lines;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    lines.push_back(slurp(entry.path() / "cmdline"));
  }
  return lines;
}

TEST_F(RehearsalTest, AForkBombEndsWithTheScript) {
  put(project() / "bomb_of_test.sh", "bash bomb_of_test.sh & bash bomb_of_test.sh & sleep 1\n");
  const Rehearsal done = good("bash bomb_of_test.sh\npython after.py\n");
  EXPECT_THAT(command_lines(), Not(Contains(HasSubstr("bomb_of_test"))));
}

TEST_F(RehearsalTest, AnEndlessScriptIsEnded) {
  RehearsalOptions options;
  options.limit = std::chrono::seconds(1);
  const auto done = rehearse_script("python a.py\nwhile :; do :; done\n", options);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("did not end within 1 s"));
}

TEST_F(RehearsalTest, AKernelThatCannotShutInIsNamed) {
  const fs::path shim = project() / "old_kernel";
  put(shim,
      "#!/bin/sh\n[ \"$2\" = --trust ] && exit 0\n"
      "echo 'assay-shim: the kernel lacks Landlock' >&2; exit 125\n");
  fs::permissions(shim, fs::perms::owner_exec, fs::perm_options::add);
  RehearsalOptions options;
  options.shim = shim.string();
  const auto refused = rehearse_script("true\n", options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the kernel lacks Landlock. --trust-script"));
  options.trusted = true;
  EXPECT_TRUE(rehearse_script("true\n", options));
}

TEST_F(RehearsalTest, OfAProjectThatHasTheFolderForTemporaryFiles) {
  put(project() / "tmp" / "file", "");
  ::setenv("TMPDIR", (project() / "tmp").c_str(), 1);
  const Rehearsal done = good("python train.py $(ls tmp)\n");
  ::unsetenv("TMPDIR");
  EXPECT_THAT(argvs(done.commands), ElementsAre(ElementsAre("python", "train.py", "file")))
      << done.printed;
}

// A process that is killed cannot remove its folder; the next one does. Folders of living processes
// and of strangers stay.
TEST(ShimFolder, OfAKilledProcessIsRemovedByTheNext) {
  const Scratch scratch;
  ::setenv("TMPDIR", scratch.path().c_str(), 1);
  const auto child = [](bool lives) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto folder = ShimFolder::create(ASSAY_SHIM);
      (void)!::write(ready[1], folder ? "+" : "-", 1);
      if (lives) ::pause();
      ::kill(::getpid(), SIGKILL);
    }
    ::close(ready[1]);
    char made = 0;
    EXPECT_EQ(::read(ready[0], &made, 1), 1);
    EXPECT_EQ(made, '+');
    ::close(ready[0]);
    if (!lives) ::waitpid(pid, nullptr, 0);
    return pid;
  };
  const auto count = [&] {
    return std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator());
  };
  const pid_t alive = child(true);
  child(false);
  EXPECT_EQ(count(), 2);
  put(scratch.path() / "assay-shim-of-another" / "kept", "");
  {
    const auto folder = ShimFolder::create(ASSAY_SHIM);
    EXPECT_TRUE(folder);
    EXPECT_EQ(count(), 3);  // the living one's, the stranger's, its own
  }
  EXPECT_EQ(count(), 2);
  ::kill(alive, SIGKILL);
  ::waitpid(alive, nullptr, 0);
  { const auto folder = ShimFolder::create(ASSAY_SHIM); }
  EXPECT_EQ(count(), 1);
  EXPECT_TRUE(fs::exists(scratch.path() / "assay-shim-of-another" / "kept"));
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace assay::chain::script
