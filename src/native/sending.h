#pragma once

// How replies leave a lane: at once where its device is the host, otherwise when the device has
// done what they speak of.

#include "base/result.h"
#include "native/module_state.h"

namespace assay::native {

// Ends this process: its device will never work again. Of several cases whose work was under way
// nobody knows which one it was: then the arena blames none, and the slot runs them one by one.
[[noreturn]] void end_of_device(ModuleState& state, const Error& error);

// Sends the reply in the builder, or keeps it until the device has done what it speaks of. Only at
// the end of a batch, and after each case of a careful one, does it wait for the device.
Status send_reply(ModuleState& state);

}  // namespace assay::native
