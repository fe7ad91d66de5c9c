#pragma once

// Dialects: how the params files of one suite (a repository) are laid out. Each is one file of
// data, src/chain/params/dialects/NAME.dialect, which is part of the program.
//
//   dialect NAME                    the suite
//   repository URL                  where its scripts were read, and at which
//   commit HASH
//   folders A|B                     names on the way to its files, or beside them
//   kind NAME                       one kind of params file:
//   script PATH HASH                a script of the suite that reads it, and its hash
//   modes A|B                       the modes that it runs
//   separator blank                 lines are `key value`
//   short_status                    its status lines do not end with the log's name
//   as_many ONE OTHER               two roles list as many values; `as_many?`: a warning only
//   among ROLE TRAINERS             the key of ROLE must be one that TRAINERS lists
//   section NAME                    `section?`: may be absent; `as PREFIX`: stands before its roles
//     ROLE RULE = KEYS              a place with a fixed key, `|` between alternatives; among them
//                                   `null` and `##` where these may stand there
//     ROLE RULE ~ KEYS              a place whose key is free; KEYS are the usual ones
//     ROLE RULE * EXAMPLE (WORDS)   the same, where nobody knows the keys: usual ones hold a word
//     ROLE RULE? …                  the line may be absent
//     ##                            a group line
//
// RULE is a name of Rule, or `words:A,B` for a list of these words.

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chain/params/layouts.h"

namespace assay::chain::params {

struct Dialect {
  Dialect() = default;
  // Never copied: the layouts' spans would show the old places.
  Dialect(Dialect&&) noexcept = default;
  Dialect& operator=(Dialect&&) noexcept = default;

  Suite suite;
  std::vector<Layout> layouts;
  // What the layouts' spans show.
  std::deque<std::vector<Place>> places;
  std::deque<std::vector<SectionLayout>> sections;
  std::deque<std::string> texts;
};

// Reads a dialect's text, which must outlive the result. Its layouts name no suite yet.
Result<Dialect> read_dialect(std::string_view text);

// The texts that are part of the program.
std::span<const std::string_view> dialect_texts();

// The hash of a text in 16 hexadecimal digits (FNV-1a, 64 bits).
std::string hash_of(std::string_view text);

// Dialects that files are read by.
class Dialects {
 public:
  // Those that are part of the program.
  static const Dialects& known();
  // A user's own, alone.
  static Result<Dialects> of_file(const std::string& path);

  std::span<const Layout> layouts() const { return layouts_; }
  // The name of the suite that has this script as assay read it; "" if none has.
  std::string_view suite_of_script(std::string_view hash) const;
  // What a `mode=value` list may name: every mode that one of the kinds runs.
  std::span<const std::string_view> modes() const { return modes_; }

 private:
  void add(Dialect dialect);

  std::unique_ptr<std::string> text_;  // of a user's own
  std::deque<Dialect> dialects_;       // layouts show their places: they must not move
  std::vector<Layout> layouts_;
  std::vector<std::string_view> modes_;
};

}  // namespace assay::chain::params
