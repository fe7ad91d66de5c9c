#pragma once

// Sends a lane's replies: at once if its device is the host, otherwise when the device has finished
// the work that they describe.

#include "base/result.h"
#include "native/module_state.h"

namespace assay::native {

// Ends this process: its device will never work again. If several cases were queued, the faulty one
// is unknown. The arena then blames none, and the slot runs them one by one.
[[noreturn]] void end_of_device(ModuleState& state, const Error& error);

// Sends the reply in the builder, or keeps it until the device has finished its work. Waits for the
// device only at the end of a batch, and after each case of a careful one.
Status send_reply(ModuleState& state);

}  // namespace assay::native
