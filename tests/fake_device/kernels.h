// The plugin's kernels: one for each op of the cpu device, which computes it. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "heddle/abi/device.h"

namespace heddle::fake {

// One for each op of the cpu device, as it is when they are asked for: the cpu plugin has to be
// loaded before. Never freed: the list lives as long as the plugin.
class Kernels {
 public:
  const heddle_list* list(const heddle_host* host);  // host nullptr: there is none

 private:
  struct View {
    std::vector<const void*> items;
    heddle_list list{};
  };
  static inline thread_local bool asking_ = false;
  std::mutex mutex_;
  std::set<std::string> known_;                          // mutex_
  std::vector<std::unique_ptr<heddle_kernel>> kernels_;  // mutex_
  std::vector<std::unique_ptr<View>> views_;             // mutex_; a list that was given away stays
};

}  // namespace heddle::fake
