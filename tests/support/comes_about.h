// Waits for what other threads bring about. It has an end: a fault fails its test and does not hold
// up all others.
#pragma once

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
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

// What another thread gives; `what` says what that is. Throws std::runtime_error after a minute.
template <class T>
T given(std::future<T> future, const std::string& what) {
  if (future.wait_for(std::chrono::minutes(1)) != std::future_status::ready)
    throw std::runtime_error(what + " does not come about within a minute");
  return future.get();
}

}  // namespace heddle::test
