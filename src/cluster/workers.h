#pragma once

// Workers that a scheduler places on many machines: what each of them is told.

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

// Long-lived workers: each takes cases until none is left. A case is never a task of its own, for a
// scheduler starts some twenty tasks a second.
struct Workers {
  std::string name = "assay";
  std::uint32_t count = 1;
  std::string program;                 // where the machines find it
  std::string store;                   // a database; empty: each takes a part of the corpus
  std::string log_dir;                 // of all; each has a folder in it
  std::vector<std::string> arguments;  // of each, beside store, part and folder
};

// The words of one of them, which knows its number (from 1 on) as `number`: a shell's "$VARIABLE"
// or what else the scheduler puts in.
std::vector<std::string> words_of(const Workers& workers, const std::string& number);

}  // namespace assay
