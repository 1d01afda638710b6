// The most heap memory that something takes at a time, all that the process allocates meanwhile, in
// libraries too. One thread at a time.
#pragma once

#include <cstdint>

namespace heddle::text {

class HeapPeak {
 public:
  HeapPeak();
  // Bytes beyond those that were there at first.
  std::int64_t bytes() const;

 private:
  std::int64_t before_;
};

}  // namespace heddle::text
