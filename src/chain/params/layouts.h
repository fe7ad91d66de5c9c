#pragma once

// What each kind of params file holds, line by line: one table a kind. A new kind is a new table.

#include <array>
#include <span>
#include <string_view>

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
  bool nullable = true;  // `null:null` may stand here
  std::string_view also =
      {};                  // `|` list of keys that an open place takes though they anchor another
  bool group_too = false;  // older files have a `##` line here
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

enum class Kind {
  train_infer,
  train_infer_long,
  ptq,
  kl_quant,
  cpp_infer,
  cpp_config,
  onnx,
  onnx_pair,
  serving_python,
  serving_cpp,
  serving_pair,
  serving_cpp_pair,
  lite,
  lite_pair,
  recipe  // what runs is said by the dialect's own recipe
};

// Where a suite's files come from, and how they are known.
struct Suite {
  std::string_view name;
  std::string_view repository;
  std::string_view commit;
  std::string_view folders;  // `|` list of names on the way to its files, or beside them
  std::string_view shared;   // recipe statements for all its kinds
};

struct Layout {
  Kind kind;
  std::string_view name;
  std::span<const SectionLayout> sections;
  std::string_view modes;  // `|` list of the MODE arguments that it can run
  Separator separator = Separator::colon;
  const Suite* suite = nullptr;
  std::string_view script = {};  // of the suite: where the layout was read from
  std::string_view recipe = {};  // statements of plan/recipe.h, for Kind::recipe
  int recipe_line = 0;           // of the dialect's file
  bool cut = false;              // the suite's bash loses what stands after a value's first colon
};

// All layouts of all dialects.
std::span<const Layout> layouts();

// Every mode that any kind runs, and the modes that a `mode=value` list may name.
bool is_known_mode(std::string_view mode);
std::span<const std::string_view> known_modes();

}  // namespace assay::chain::params
