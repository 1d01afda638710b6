#include "engine/isolate/worker_memory.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/base/text.h"
#include "engine/device/sharing.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

using ReleasedCounts = Guarded<WorkerMemory::Released>;

// The elements of a tensor that the engine has sent.
class MappedStorage final : public Storage {
 public:
  MappedStorage(std::uint64_t id, std::shared_ptr<SharedMemory> memory,
                std::shared_ptr<ReleasedCounts> released)
      : id(id), memory_(std::move(memory)), released_(std::move(released)) {}
  ~MappedStorage() override { released_->lock()->memory[id] += received; }
  std::byte* data() const override { return memory_->data(); }
  std::uint64_t bytes() const override { return memory_->bytes(); }
  const char* place() const override { return "host"; }

  const std::uint64_t id;
  std::uint64_t received = 1;  // guarded by the lock of all storages

 private:
  const std::shared_ptr<SharedMemory> memory_;
  const std::shared_ptr<ReleasedCounts> released_;
};

// Those of one on a device.
class MappedDeviceMemory final : public DeviceMemory {
 public:
  MappedDeviceMemory(DeviceState& state, std::uint64_t id, std::byte* data, std::uint64_t bytes,
                     std::shared_ptr<ReleasedCounts> released)
      : DeviceMemory(state, data, bytes), id(id), released_(std::move(released)) {}
  ~MappedDeviceMemory() override { released_->lock()->memory[id] += received; }

  const std::uint64_t id;
  std::uint64_t received = 1;  // guarded by the lock of all of devices

 private:
  const std::shared_ptr<ReleasedCounts> released_;
};

// Those of a tensor that the worker does not look at.
class LentStorage final : public Storage {
 public:
  LentStorage(std::uint64_t id, std::shared_ptr<ReleasedCounts> released)
      : id(id), released_(std::move(released)) {}
  ~LentStorage() override { ++released_->lock()->handles[id]; }
  std::byte* data() const override { return nullptr; }
  std::uint64_t bytes() const override { return 0; }
  const char* place() const override { return "engine"; }
  const std::uint64_t id;

 private:
  const std::shared_ptr<ReleasedCounts> released_;
};

constexpr const char* kLentInterface = "heddle.engine.value/0";

struct LentHandle {
  std::uint64_t id;
  std::shared_ptr<ReleasedCounts> released;
};

void drop_lent(void* self) {
  const std::unique_ptr<LentHandle> handle(static_cast<LentHandle*>(self));
  ++handle->released->lock()->handles[handle->id];
}

// Models and objects by what their values share.
const void* identity_of(const heddle_value& value) {
  if (const auto* object = std::get_if<std::shared_ptr<const Object>>(&value.content))
    return object->get();
  return std::get<std::shared_ptr<const Model>>(value.content).get();
}

}  // namespace

void WorkerMemory::map(std::uint64_t id, std::shared_ptr<SharedMemory> memory) {
  mapped_.lock()->emplace(id, std::move(memory));
  has_mapped_.notify_all();
}

// Nothing of it is left here: the engine has it as long as the worker does.
void WorkerMemory::forget(std::uint64_t id) {
  mapped_.lock()->erase(id);
  storages_.lock()->erase(id);
  of_devices_.lock()->erase(id);
}

WorkerMemory::OfDevice::~OfDevice() {
  if (data != nullptr) unmap_shared(device->device(), data);
}

void WorkerMemory::map_device(std::uint64_t id, const heddle_shared_memory& told, int descriptor) {
  of_devices_.lock()->emplace(id, std::make_unique<OfDevice>(told, descriptor));
  has_told_.notify_all();
}

