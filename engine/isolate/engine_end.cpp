// Values between the engine and a worker, on the engine's side.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/isolate/remote_call.h"
#include "engine/isolate/worker_memory.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/gather.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

namespace {

// An object that has stayed in its worker.
struct RemoteObject {
  std::shared_ptr<WorkerProcess> worker;
  std::uint64_t id;
  std::string interface_id, plugin;
};

constexpr const char* kRemoteInterface = "heddle.worker.object/0";

void drop_remote(void* self) {
  const std::unique_ptr<RemoteObject> object(static_cast<RemoteObject*>(self));
  object->worker->drop(DropKind::object, object->id);
  --object->worker->objects;
}

const RemoteObject* remote_object(const heddle_value& value) {
  const auto* object = std::get_if<std::shared_ptr<const Object>>(&value.content);
  return object != nullptr && (*object)->drop == &drop_remote
             ? static_cast<const RemoteObject*>((*object)->self)
             : nullptr;
}

// Host memory as far as the engine knows: others are read by their device.
bool is_in_host_memory(const heddle_tensor& tensor) {
  const std::string_view place = tensor.storage->place();
  return tensor.info.layout == 0 && (place == "host" || place == "file");
}

// For one more, before it is lent: then nothing fails any more.
void make_room(std::vector<std::uint64_t>& ids) {
  if (ids.size() == ids.capacity()) ids.reserve(std::max<std::size_t>(16, 2 * ids.size()));
}

// Refuses what would leave the memory: the bytes come from a plugin.
void check_within(const heddle_tensor_info& info, std::uint64_t offset, std::uint64_t bytes) {
  const Extent touched = extent(info);
  const std::int64_t begin = dtype_bytes(DType(info.dtype), touched.begin);
  const std::int64_t end = dtype_bytes(DType(info.dtype), touched.end);
  const bool fits =
      offset <= bytes && std::uint64_t(-begin) <= offset && std::uint64_t(end) <= bytes - offset;
  if (!fits)
    throw Error(Code::internal, cat("a worker gives ", describe(info), " at byte ", offset,
                                    " of memory of ", bytes, " bytes"));
}

}  // namespace

std::shared_ptr<WorkerProcess> worker_of(const heddle_value& value) {
  if (const RemoteObject* object = remote_object(value)) return object->worker;
  std::shared_ptr<WorkerProcess> worker;
  const auto add = [&](const Value& item) {
    if (!item) return;
    const std::shared_ptr<WorkerProcess> its = worker_of(*item);
    if (its == nullptr) return;
    if (worker != nullptr && worker != its)
      throw Error(Code::unsupported,
                  "a value holds objects of two workers, which no third process can have");
    worker = its;
  };
  if (const auto* list = std::get_if<List>(&value.content))
    for (const Value& item : list->items) add(item);
  if (const auto* record = std::get_if<Record>(&value.content))
    for (const auto& [key, field] : record->fields) add(field);
  return worker;
}

void EngineEnd::write_shared(BytesWriter& to, const heddle_tensor_info& info, std::uint64_t id,
                             std::uint64_t offset) {
  to.number(std::uint8_t(TensorPlace::shared));
  write_info(to, info);
  to.number(id);
  to.number(offset);
}

void EngineEnd::lend(const std::shared_ptr<SharedStorage>& storage) {
  make_room(unsent_memory_);
  worker_->lend(storage, false);
  unsent_memory_.push_back(storage->buffer().id());
}

void EngineEnd::write_lent(BytesWriter& to, Value value) {
  make_room(unsent_values_);
  unsent_values_.push_back(worker_->lend(std::move(value)));
  to.number(unsent_values_.back());
}

CountBytes EngineEnd::counter(std::string what) const {
  if (ctx_ == nullptr) return nullptr;
  return [ctx = ctx_, what = std::move(what)](std::uint64_t bytes) {
    return ctx->count_host(bytes, what);
  };
}

void EngineEnd::has_sent() noexcept {
  unsent_memory_.clear();
  unsent_values_.clear();
}

void EngineEnd::take_back() noexcept {
  for (const std::uint64_t id : unsent_memory_) worker_->take_back_memory(id);
  for (const std::uint64_t id : unsent_values_) worker_->take_back_value(id);
  has_sent();
}

std::uint64_t EngineEnd::make_device_memory(std::uint64_t bytes, std::string_view what) {
  if (device_ == nullptr)
    throw Error(Code::unsupported, "the node is not placed on a device, and asks for memory there");
  if (bytes > std::uint64_t(kMostTensorBytes))
    throw Error(Code::out_of_memory, cat(bytes, " bytes of memory shared with a worker"));
  const auto memory = std::make_shared<SharedDeviceMemory>(
      *device_, DeviceBuffer::make(*device_, bytes, what, claim_));
  make_room(unsent_memory_);
  worker_->lend(memory);
  unsent_memory_.push_back(memory->buffer().id());
  return memory->buffer().id();
}

bool EngineEnd::is_on_device(const Tensor& tensor) const {
  const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
  return device_ != nullptr && memory != nullptr && &memory->state() == device_ &&
         tensor->info.layout == 0;
}

