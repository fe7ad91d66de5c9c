#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

// Long-lived workers that a scheduler places on many machines; each takes cases until none is left.
// A case is not a task of the scheduler, which can start only some twenty tasks a second.
struct Workers {
  std::string name = "assay";
  std::uint32_t count = 1;
  std::string program;  // path of assay on the machines
  std::string store;    // address of the database; "": each worker takes a part of the corpus
  std::string log_dir;  // has one folder per worker
  std::vector<std::string> arguments;  // further arguments of each worker
};

// The command line of one worker. `number` is the scheduler's expression for the worker's number
// from 1 on, such as a shell's "$VARIABLE".
std::vector<std::string> words_of(const Workers& workers, const std::string& number);

}  // namespace assay
