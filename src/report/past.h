#pragma once

// What was known before a run: a past run, or a baseline file of one (report/load_past.h).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "verdict/timings.h"

namespace assay {

struct PastCase {
  Outcome outcome = Outcome::pass;
  bool flaky = false;
  std::vector<TimedPart> timings = {};  // of a run that timed its cases
  float seconds = 0;  // call and gradients in the test lane, under usual values; 0: not known
};

struct PastRun {
  std::string name;                               // where it was read from
  std::map<std::string, std::string> properties;  // mode, seed, versions …
  std::unordered_map<std::uint64_t, PastCase> cases;
  // Of a run in a database, its address: what came of its cases is not among `cases`, and looked up
  // or read by load_cases() (report/load_past.h) when it is wanted.
  std::string database;
  // A baseline says nothing of cases that passed: one that is not among `cases` passed or was not
  // there.
  bool only_what_did_not_pass = false;
};

// Lines that are no cases have no id; that of their text stands for one.
std::uint64_t invalid_line_id(const InvalidLine& line);

// Empty where the record has no timings, or cannot be read.
std::vector<TimedPart> timings_of(std::span<const std::uint8_t> record);

// Seconds of the call and its gradients in the test lane under usual values; 0: not known.
double seconds_of_test(std::span<const std::uint8_t> record);

}  // namespace assay
