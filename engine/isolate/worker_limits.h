// What a worker may not do, and when it ends. Called once, before the plugin is loaded and before
// there are threads.
#pragma once

#include "engine/isolate/worker.h"

namespace heddle::engine {

// Ends with the thread that started it, keeps no descriptor but the control channel's, writes no
// core files; then the limit of memory and the sandbox that `settings` ask for. Throws io for what
// the system refuses.
void enter_worker(const WorkerSettings& settings);

}  // namespace heddle::engine
