#pragma once

// The test material and scratch folders.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace assay::chain {

// The TIPC material, or an empty path if this machine has none; tests that need it then skip.
inline std::filesystem::path tipc_material() {
  const char* named = std::getenv("ASSAY_SHARED");
  const std::filesystem::path shared =
      named != nullptr ? named : std::filesystem::path(ASSAY_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path tipc = std::filesystem::weakly_canonical(shared / "tipc");
  return std::filesystem::exists(tipc / "cases") ? tipc : std::filesystem::path();
}

#define ASSAY_NEED_TIPC(name)                         \
  const std::filesystem::path name = tipc_material(); \
  if (name.empty()) GTEST_SKIP() << "needs the TIPC material (ASSAY_SHARED)"

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::string file_text(const std::vector<std::string>& lines, const std::string& end = "\n") {
  std::string text;
  for (const std::string& line : lines) text += line + end;
  return text;
}

inline void put(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// A temporary folder that the destructor removes.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "assay_chain_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay::chain
