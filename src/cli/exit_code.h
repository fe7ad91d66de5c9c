#pragma once

namespace assay {

enum ExitCode : int {
  kAllGood = 0,        // everything that was judged passed or agreed
  kSomeFailed = 1,     // a verdict failed, or against a baseline: a fault is new or grew
  kUsage = 2,          // the command line, or a file that it names, is wrong
  kTrouble = 3,        // the engine or the machine is in trouble
  kNothingJudged = 4,  // no case got a verdict, or cases that were judged before are not any more
  kInterrupted = 130,
};

}  // namespace assay
