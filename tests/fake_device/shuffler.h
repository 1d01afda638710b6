// Shuffler: runs the work of streams in an order drawn from a seed, of all orders that streams and
// events allow, and not before somebody waits for it. Whoever forgot to ask for an order gets
// another one sooner or later, and the same one again with the same seed. One for the process;
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <vector>

namespace heddle::fake {

class Stream;

class Shuffler {
 public:
  static Shuffler& instance();

  void seed(std::uint64_t seed);
  void add(Stream& stream);
  void finish(Stream& stream);  // runs what it still has, and forgets it

  // Runs work until `done`.
  void run_until(const std::function<bool()>& done);
  void run_one();  // some piece of work, if there is any

 private:
  bool step();  // REQUIRES: mutex_. False when nothing could run

  std::mutex mutex_;
  std::mt19937_64 random_;         // mutex_
  std::vector<Stream*> streams_;   // mutex_; as they were made
  std::vector<Stream*> runnable_;  // mutex_; between two draws
};

}  // namespace heddle::fake
