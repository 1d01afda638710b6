// What a worker may not do, and when it ends. Each is called once, in this order, before the plugin
// is loaded and before there are threads.
#pragma once

#include "engine/isolate/worker.h"

namespace heddle::engine {

// Ends with the thread that started it, keeps no descriptor but the control channel's and the
// standard ones, writes no core files.
void enter_worker(const WorkerSettings& settings);
// The limit of memory and the sandbox that `settings` ask for. Throws for what the system refuses:
// nothing runs without them.
void limit_worker(const WorkerSettings& settings);

}  // namespace heddle::engine
