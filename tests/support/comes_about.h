// Waits for what other threads bring about. It has an end: a fault fails its test and does not hold
// up all others.
#pragma once

#include <chrono>
#include <thread>

namespace heddle::test {

// False: it is not so after a minute.
template <class F>
bool comes_about(F is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace heddle::test
