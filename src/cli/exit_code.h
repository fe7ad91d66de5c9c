#pragma once

namespace assay {

enum ExitCode : int {
  kAllGood = 0,        // no verdict failed
  kSomeFailed = 1,     // a verdict failed; with a baseline: a fault is new or grew
  kUsage = 2,          // the command line, or a file that it names, is wrong
  kTrouble = 3,        // the engine or the machine failed
  kNothingJudged = 4,  // no case got a verdict, coverage was lost, or a case is self_only
  kAnotherBuild = 5,   // --log_dir has a run of another build of a framework
  kInterrupted = 130,
};

}  // namespace assay
