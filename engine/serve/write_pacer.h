// When what waits for WebSockets is written: at once where they are few. Where they are many, what
// is sent to all of them comes in bursts (a step's progress and its preview), and each write costs
// far more than the bytes in it; so it waits a little for what comes behind it, and goes in one
// write. Heavy: it sees Boost.Asio.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace heddle::engine {

// Any thread. What waits when the context stops is let go with the object.
class WritePacer {
 public:
  class Writer {
   public:
    virtual ~Writer() = default;
    virtual void write_soon() = 0;  // any thread; returns at once
    // On a thread of the context that holds no lock: what is written at once costs no other thread.
    virtual void write_now() = 0;
  };

  // Counts a writer for as long as it lives. Not in the pacer: what waits in the context lives
  // longer.
  class Place {
   public:
    explicit Place(std::atomic<std::size_t>& writers) : writers_(writers) { ++writers_; }
    ~Place() { --writers_; }
    Place(const Place&) = delete;

   private:
    std::atomic<std::size_t>& writers_;
  };

  // writers: how many there are; it has to outlive the context.
  WritePacer(boost::asio::io_context& io, const std::atomic<std::size_t>& writers)
      : writers_(writers), timer_(io) {}
  WritePacer(const WritePacer&) = delete;

  // Once for all that the writer has to write until it begins with it.
  void add(std::shared_ptr<Writer> writer);

 private:
  void let_write();

  const std::atomic<std::size_t>& writers_;
  std::mutex mutex_;
  boost::asio::steady_timer timer_;               // mutex_
  std::vector<std::shared_ptr<Writer>> waiting_;  // mutex_
  bool is_timed_ = false;                         // mutex_
  std::chrono::nanoseconds write_{5'000};  // mutex_; what one takes of a processor, by the last
};

// How long the first message waits for others, by how many WebSockets are open and by what one
// write takes of a processor (5 us, in some virtual machines 20). Writing to all of them then takes
// one part in 64 of a processor, however many messages there are, as long as that is not more than
// a quarter of a second.
std::chrono::microseconds write_pause(std::size_t open, std::chrono::nanoseconds write);

}  // namespace heddle::engine
