// What the program says when a node ends it: by a signal, by abort() or by exit().
#pragma once

namespace heddle::cli {

// From now on the node, its plugin and the signal are named on stderr before the process ends as it
// would have. A signal that somebody handles already (a sanitizer, the guard of mapped files) is
// left to it. Once, from main().
void report_crashes() noexcept;

}  // namespace heddle::cli
