// Clock: simulated time. What is enqueued becomes a node of a graph: how long it takes, on which
// link, and after which other nodes (its stream's last one, an event, what its thread has waited
// for). Times are computed when somebody asks, over the whole graph and in the order of simulated
// time, so that they cannot depend on which host thread was faster. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace heddle::fake {

inline constexpr std::uint32_t kHost = 0xffffffff;        // host memory, as an end of a link
using LinkKey = std::pair<std::uint32_t, std::uint32_t>;  // from, to

class Clock {
 public:
  struct Node;
  using Point = std::shared_ptr<Node>;  // a moment; nullptr: zero

  // A stream's time. Belongs to the stream; guarded by this clock.
  struct Track {
    std::uint32_t device = 0, ordinal = 0;  // break ties between copies that are ready at once
    std::uint64_t number = 0;
    Point last{};
  };

  // Work on a track: begins when the track, `after` and the calling thread are there, and takes
  // `seconds`; on a link, when that is free, too, and then the link is busy until it ends. Gives
  // its end.
  Point work(Track& track, double seconds, const Point& after = nullptr);
  Point copy(Track& track, double seconds, LinkKey link, std::uint64_t bytes);

  // The calling thread has waited for the moment: what it enqueues from now on begins later.
  void thread_waited(const Point& point);

  double seconds(const Point& point);  // of a moment
  double seconds(const Track& track);  // of the last work
  double thread_seconds();             // of the calling thread
  double link_busy(LinkKey link);
  std::uint64_t link_bytes(LinkKey link);

  void reset();  // zero everywhere

 private:
  struct Link {
    double free_at = 0, busy = 0;
    std::uint64_t bytes = 0;
  };
  Point add(Track& track, double seconds, const Point& after, Link* link);  // REQUIRES: mutex_
  const Point& thread_point();                                              // REQUIRES: mutex_
  bool is_current(const Point& point) const;                                // REQUIRES: mutex_
  void resolve();                                                           // REQUIRES: mutex_
  double finish(const Point& point);                                        // REQUIRES: mutex_

  std::mutex mutex_;
  std::uint64_t epoch_ = 1;        // mutex_; nodes of an earlier one are at zero
  std::vector<Point> pending_;     // mutex_; without a time yet, in the order of enqueueing
  std::map<LinkKey, Link> links_;  // mutex_; nodes point into it
};

}  // namespace heddle::fake
