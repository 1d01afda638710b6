// Device: one fake device. What it is asked to do is checked, priced on the simulated clock and put
// into a stream; the cpu device computes it. Thread-safe as far as the ABI asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "configuration.h"
#include "context.h"
#include "cpu.h"
#include "index_state.h"
#include "memory.h"
#include "stream.h"

namespace heddle::fake {

// Over 15 members: a device of the ABI is one thing to its caller; memory, streams, clock, counters
// and the computing are classes of their own, which it holds.
class Device {
 public:
  Device(const heddle_host* host, std::uint32_t index, const heddle_value* options);
  ~Device();
  Device(const Device&) = delete;

  const heddle_host* host() const { return host_; }
  std::uint32_t index() const { return index_; }
  const std::string& name() const { return name_; }  // "fake:0"
  Configuration configuration() const;               // as it is now
  const Cpu& cpu() const { return cpu_; }
  Memory& memory() { return memory_; }
  Clock& clock() const;
  bool shuffles() const { return shuffles_; }

  // Odd: dead. Moves on with every death and every revival.
  std::uint64_t life() const { return life_.load(std::memory_order_relaxed); }
  static bool is_dead(std::uint64_t life) { return life % 2 == 1; }
  void require_alive() const;  // throws what death() says
  void accept() const;         // the same, and when work is refused because a test asked for it
  FailureRef death() const { return death_; }
  void kill();
  void revive();  // when what is being done has been
  // While one item of a stream is done, which has been found to be of this life.
  static std::shared_lock<std::shared_mutex> working() { return std::shared_lock(work_); }

  // Streams, events and memory of any kind make it.
  Context& context() { return context_; }

  void* allocate(std::size_t bytes, bool is_shared = false);
  void free(void* address);
  // Real addresses, which the host may touch. They count for nothing of the device's capacity.
  void* allocate_pinned(std::size_t bytes);
  void free_pinned(void* address);
  std::uint64_t pinned_bytes() const;
  bool has_pinned(const void* address) const;

  std::unique_ptr<Stream> make_stream();
  void forget(const Stream& stream);
  double now();  // of its streams, those that are gone included

  std::int32_t fits(const heddle_op_call& call) const {
    ++counters_.questions;
    return cpu_.choose(call).answer;
  }
  std::size_t workspace(const heddle_op_call& call) const;
  void launch(Stream& stream, const heddle_op_call& call, void* workspace);
  void make_weight(Stream& stream, std::int32_t use, const heddle_weight_layout& layout,
                   std::uint32_t part_count, const heddle_view* const* parts, void* dst);

  // On a stream of this device. nullptr: host memory.
  void copy(Stream& stream, Device* to, void* dst, Device* from, const void* src,
            std::size_t bytes);
  // Whether copy() between the two goes; REQUIRES: peer is a fake device.
  bool reaches(const Device& peer) const {
    return this == &peer || (peer_copies_ && peer.peer_copies_);
  }
  // Whether kernels here read the peer's memory.
  bool reads(const Device& peer) const {
    return this != &peer && reaches(peer) && peer_reads_ && peer.peer_reads_;
  }

  void set_link(LinkKey link, LinkSpeed speed);
  void set_op_seconds(const std::string& op, double seconds);  // negative: forget

 private:
  double op_seconds(const heddle_op_call& call) const;
  // The device whose memory an operand is in: this one, or a peer that kernels here read.
  const Device& owner_of(const void* address) const;
  // What a copy takes; `source`: where it begins when that is host memory.
  double copy_seconds(LinkKey link, const void* source, std::uint64_t bytes) const;

  const heddle_host* const host_;
  const std::uint32_t index_;
  const std::string name_;
  mutable std::mutex mutex_;
  Configuration configuration_;  // mutex_; links and op times may be changed
  const bool shuffles_, peer_copies_, peer_reads_;
  const FailureRef death_;
  IndexState& counters_;
  Context context_;
  const Cpu cpu_;
  Memory memory_;
  std::atomic<std::uint64_t> life_{0};
  // Of all devices, as copies touch two. Alone: who changes memory beneath them.
  static inline std::shared_mutex work_;
  std::vector<Stream*> streams_;   // mutex_
  std::uint32_t next_stream_ = 0;  // mutex_
  Clock::Point gone_{};            // mutex_; of the streams that are gone, the latest
  std::map<const void*, std::unique_ptr<Allocation>> pinned_;  // mutex_
  std::uint64_t pinned_bytes_ = 0;                             // mutex_
};

// The devices that are open: a foreign device's handle must not be looked into.
class OpenDevices {
 public:
  static OpenDevices& instance();
  void add(Device& device);
  void remove(Device& device);
  Device* find(const heddle_device* handle);  // nullptr: not one of these
  // The first one of which is(device) holds; nullptr: none.
  template <class Is>
  const Device* first(Is&& is) {
    const std::lock_guard lock(mutex_);
    for (const Device* device : devices_)
      if (is(*device)) return device;
    return nullptr;
  }
  // Whether any of them has pinned it: pinned memory is so for all.
  bool have_pinned(const void* address);
  // visit(device) for each of that index, while it stays open.
  template <class Visit>
  void each(std::uint32_t index, Visit&& visit) {
    const std::lock_guard lock(mutex_);
    for (Device* device : devices_)
      if (device->index() == index) visit(*device);
  }

 private:
  std::mutex mutex_;
  std::vector<Device*> devices_;  // mutex_
};

}  // namespace heddle::fake
