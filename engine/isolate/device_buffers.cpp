#include "engine/isolate/device_buffers.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/isolate/values.h"

namespace heddle::engine {

namespace {

// Options of devices are numbers, texts, lists and records.
class PlainEnd final : public ValueEnd {
 public:
  void write_tensor(BytesWriter&, const Tensor&) override { refuse(); }
  Tensor read_tensor(BytesReader&) override { refuse(); }
  void write_handle(BytesWriter&, const heddle_value&) override { refuse(); }
  Value read_handle(BytesReader&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Error(Code::unsupported, "an option of a device is neither a number nor a text");
  }
};

}  // namespace

DeviceBuffer::DeviceBuffer(DeviceState& state, std::uint64_t bytes, std::uint64_t takes,
                           std::string_view what, Reservation* claim)
    : device_(state.share_device()),
      ledger_(state.share_ledger()),
      state_(&state),
      taken_(ledger_->take(takes, what, claim)),
      bytes_(bytes),
      id_(next_shared_id()) {
  taken_.tag({MemoryKind::values, 0});
}

std::shared_ptr<DeviceBuffer> DeviceBuffer::make(DeviceState& state, std::uint64_t asked,
                                                 std::string_view what, Reservation* claim) {
  const std::uint64_t bytes = state.pool().rounded(asked);
  if (bytes < asked) throw state.ledger().out_of_memory(asked, what);
  const std::uint64_t takes = shared_bytes(state.device(), bytes);
  const auto take = [&] {
    return std::shared_ptr<DeviceBuffer>(new DeviceBuffer(state, bytes, takes, what, claim));
  };
  std::shared_ptr<DeviceBuffer> made = take();
  // The driver may refuse what the ledger has given, as in Pool::allocate_chunk().
  for (bool is_last = false; made->data_ == nullptr;) {
    try {
      made->data_ = allocate_shared(*made->device_, bytes);
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;
      if (is_last) {
        made->taken_.give_back_refused();
        throw state.ledger().out_of_memory(takes, what, error.what());
      }
      is_last = !state.ledger().after_refusal(takes);
    }
  }
  state.add_guest(made);
  return made;
}

DeviceBuffer::~DeviceBuffer() { free(); }

void DeviceBuffer::free() noexcept {
  BytesWriter body;
  body.number(id_);
  for (const std::weak_ptr<WorkerControl>& worker : std::exchange(*mapped_in_.lock(), {}))
    if (const auto control = worker.lock()) control->send(ControlMessage::forget, body);
  if (data_ != nullptr) device_->free(std::exchange(data_, nullptr));
  taken_.give_back();
}

void DeviceBuffer::retire(std::shared_ptr<DeviceBuffer> buffer) noexcept {
  DeviceBuffer& self = *buffer;
  const auto state = self.state_.lock();
  if (*state == nullptr) return;
  try {
    (*state)->retain(std::shared_ptr<const void>(buffer));  // this one goes after the lock
  } catch (...) {
    (*state)->settle();  // no event to be had: then nothing may run when it goes
  }
}

void DeviceBuffer::leave() noexcept {
  const auto state = state_.lock();
  if (*state == nullptr) return;
  (*state)->settle();
  *state = nullptr;
  free();
}

void DeviceBuffer::map_in(const std::shared_ptr<WorkerControl>& worker) {
  const auto mapped = mapped_in_.lock();
  std::erase_if(*mapped, [](const auto& other) { return other.expired(); });
  if (std::ranges::any_of(*mapped, [&](const auto& other) { return other.lock() == worker; }))
    return;
  heddle_shared_memory told = share(*device_, data_);
  const FileDescriptor descriptor(std::exchange(told.descriptor, -1));
  BytesWriter body;
  body.number(id_);
  body.text({reinterpret_cast<const char*>(&told), sizeof told});
  worker->send(ControlMessage::map_device, body, descriptor.number());
  mapped->push_back(worker);
}

std::string describe_for_worker(const Device& device) {
  BytesWriter body;
  body.text(device.kind());
  body.text(device.name());
  body.text(device.names().uuid);
  body.number(device.source().index);
  body.number(std::uint32_t(device.source().plugins.size()));
  for (const std::string& plugin : device.source().plugins) body.text(plugin);
  PlainEnd end;
  write_value(body, device.source().options.get(), end);
  return body.bytes();
}

DescribedDevice read_described_device(std::string_view message) {
  BytesReader from(message);
  DescribedDevice device;
  device.names.kind = from.text();
  device.names.name = from.text();
  device.names.uuid = from.text();
  device.source.index = from.number<std::uint32_t>();
  for (std::uint32_t left = from.count(); left > 0; --left)
    device.source.plugins.emplace_back(from.text());
  PlainEnd end;
  device.source.options = read_value(from, end);
  return device;
}

}  // namespace heddle::engine
