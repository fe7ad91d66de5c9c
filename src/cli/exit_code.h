#pragma once

namespace assay {

// What the program says to who started it.
enum ExitCode : int {
  kAllGood = 0,     // all passed, or agreed
  kSomeFailed = 1,  // some verdict failed
  kUsage = 2,       // the command line, or a file that it names
  kTrouble = 3,     // the engine itself, or the machine
  kInterrupted = 130,
};

}  // namespace assay