Tensor WorkerMemory::device_tensor(std::uint64_t id, std::uint64_t offset_bytes,
                                   const heddle_tensor_info& info, DeviceState& device) {
  auto all = of_devices_.lock();
  all.wait(has_told_, [&](const AllOfDevices& told) { return told.contains(id); });
  OfDevice& its = *all->at(id);
  if (its.data == nullptr) {
    heddle_shared_memory told = its.told;
    told.descriptor = its.descriptor.number();
    its.data = map_shared(device.device(), told, true);
    its.device = &device;
    (void)its.descriptor.close();  // a process has not many
  }
  std::shared_ptr<Storage> storage = its.storage.lock();
  if (storage != nullptr) {
    ++static_cast<MappedDeviceMemory&>(*storage).received;
  } else {
    storage =
        std::make_shared<MappedDeviceMemory>(*its.device, id, its.data, its.told.bytes, released_);
    its.storage = storage;
  }
  return make_tensor(info, std::move(storage), offset_bytes);
}

bool WorkerMemory::find_on_device(const Tensor& tensor, std::uint64_t& id) {
  const auto* mapped = dynamic_cast<const MappedDeviceMemory*>(tensor->storage.get());
  if (mapped != nullptr) id = mapped->id;
  return mapped != nullptr;
}

std::shared_ptr<SharedMemory> WorkerMemory::wait_for(std::uint64_t id) {
  auto mapped = mapped_.lock();
  mapped.wait(has_mapped_, [&](const Mapped& all) { return all.contains(id); });
  return mapped->at(id);
}

Tensor WorkerMemory::tensor(std::uint64_t id, std::uint64_t offset_bytes,
                            const heddle_tensor_info& info) {
  std::shared_ptr<SharedMemory> memory = wait_for(id);
  const auto storages = storages_.lock();
  std::weak_ptr<Storage>& known = (*storages)[id];
  std::shared_ptr<Storage> storage = known.lock();
  if (storage != nullptr) {
    ++static_cast<MappedStorage&>(*storage).received;
  } else {
    storage = std::make_shared<MappedStorage>(id, std::move(memory), released_);
    known = storage;
  }
  return make_tensor(info, std::move(storage), offset_bytes);
}

bool WorkerMemory::find(const Tensor& tensor, std::uint64_t& id) {
  const auto* mapped = dynamic_cast<const MappedStorage*>(tensor->storage.get());
  if (mapped != nullptr) id = mapped->id;
  return mapped != nullptr;
}

Tensor WorkerMemory::lend_tensor(std::uint64_t id, const heddle_tensor_info& info) {
  return make_tensor(info, std::make_shared<LentStorage>(id, released_));
}

Value WorkerMemory::lend(std::uint64_t id) {
  auto handle = std::make_unique<LentHandle>(LentHandle{id, released_});
  auto object = std::make_shared<const Object>(kLentInterface, nullptr, handle.get(), &drop_lent);
  (void)handle.release();
  return make_value(std::move(object));
}

bool WorkerMemory::is_lent(const heddle_value& value, std::uint64_t& id) {
  const auto* object = std::get_if<std::shared_ptr<const Object>>(&value.content);
  if (object == nullptr || (*object)->drop != &drop_lent) return false;
  id = static_cast<const LentHandle*>((*object)->self)->id;
  return true;
}

std::uint64_t WorkerMemory::keep_object(const heddle_value& value) {
  const auto objects = objects_.lock();
  const auto [at, is_new] = objects->ids.try_emplace(identity_of(value), objects->last + 1);
  if (is_new) objects->by_id[++objects->last].value = Value::share(&value);
  ++objects->by_id.at(at->second).count;
  return at->second;
}

Value WorkerMemory::object(std::uint64_t id) const {
  const auto objects = objects_.lock();
  const auto found = objects->by_id.find(id);
  if (found == objects->by_id.end())
    throw Error(Code::internal, cat("a worker is asked for its object ", id, ", which has gone"));
  return found->second.value;
}

void WorkerMemory::drop_object(std::uint64_t id, std::uint64_t count) {
  Value last;  // its end may call the plugin, after the lock
  const auto objects = objects_.lock();
  const auto found = objects->by_id.find(id);
  if (found == objects->by_id.end()) return;
  found->second.count -= std::min(count, found->second.count);
  if (found->second.count > 0) return;
  objects->ids.erase(identity_of(*found->second.value));
  last = std::move(found->second.value);
  objects->by_id.erase(found);
}

