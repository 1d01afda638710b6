// Memory of a device that the engine shares with workers: what lies in it crosses without a copy
// through the host. The engine takes all of it, under the device's ledger; a worker maps it. Each
// piece belongs to one tensor, so that a wild worker reaches nothing else. Any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/device/sharing.h"
#include "engine/isolate/shared_buffers.h"
#include "engine/memory/device_state.h"

namespace heddle::engine {

class DeviceBuffer final : public DeviceGuest {
 public:
  // Throws out_of_memory with the ledger, and what the device says. `claim`: taken of first;
  // nullptr: none. REQUIRES: can_share().
  static std::shared_ptr<DeviceBuffer> make(DeviceState& state, std::uint64_t bytes,
                                            std::string_view what, Reservation* claim = nullptr);
  ~DeviceBuffer() override;
  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t id() const { return id_; }  // of no other memory that is shared with workers
  // Tells a worker how to map it, unless it knows. The worker may write there.
  void map_in(const std::shared_ptr<WorkerControl>& worker);
  // Goes when the device is past what is enqueued so far.
  static void retire(std::shared_ptr<DeviceBuffer> buffer) noexcept;
  void leave() noexcept override;

 private:
  // takes: of the device's memory.
  DeviceBuffer(DeviceState& state, std::uint64_t bytes, std::uint64_t takes, std::string_view what,
               Reservation* claim);
  void free() noexcept;

  const std::shared_ptr<const Device> device_;
  const std::shared_ptr<Ledger> ledger_;  // outlives what was taken of it
  Guarded<DeviceState*> state_;           // nullptr: it has gone
  TakenBytes taken_;
  std::byte* data_ = nullptr;
  const std::uint64_t bytes_;
  const std::uint64_t id_;
  Guarded<std::vector<std::weak_ptr<WorkerControl>>> mapped_in_;
};

// What a tensor of the engine lies in there.
class SharedDeviceMemory final : public DeviceMemory {
 public:
  SharedDeviceMemory(DeviceState& state, std::shared_ptr<DeviceBuffer> buffer)
      : DeviceMemory(state, buffer->data(), buffer->bytes()), buffer_(std::move(buffer)) {}
  ~SharedDeviceMemory() override { DeviceBuffer::retire(std::move(buffer_)); }
  DeviceBuffer& buffer() const { return *buffer_; }

 private:
  std::shared_ptr<DeviceBuffer> buffer_;
};

// Which device a worker is to open, as a message.
std::string describe_for_worker(const Device& device);
struct DescribedDevice {
  DeviceNames names;
  DeviceSource source;
};
DescribedDevice read_described_device(std::string_view message);

}  // namespace heddle::engine
