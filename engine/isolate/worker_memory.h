// What a worker has of the engine's: shared memory and handles, and what the engine has of the
// worker's: objects. Counts of both ends go up when a thing is sent and down when the other end
// says that it has let go, so that messages may pass each other. Any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/isolate/protocol.h"
#include "engine/isolate/shared_memory.h"
#include "engine/isolate/values.h"
#include "engine/isolate/worker_devices.h"
#include "heddle/abi/device_sharing.h"

namespace heddle::engine {

class WorkerMemory {
 public:
  // As the control channel tells.
  void map(std::uint64_t id, std::shared_ptr<SharedMemory> memory);
  void map_device(std::uint64_t id, const heddle_shared_memory& told, int descriptor);
  void forget(std::uint64_t id);
  void drop_object(std::uint64_t id, std::uint64_t count);

  // A tensor in memory that the engine has sent, or is about to send on the control channel.
  Tensor tensor(std::uint64_t id, std::uint64_t offset_bytes, const heddle_tensor_info& info);
  // The same in memory of a device, which is mapped when it is asked for first.
  Tensor device_tensor(std::uint64_t id, std::uint64_t offset_bytes, const heddle_tensor_info& info,
                       DeviceState& device);
  static bool find_on_device(const Tensor& tensor, std::uint64_t& id);
  WorkerDevices& devices() { return devices_; }

  // Where a tensor is, when it is in shared memory.
  static bool find(const Tensor& tensor, std::uint64_t& id);

  // A tensor whose elements stay in the engine.
  Tensor lend_tensor(std::uint64_t id, const heddle_tensor_info& info);
  // A value that stays in the engine; what stands for it here.
  Value lend(std::uint64_t id);
  static bool is_lent(const heddle_value& value, std::uint64_t& id);
  // A model or object that the engine is given a handle of.
  std::uint64_t keep_object(const heddle_value& value);
  Value object(std::uint64_t id) const;  // throws internal for one that is not there

  // Everything of the engine's that has been let go since the last time.
  void write_released(BytesWriter& to);

  struct Released {
    std::map<std::uint64_t, std::uint64_t> memory, handles;  // id -> count
  };

 private:
  struct Kept {
    Value value;
    std::uint64_t count = 0;
  };
  struct Objects {
    std::map<std::uint64_t, Kept> by_id;
    std::map<const void*, std::uint64_t> ids;
    std::uint64_t last = 0;
  };
  using Mapped = std::map<std::uint64_t, std::shared_ptr<SharedMemory>>;
  // Memory of a device that the engine has told of.
  struct OfDevice {
    OfDevice(const heddle_shared_memory& told, int descriptor)
        : told(told), descriptor(descriptor) {}
    ~OfDevice();
    const heddle_shared_memory told;
    FileDescriptor descriptor;      // until it is mapped
    DeviceState* device = nullptr;  // where it is mapped
    std::byte* data = nullptr;
    std::weak_ptr<Storage> storage;
  };
  using AllOfDevices = std::map<std::uint64_t, std::unique_ptr<OfDevice>>;

  std::shared_ptr<SharedMemory> wait_for(std::uint64_t id);

  Guarded<Mapped> mapped_;
  std::condition_variable has_mapped_;
  Guarded<std::map<std::uint64_t, std::weak_ptr<Storage>>> storages_;
  // Values of the plugin may outlive all of this.
  const std::shared_ptr<Guarded<Released>> released_ = std::make_shared<Guarded<Released>>();
  Guarded<Objects> objects_;
  WorkerDevices devices_;
  Guarded<AllOfDevices> of_devices_;
  std::condition_variable has_told_;
};

// Values on their way out of a worker and into it.
class WorkerEnd final : public ValueEnd {
 public:
  explicit WorkerEnd(WorkerMemory& memory) : memory_(memory) {}
  void use_device(DeviceState* device) { device_ = device; }
  void write_tensor(BytesWriter& to, const Tensor& tensor) override;
  Tensor read_tensor(BytesReader& from) override;
  void write_handle(BytesWriter& to, const heddle_value& value) override;
  Value read_handle(BytesReader& from) override;

 private:
  WorkerMemory& memory_;
  DeviceState* device_ = nullptr;  // that the call is placed on
};

// A tensor in a message, for both ends.
void write_message_tensor(BytesWriter& to, const Tensor& tensor);
// Throws internal for elements that are not those of its shape; `make` makes the tensor otherwise.
Tensor read_elements(BytesReader& from, const heddle_tensor_info& info,
                     const std::function<Tensor()>& make);

}  // namespace heddle::engine
