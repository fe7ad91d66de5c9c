#pragma once

// What each kind of params file holds, line by line. The tables come from the dialects' files
// (dialect.h).

#include <span>
#include <string_view>
#include <vector>

#include "chain/params/params_text.h"

namespace assay::chain::params {

// What a value must look like (value_rules.cc checks it).
enum class Rule {
  any,         // free text; nothing or `null` leaves the argument out
  text,        // free text, but something
  command,     // words of a command line, or null
  maybe,       // words of a command line; null or nothing leaves the stage out
  program,     // words of a command line, not null
  flag,        // one True/False/null or nothing
  flags,       // `|` list of True, False or null
  device,      // `|` list of True/False/cpu/gpu/null: what training is told
  devices,     // `|` list of True/False/cpu/gpu: what inference runs on, at least one
  gpu_list,    // `|` list of -1, 0, 0,1 or ip,ip;0,1
  autocast,    // `|` list of null, fp32, fp16, amp, True, False
  trainers,    // `|` list of trainers
  by_mode,     // mode=N|mode=N with N of at least 1, or null
  counts,      // `|` list of positive whole numbers or null, at least one
  count,       // one whole number, or null
  precisions,  // `|` list of fp32, fp16, bf16, int8 or null, at least one
  list,        // `|` list, at least one
  commands,    // `|` list of commands; null or nothing leaves the stage out
  settings,    // `;` list of NAME=value, or null
  port,        // 1 to 65535
  words,       // `|` list of words that the place names
  number,      // one whole number of at least 1, or null
  numbers,     // the same, or `|` list of mode=N
  ignored,     // the suite reads it elsewhere or not at all
};

struct Place {
  std::string_view role;     // the name that the rest of the code asks for; "" for a `##` line
  std::string_view key;      // fixed key, `a|b` for either; "" where the key is free
  std::string_view example;  // a usual key, for messages
  std::string_view hints;    // `|` list of words that usual keys of a free place hold
  Rule rule = Rule::any;
  bool nullable = true;         // `null:null` may stand here
  bool group_too = false;       // older files have a `##` line here
  std::string_view usual = {};  // `|` list of keys of an open place, as its suite's files have them
  std::string_view words = {};  // `|` list of what Rule::words takes
  bool optional = false;        // the line may be absent
};

struct SectionLayout {
  std::string_view name;  // "" for a kind without headings
  std::span<const Place> places;
  bool optional = false;
  std::string_view prefix = {};  // stands before the roles of its places
};

// Where a suite's files come from, and how they are known.
struct Suite {
  std::string_view name;
  std::string_view repository;
  std::string_view commit;
  std::string_view folders;  // `|` list of names on the way to its files, or beside them
};

// Two lists that belong together, entry by entry.
struct Pairing {
  std::string_view one;
  std::string_view other;
  bool advisory = false;  // a warning only, and a single entry stands for all
};

// A suite's script, and the hash of the text that the layout was read from (hash_of).
struct KnownScript {
  std::string_view path;
  std::string_view hash;  // "": unknown
};

struct Layout {
  std::string_view name;
  std::span<const SectionLayout> sections;
  std::string_view modes;  // `|` list of the MODE arguments that it can run
  Separator separator = Separator::colon;
  const Suite* suite = nullptr;
  std::vector<KnownScript> scripts = {};  // of the suite: where the layout was read from
  bool short_status = false;              // its status lines do not end with the log's name
  std::vector<Pairing> pairings = {};
  std::string_view own_command = {};   // this role's key must be one of those
  std::string_view own_trainers = {};  // that this one lists
};

}  // namespace assay::chain::params
