// Which devices people want used. A device that is disabled gets nothing new; runs whose plans have
// it finish there. One that is drained gives back all that it holds once they have: the last of
// them sees to that, or whoever drains it when there is none.
//
// Runs hold the devices of their plans, and are told when one of them is to be drained: a run that
// stands still lets go then. Thread-safe; knows devices by their index only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::engine {

class DeviceService {
 public:
  // draining: runs still have it, or its memory; drained: it holds nothing.
  enum class State { enabled, disabled, draining, drained };

  void set_count(std::size_t devices) { devices_.resize(devices); }  // before anything else

  State state(std::uint32_t device) const;
  void enable(std::uint32_t device);   // from any state
  void disable(std::uint32_t device);  // of one that is draining or drained: it stays so
  void drain(std::uint32_t device);    // begins, and tells who holds it; finish_drains() goes on

  // Called by any thread, several times perhaps, until the hold is gone; must not throw, nor come
  // back here. One that was not given a hold in the end may have been told, too.
  using OnDrain = std::function<void()>;

 private:
  struct Holder {
    std::vector<std::uint32_t> devices;
    OnDrain on_drain;
  };
  using Holders = std::list<Holder>;

 public:
  // Some devices, counted, until it goes.
  class Hold {
   public:
    Hold(Hold&& other) noexcept
        : service_(std::exchange(other.service_, nullptr)), holder_(other.holder_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (service_ != nullptr) service_->let_go(holder_, true);
    }

   private:
    friend class DeviceService;
    Hold(DeviceService& service, Holders::iterator holder) : service_(&service), holder_(holder) {}
    DeviceService* service_;
    Holders::iterator holder_;
  };
  // For a plan that was made a while ago: nothing, where one of them is not enabled any more.
  std::optional<Hold> try_hold(std::span<const std::uint32_t> devices, OnDrain on_drain = {});
  // Whatever their state: work that is under way reads there, or writes.
  void hold(std::uint32_t device);
  void release(std::uint32_t device);

  // Gives back what the devices hold that are draining and that nobody holds: give_back(device)
  // says whether nothing is left; it is called without a lock, for a device one call at a time.
  void finish_drains(const std::function<bool(std::uint32_t)>& give_back);
  // Until none of them is draining; false: the time was up first. Nothing: as long as it takes.
  bool wait_drained(std::span<const std::uint32_t> devices,
                    std::optional<std::chrono::milliseconds> time);

 private:
  struct One {
    State state = State::enabled;
    std::uint64_t holds = 0;
    bool is_giving_back = false;
  };
  void set(std::uint32_t device, State state);
  bool count(std::span<const std::uint32_t> held);
  void let_go(Holders::iterator holder, bool is_counted);

  std::mutex holders_mutex_;  // never taken with mutex_ held, nor the other way round
  Holders holders_;           // guarded by holders_mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<One> devices_;  // guarded by mutex_
};

std::string_view state_name(DeviceService::State state);  // "enabled", "disabled", ...

// Why a device gets nothing new: "it is disabled"; empty: it does.
std::string_view reason_to_leave_out(DeviceService::State state);

}  // namespace heddle::engine
