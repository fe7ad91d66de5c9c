#pragma once

// A params file that has been read and understood.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/params/dialect.h"
#include "chain/params/params_text.h"

namespace assay::chain::params {

class Params {
 public:
  const Layout& layout() const { return *layout_; }
  // Key and value of a role of the layout; empty where an optional section is absent.
  std::string_view key(std::string_view role) const { return find(role).key; }
  std::string_view value(std::string_view role) const { return find(role).value; }
  std::vector<std::string> list(std::string_view role) const;  // split at `|`
  bool has(std::string_view role) const { return lines_.contains(role); }
  int line(std::string_view role) const { return find(role).line; }
  // The role's whole line, as it stands in the file.
  std::string_view text(std::string_view role) const { return find(role).text; }
  // Whether the kind can run a MODE.
  bool runs(std::string_view mode) const;

 private:
  friend struct ParamsBuilder;
  const Line& find(std::string_view role) const;

  const Layout* layout_ = nullptr;
  std::map<std::string, Line, std::less<>> lines_;  // by role
};

struct ParsedParams {
  Params params;                  // to be used only when good()
  std::vector<Problem> problems;  // by line
  bool good() const;
};

// What is known of a file beside its text.
struct Origin {
  std::string path;     // its folders are a hint at its dialect; empty: not known
  std::string dialect;  // the dialect that it must have; empty: found out
  const Dialects* dialects = &Dialects::known();  // those that it may have; must outlive the result
  std::vector<std::string> machines = {};  // instead of those that its gpu_list names; none: these
};

// Reads the text of a params file: finds the kind whose layout fits best, lays the lines along it
// and checks every value. Never fails; what is wrong is in the problems.
ParsedParams parse_params(std::string_view text, const Origin& origin = {});

// "file:line:column: message" lines, as a compiler prints them.
std::string describe(std::string_view file, const std::vector<Problem>& problems);

// Reads and parses the file at `origin.path`; an error with all problems when it is not good.
// Warnings are added to `warnings` where that is given.
Result<Params> load_params(const Origin& origin, std::string* warnings = nullptr);

// One file of `assay chain check`.
struct CheckedFile {
  bool good = false;
  std::string suite;  // of the layout that fits best, also of a refused file
  std::string kind;
  std::string modes;
  std::string told;  // its problems and warnings
};
CheckedFile check_file(const Origin& origin);

}  // namespace assay::chain::params
