// spin_until: a short busy wait before a thread goes to sleep. Waking a sleeping thread takes tens
// of microseconds, as long as a small kernel; the time limit keeps an idle device from burning a
// core. Any thread.
#pragma once

#include <chrono>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace heddle::cpu {

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

// True as soon as ready() is; false after about 50 microseconds.
template <class Ready>
bool spin_until(Ready&& ready) {
  constexpr auto kLimit = std::chrono::microseconds(50);
  constexpr int kPausesPerLook = 16;
  const auto start = std::chrono::steady_clock::now();
  do {
    if (ready()) return true;
    for (int i = 0; i < kPausesPerLook; ++i) pause();
  } while (std::chrono::steady_clock::now() - start < kLimit);
  return ready();
}

}  // namespace heddle::cpu