void EngineEnd::write_on_device(BytesWriter& to, const Tensor& tensor) {
  auto memory = std::dynamic_pointer_cast<SharedDeviceMemory>(tensor->storage);
  heddle_tensor_info info = tensor->info;
  std::uint64_t offset = tensor->offset_bytes;
  if (memory == nullptr) {  // memory of the pools has others beside it: once for a call
    info = make_info(info.dtype, std::span(info.shape, info.rank));
    offset = 0;
    memory = std::make_shared<SharedDeviceMemory>(
        *device_, DeviceBuffer::make(*device_, span_bytes(info), describe(info)));
    const Tensor copy = make_tensor(info, memory);
    heddle_tensor* const in[] = {tensor.get()};
    heddle_tensor* const out[] = {copy.get()};
    device_->op(op_id(HEDDLE_OP_COPY), in, out, {});
  }
  make_room(unsent_memory_);
  worker_->lend(memory);
  unsent_memory_.push_back(memory->buffer().id());
  has_lent_of_device_ = true;
  to.number(std::uint8_t(TensorPlace::device));
  write_info(to, info);
  to.number(memory->buffer().id());
  to.number(offset);
}

void EngineEnd::finish_device_work() {
  if (std::exchange(has_lent_of_device_, false)) device_->synchronize();
}

void EngineEnd::write_tensor(BytesWriter& to, const Tensor& tensor) {
  if (tensors_stay_) {
    to.number(std::uint8_t(TensorPlace::engine));
    write_info(to, tensor->info);
    return write_lent(to, make_value(Tensor(tensor)));
  }
  if (is_on_device(tensor) && dense_bytes(tensor->info) > 0) return write_on_device(to, tensor);
  if (auto shared = std::dynamic_pointer_cast<SharedStorage>(tensor->storage)) {
    lend(shared);
    return write_shared(to, tensor->info, shared->buffer().id(), tensor->offset_bytes);
  }
  const heddle_tensor_info info =
      make_info(tensor->info.dtype, std::span(tensor->info.shape, tensor->info.rank));
  const std::uint64_t bytes = dense_bytes(info);
  const auto copy_to = [&](std::byte* into) {
    if (bytes == 0) return;
    if (!is_in_host_memory(*tensor) && ctx_ != nullptr)
      return ctx_->read(tensor.get(), into, bytes);
    tensor->storage->wait();
    gather(tensor->info, tensor->data(), into);
  };
  if (bytes < kLeastShared) {
    to.number(std::uint8_t(TensorPlace::message));
    write_info(to, info);
    to.number(bytes);
    return copy_to(to.room(bytes));
  }
  const auto storage = worker_->make_read_memory(bytes, counter(describe(info)));
  copy_to(storage->data());
  lend(storage);
  write_shared(to, info, storage->buffer().id(), 0);
}

Tensor EngineEnd::read_tensor(BytesReader& from) {
  const auto place = TensorPlace(from.number<std::uint8_t>());
  const heddle_tensor_info info = checked_info(read_info(from), "a tensor of a worker");
  if (place == TensorPlace::engine) {
    Tensor tensor = get_tensor(*worker_->lent_value(from.number<std::uint64_t>()));
    if (describe(tensor->info) != describe(info))
      throw Error(Code::unsupported,
                  "an isolated node gives a part of a tensor that it was not to "
                  "look at (HEDDLE_PORT_PASS)");
    return tensor;
  }
  if (info.layout != 0) throw Error(Code::internal, "a worker gives a tensor of a device");
  if (place == TensorPlace::shared) {
    const std::shared_ptr<SharedStorage> storage =
        worker_->lent_memory(from.number<std::uint64_t>());
    const auto offset = from.number<std::uint64_t>();
    check_within(info, offset, storage->bytes());
    return make_tensor(info, storage, offset);
  }
  if (place == TensorPlace::device) {
    std::shared_ptr<SharedDeviceMemory> memory =
        worker_->lent_device_memory(from.number<std::uint64_t>());
    const auto offset = from.number<std::uint64_t>();
    check_within(info, offset, memory->bytes());
    // A kernel that reads an element across its bounds may end the device's context.
    const DTypeBlock block = dtype_block(DType(info.dtype));
    if (block.elements == 1 && offset % std::uint64_t(block.bytes) != 0)
      throw Error(Code::internal, cat("a worker gives ", describe(info), " at byte ", offset));
    return make_tensor(info, std::move(memory), offset);
  }
  if (place != TensorPlace::message)
    throw Error(Code::internal, cat("a worker gives a tensor at the unknown place ", int(place)));
  const heddle_tensor_info dense = make_info(info.dtype, std::span(info.shape, info.rank));
  return read_elements(from, dense, [&] {
    return ctx_ == nullptr ? make_host_tensor(dense) : ctx_->make_host(dense);
  });
}

void EngineEnd::write_handle(BytesWriter& to, const heddle_value& value) {
  const RemoteObject* const object = remote_object(value);
  if (object == nullptr) {
    to.number(std::uint8_t(HandleOwner::engine));
    return write_lent(to, Value::share(&value));
  }
  if (object->worker != worker_)
    throw Error(Code::unsupported,
                cat("an object ", quote(object->interface_id), " is in a worker of the plugin ",
                    quote(object->plugin), ", and cannot be given to a node of ", quote(plugin_),
                    object->worker->is_alive() ? ". Isolate both plugins, or none"
                                               : ", as that worker has ended. Run again"));
  to.number(std::uint8_t(HandleOwner::worker));
  to.number(object->id);
}

Value EngineEnd::read_handle(BytesReader& from) {
  const auto owner = HandleOwner(from.number<std::uint8_t>());
  const auto id = from.number<std::uint64_t>();
  if (owner == HandleOwner::engine) return worker_->lent_value(id);
  auto object =
      std::make_unique<RemoteObject>(RemoteObject{worker_, id, std::string(from.text()), plugin_});
  has_read_objects_ = true;
  auto held = std::make_shared<const Object>(kRemoteInterface, nullptr, object.get(), &drop_remote);
  ++worker_->objects;  // until drop_remote()
  (void)object.release();
  return make_value(std::move(held));
}

}  // namespace heddle::engine
