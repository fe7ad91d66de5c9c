// Two steps of two jobs, marked with NVTX.

#include <nvtx3/nvToolsExt.h>

#include <initializer_list>

int main() {
  for (const char* step : {"3", "4"}) {
    nvtxRangePushA(step);
    for (const char* job : {"forward@0", "backward@0"}) {
      nvtxRangePushA(job);
      nvtxRangePop();
    }
    nvtxRangePop();
  }
}
