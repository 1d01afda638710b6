// How much each context window counts at each of its places. Pure; any thread.
#pragma once

#include "context_windows.h"

namespace heddle::samplers {

// Sets the weights of all windows of an axis of `full` places. Throws where a place is in none.
void weigh(ContextWindows& windows, const WindowRule& rule, std::int64_t full);

}  // namespace heddle::samplers
