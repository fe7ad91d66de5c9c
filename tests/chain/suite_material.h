#pragma once

// The params files of six public suites with what each suite's own bash ran (shared material),
// unpacked once for a test program.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/text.h"
#include "material.h"

namespace assay::chain {

// One run of the bash.
struct SuiteRun {
  std::string suite;
  std::string file;  // its path, with __ for /
  std::string kind;
  std::string tag;
  std::string folder;  // where in the suite the script ran
  std::string arguments;

  // The file's path below the folder.
  std::string path() const {
    std::string path = file;
    for (std::size_t at = 0; (at = path.find("__", at)) != std::string::npos;)
      path.replace(at, 2, "/");
    return path.substr(path.find("test_tipc/"));
  }
  std::string mode() const {
    const std::vector<std::string> words = split_at(arguments, ' ');
    if (!words.empty() && !words.front().empty()) return words.front();
    return kind == "lite_arm" ? "lite_infer"
           : kind == "cpp"    ? "cpp_infer"
                              : "lite_train_lite_infer";
  }
  std::string third() const {
    const std::vector<std::string> words = split_at(arguments, ' ');
    return words.size() > 1 ? words[1] : "";
  }
};

class SuiteMaterial {
 public:
  explicit SuiteMaterial(const std::filesystem::path& tipc) {
    SpawnOptions options;
    options.argv = {"tar", "-xf", (tipc / "suites/suites.tar.xz").string(), "-C",
                    scratch_.path().string()};
    auto process = Process::spawn(options);
    if (!process || !process->wait()) return;
    for (const std::string& line : split_at(slurp(root() / "INDEX.tsv"), '\n')) {
      const std::vector<std::string> cells = split_at(line, '\t');
      if (cells.size() < 7 || cells[0] == "repo") continue;
      runs_.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[6]});
    }
  }

  const std::vector<SuiteRun>& runs() const { return runs_; }
  std::filesystem::path root() const { return scratch_.path(); }
  std::string text(const SuiteRun& run) const {
    return slurp(root() / run.suite / "params" / run.file);
  }
  // What the bash ran, a JSON object a line.
  std::string commands(const SuiteRun& run) const {
    return slurp(root() / run.suite / "argv" /
                 (run.file + (run.tag.empty() ? "" : "." + run.tag) + ".argv"));
  }

 private:
  Scratch scratch_;
  std::vector<SuiteRun> runs_;
};

#define ASSAY_NEED_SUITES(name)                                            \
  ASSAY_NEED_TIPC(tipc_of_##name);                                         \
  if (!std::filesystem::exists(tipc_of_##name / "suites/suites.tar.xz")) { \
    GTEST_SKIP() << "needs the suites of the TIPC material (tipc/suites)"; \
  }                                                                        \
  const SuiteMaterial name(tipc_of_##name);                                \
  ASSERT_FALSE(name.runs().empty()) << "tar could not unpack suites.tar.xz"

}  // namespace assay::chain
