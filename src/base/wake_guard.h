#pragma once

#include <sys/types.h>

namespace assay {

// Makes sure that `pid` is continued (SIGCONT) when this process has ended, however it ends. A
// stopped process handles the signal of its parent's death only then. A helper process does it; the
// first call forks that.
void continue_after_us(pid_t pid);

}  // namespace assay
