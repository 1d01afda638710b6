#include "clock.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace heddle::fake {

struct Clock::Node {
  std::uint64_t epoch = 0;
  double ready = 0, duration = 0, finish = 0;
  Link* link = nullptr;
  std::uint32_t device = 0, track = 0;
  std::uint64_t number = 0;
  std::array<Point, 3> after;    // until it has a time
  std::uint32_t waiting = 0;     // of them without a time
  std::vector<Node*> followers;  // while times are computed
  bool has_time = false;
};

namespace {

// So many nodes are kept until somebody asks for a time.
constexpr std::size_t kMostPending = std::size_t{1} << 18;

}  // namespace

// What the thread has waited for. Other threads do not see it.
static thread_local Clock::Point this_thread;

bool Clock::is_current(const Point& point) const {
  return point != nullptr && point->epoch == epoch_;
}

const Clock::Point& Clock::thread_point() {
  if (!is_current(this_thread)) this_thread = nullptr;
  return this_thread;
}

Clock::Point Clock::add(Track& track, double seconds, const Point& after, Link* link) {
  auto node = std::make_shared<Node>();
  node->epoch = epoch_;
  node->duration = seconds;
  node->link = link;
  node->device = track.device;
  node->track = track.ordinal;
  node->number = ++track.number;
  if (is_current(track.last)) node->after[0] = track.last;
  if (is_current(after)) node->after[1] = after;
  node->after[2] = thread_point();
  track.last = node;
  pending_.push_back(node);
  if (pending_.size() >= kMostPending) resolve();
  return node;
}

Clock::Point Clock::work(Track& track, double seconds, const Point& after) {
  const std::lock_guard lock(mutex_);
  return add(track, seconds, after, nullptr);
}

Clock::Point Clock::copy(Track& track, double seconds, LinkKey link, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Link& used = links_[link];
  used.bytes += bytes;
  return add(track, seconds, nullptr, &used);
}

void Clock::thread_waited(const Point& point) {
  const std::lock_guard lock(mutex_);
  if (!is_current(point)) return;
  Track track{.device = kHost, .last = thread_point()};
  this_thread = add(track, 0, point, nullptr);
}

// Work gets its link in the order in which it becomes ready in simulated time.
void Clock::resolve() {
  const auto later = [](const Node* a, const Node* b) {
    return std::tie(a->ready, a->device, a->track, a->number) >
           std::tie(b->ready, b->device, b->track, b->number);
  };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (const Point& node : pending_) {
    for (const Point& before : node->after) {
      if (before == nullptr) continue;
      if (before->has_time) {
        node->ready = std::max(node->ready, before->finish);
      } else {
        before->followers.push_back(node.get());
        ++node->waiting;
      }
    }
    if (node->waiting == 0) ready.push(node.get());
  }
  while (!ready.empty()) {
    Node& node = *ready.top();
    ready.pop();
    const double begin =
        node.link == nullptr ? node.ready : std::max(node.ready, node.link->free_at);
    node.finish = begin + node.duration;
    node.has_time = true;
    if (node.link != nullptr) {
      node.link->free_at = node.finish;
      node.link->busy += node.duration;
    }
    for (Node* next : node.followers) {
      next->ready = std::max(next->ready, node.finish);
      if (--next->waiting == 0) ready.push(next);
    }
    node.followers.clear();
  }
  // Here and not by their owners: a chain of a million nodes must not be freed by a million nested
  // calls.
  for (const Point& node : pending_) node->after = {};
  pending_.clear();
}

double Clock::finish(const Point& point) {
  resolve();
  return is_current(point) ? point->finish : 0;
}

double Clock::seconds(const Point& point) {
  const std::lock_guard lock(mutex_);
  return finish(point);
}

double Clock::seconds(const Track& track) {
  const std::lock_guard lock(mutex_);
  return finish(track.last);
}

double Clock::thread_seconds() {
  const std::lock_guard lock(mutex_);
  return finish(thread_point());
}

double Clock::link_busy(LinkKey link) {
  const std::lock_guard lock(mutex_);
  resolve();
  return links_[link].busy;
}

std::uint64_t Clock::link_bytes(LinkKey link) {
  const std::lock_guard lock(mutex_);
  return links_[link].bytes;
}

void Clock::reset() {
  const std::lock_guard lock(mutex_);
  for (const Point& node : pending_) node->after = {};
  pending_.clear();
  links_.clear();
  ++epoch_;
}

}  // namespace heddle::fake
