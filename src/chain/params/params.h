#pragma once

// A parsed and checked params file.

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
  // Key and value of a role of the layout; "" if its optional section is absent.
  std::string_view key(std::string_view role) const { return find(role).key; }
  std::string_view value(std::string_view role) const { return find(role).value; }
  std::vector<std::string> list(std::string_view role) const;  // the value split at `|`
  bool has(std::string_view role) const { return lines_.contains(role); }
  int line(std::string_view role) const { return find(role).line; }
  // The role's whole line as written.
  std::string_view text(std::string_view role) const { return find(role).text; }
  // True if the kind can run this mode.
  bool runs(std::string_view mode) const;

 private:
  friend struct ParamsBuilder;
  const Line& find(std::string_view role) const;

  const Layout* layout_ = nullptr;
  std::map<std::string, Line, std::less<>> lines_;  // by role
};

struct ParsedParams {
  Params params;                  // valid only if good()
  std::vector<Problem> problems;  // sorted by line
  bool good() const;
};

// What is known about a file besides its text.
struct Origin {
  std::string path;                               // a hint at the dialect; "": unknown
  std::string dialect;                            // the dialect that it must have; "": detect it
  const Dialects* dialects = &Dialects::known();  // the possible dialects; must outlive the result
  std::vector<std::string> machines = {};  // replace the machines in gpu_list; empty: keep them
  std::vector<std::string> gpus = {};      // the same for its GPUs
};

// Parses a params file: finds the kind whose layout fits best, aligns the lines with it and checks
// every value. Never fails; errors are in the problems.
ParsedParams parse_params(std::string_view text, const Origin& origin = {});

// One "file:line:column: message" per line, as compilers print them.
std::string describe(std::string_view file, const std::vector<Problem>& problems);

// Reads and parses the file at `origin.path`. If it is not good, the error has all problems.
// Warnings are appended to `warnings` if it is not null.
Result<Params> load_params(const Origin& origin, std::string* warnings = nullptr);

// The result of `assay chain check` for one file.
struct CheckedFile {
  bool good = false;
  std::string suite;  // of the best layout, even if the file is refused
  std::string kind;
  std::string modes;
  std::string told;  // the text of its problems and warnings
};
// Reads and checks a file for `assay chain check`; an unreadable file is a problem.
CheckedFile check_file(const Origin& origin);

}  // namespace assay::chain::params
