#pragma once

// The seats of a slot: one for each lane of the run, and as many again for retries. Lanes for
// retries run retries only and end early. The other lanes stay, and with them what makes them fast:
// warm memory and caches.

#include <memory>
#include <vector>

#include "device/shared_cache.h"
#include "device/shared_inputs.h"
#include "slot/batch.h"

namespace assay {

class Seats {
 public:
  // `opened` may be the device of the first lane on a GPU, opened before. `inputs` may be null.
  // Keeps a reference to `config`.
  Seats(const SlotConfig& config, const std::shared_ptr<LazyDevice>& opened,
        const std::shared_ptr<SharedInputs>& inputs);

  // The test lane's seat first.
  std::vector<LaneSeat>& of(bool retry) { return retry ? for_retries_ : shared_; }
  // Whether these lanes have run nothing yet; a reference lane on a GPU that several retries use
  // aside.
  bool are_fresh(bool retry) const;
  // After a batch: ends lanes whose time is over, and gives back memory of arenas. `followed`: the
  // next retry runs in the same process.
  void end_batch(bool retry, bool followed);
  // Ends all lanes. The next case waits for new ones: some milliseconds on a CPU, 0.4 s on a GPU.
  Status end_all();

  // Whether results are compared on a GPU, and whether that could not be opened.
  bool on_gpu() const { return device_ != nullptr; }
  bool gpu_failed() const { return device_ && device_->failed(); }

 private:
  bool stays_for_next(const LaneSeat& seat) const;

  const SlotConfig& config_;
  std::shared_ptr<LazyDevice> device_;  // the first GPU of the lanes
  std::vector<LaneSeat> shared_;
  std::vector<LaneSeat> for_retries_;
};

}  // namespace assay