void WorkerMemory::write_released(BytesWriter& to) {
  const Released released = std::exchange(*released_->lock(), {});
  // A node may have let memory go with work on it under way, in another call, too. In this order.
  if (!released.memory.empty()) devices_.settle();
  for (const auto* counts : {&released.memory, &released.handles}) {
    to.number(std::uint32_t(counts->size()));
    for (const auto& [id, count] : *counts) {
      to.number(id);
      to.number(count);
    }
  }
}

void write_message_tensor(BytesWriter& to, const Tensor& tensor) {
  const heddle_tensor_info& info = tensor->info;
  to.number(std::uint8_t(TensorPlace::message));
  write_info(to, make_info(info.dtype, std::span(info.shape, info.rank)));
  tensor->storage->wait();
  write_elements(to, info, tensor->data());
}

Tensor read_elements(BytesReader& from, const heddle_tensor_info& info,
                     const std::function<Tensor()>& make) {
  const std::string_view bytes = from.text();
  if (bytes.size() != dense_bytes(info))
    throw Error(Code::internal, cat("a message has ", bytes.size(), " bytes for ", describe(info)));
  Tensor tensor = make();
  if (!bytes.empty()) std::memcpy(tensor->data(), bytes.data(), bytes.size());
  return tensor;
}

void WorkerEnd::write_tensor(BytesWriter& to, const Tensor& tensor) {
  if (const auto* lent = dynamic_cast<const LentStorage*>(tensor->storage.get())) {
    to.number(std::uint8_t(TensorPlace::engine));
    write_info(to, tensor->info);
    return to.number(lent->id);
  }
  std::uint64_t id = 0;
  if (WorkerMemory::find_on_device(tensor, id)) {
    to.number(std::uint8_t(TensorPlace::device));
    write_info(to, tensor->info);
    to.number(id);
    return to.number(tensor->offset_bytes);
  }
  if (const auto* own = dynamic_cast<const DeviceMemory*>(tensor->storage.get())) {
    const Tensor host = make_host_tensor(
        make_info(tensor->info.dtype, std::span(tensor->info.shape, tensor->info.rank)));
    own->state().read(tensor, host->data(), dense_bytes(host->info));
    return write_message_tensor(to, host);
  }
  if (!WorkerMemory::find(tensor, id)) return write_message_tensor(to, tensor);
  to.number(std::uint8_t(TensorPlace::shared));
  write_info(to, tensor->info);
  to.number(id);
  to.number(tensor->offset_bytes);
}

Tensor WorkerEnd::read_tensor(BytesReader& from) {
  const auto place = TensorPlace(from.number<std::uint8_t>());
  const heddle_tensor_info info = checked_info(read_info(from), "a tensor of the engine");
  if (place == TensorPlace::engine) return memory_.lend_tensor(from.number<std::uint64_t>(), info);
  if (place == TensorPlace::shared) {
    const auto id = from.number<std::uint64_t>();
    return memory_.tensor(id, from.number<std::uint64_t>(), info);
  }
  if (place == TensorPlace::device) {
    if (device_ == nullptr)
      throw Error(Code::internal, "the engine sends a tensor of a device, and names none");
    const auto id = from.number<std::uint64_t>();
    return memory_.device_tensor(id, from.number<std::uint64_t>(), info, *device_);
  }
  return read_elements(from, info, [&] { return make_host_tensor(info); });
}

void WorkerEnd::write_handle(BytesWriter& to, const heddle_value& value) {
  std::uint64_t id = 0;
  if (WorkerMemory::is_lent(value, id)) {
    to.number(std::uint8_t(HandleOwner::engine));
    return to.number(id);
  }
  to.number(std::uint8_t(HandleOwner::worker));
  to.number(memory_.keep_object(value));
  const auto* object = std::get_if<std::shared_ptr<const Object>>(&value.content);
  to.text(object != nullptr ? std::string_view((*object)->interface_id) : "a model");
}

Value WorkerEnd::read_handle(BytesReader& from) {
  const auto owner = HandleOwner(from.number<std::uint8_t>());
  const auto id = from.number<std::uint64_t>();
  return owner == HandleOwner::engine ? memory_.lend(id) : memory_.object(id);
}

}  // namespace heddle::engine
