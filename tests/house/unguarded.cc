// Not to be compiled: CTest holds clang to refusing the second function, and nothing else.
#include "engine/base/guarded.h"

class Counter {
 public:
  int with_the_lock() {
    const heddle::engine::MutexLock lock(mutex_);
    return count_;
  }
  int without() { return count_; }

 private:
  heddle::engine::Mutex mutex_;
  int count_ HEDDLE_GUARDED_BY(mutex_) = 0;
};
