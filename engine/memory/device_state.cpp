#include "engine/memory/device_state.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/op_catalog.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

namespace {

constexpr std::size_t kMaxOperands = 16;

}  // namespace

DeviceMemory::DeviceMemory(DeviceState& state, std::uint64_t bytes, MemoryUse use,
                           const PieceUse& piece)
    : state_(state),
      use_(use),
      data_(use == MemoryUse::local ? state.pool().allocate(bytes, piece)
                                    : state.allocate_inbound(bytes, piece)),
      bytes_(bytes) {}
DeviceMemory::~DeviceMemory() {
  written_.reset();  // while the device's context is certain to be there
  if (use_ == MemoryUse::local)
    state_.pool().free(data_);
  else if (use_ == MemoryUse::inbound)
    state_.retire_inbound(data_);
}
const char* DeviceMemory::place() const { return state_.device().name().c_str(); }
void DeviceMemory::wait() const { state_.synchronize(); }

void DeviceMemory::set_written() {
  if (written() != nullptr) return;
  const auto written = std::make_shared<Event>(state_.device());
  state_.record(*written);
  set_written(written);
}
void DeviceMemory::set_written(std::shared_ptr<const Event> written) {
  const std::lock_guard lock(written_mutex_);
  written_ = std::move(written);
}
std::shared_ptr<const Event> DeviceMemory::written() const {
  const std::lock_guard lock(written_mutex_);
  return written_;
}

DeviceState::DeviceState(std::shared_ptr<const Device> device,
                         std::shared_ptr<const KernelTable> kernels, std::shared_ptr<Ledger> ledger)
    : device_(std::move(device)),
      kernels_(std::move(kernels)),
      ledger_(ledger != nullptr ? std::move(ledger) : std::make_shared<Ledger>(device_->name())),
      host_ledger_(ledger_->shared_parent()),
      pool_(*device_, *ledger_),
      inbound_(*device_, *ledger_) {
  // A parent is short of memory for another device: then this one's free chunks help, too.
  for (Ledger* each = ledger_.get(); each != nullptr; each = each->parent())
    each->on_shortage(EvictionOrder::free_chunks, this, [this](std::uint64_t) { trim_quietly(); });
}

DeviceState::~DeviceState() {
  for (const auto& weak : std::exchange(*guests_.lock(), {}))
    if (const auto guest = weak.lock()) guest->leave();
  for (Ledger* each = ledger_.get(); each != nullptr; each = each->parent())
    each->remove_evict_callback(this);
  release_all();
  for (Copies& copies : copies_) copies.stream.reset();
  for (const Retired& retired : retired_) inbound_.free(retired.piece);
}

std::byte* DeviceState::allocate_inbound(std::uint64_t bytes, const PieceUse& use) {
  reclaim_inbound();
  return inbound_.allocate(bytes, use);
}

void DeviceState::trim() {
  reclaim_inbound();
  inbound_.trim();  // what was retired is passed when it is given back
  if (!pool_.has_free_chunks() && !has_guests()) return;
  const std::uint64_t until = pool_.now();
  const Event reached(*device_);
  record(reached);
  reached.wait();
  pool_.trim(until);
  drop_passed();
  reclaim_inbound();
  inbound_.trim();
}

void DeviceState::trim_quietly() noexcept {
  try {
    trim();
  } catch (const std::exception&) {
    // Whoever waits for that work is told so there: Device::failed_waits() has grown.
  }
}

void DeviceState::trim_passed() {
  reclaim_inbound();
  inbound_.trim();
  const std::lock_guard lock(fence_mutex_);
  if (fence_ && !fence_->passed.done()) return;
  if (fence_) pool_.trim(fence_->until);
  fence_.reset();
  if (!pool_.has_free_chunks()) return;
  Fence fence{Event(*device_), pool_.now()};
  record(fence.passed);
  fence_.emplace(std::move(fence));
}

void DeviceState::reclaim_inbound() {
  const std::lock_guard lock(retired_mutex_);
  while (!retired_.empty() && retired_.front().passed.done()) {
    inbound_.free(retired_.front().piece);
    retired_.pop_front();
  }
}

void DeviceState::retire_inbound(std::byte* piece) noexcept {
  try {
    Retired retired{Event(*device_), piece};
    record(retired.passed);
    const std::lock_guard lock(retired_mutex_);
    retired_.push_back(std::move(retired));
  } catch (...) {
    settle();  // no event to be had: then nothing may run when the piece is handed out again
    inbound_.free(piece);
  }
}

PoolUse DeviceState::memory_use() const {
  const PoolUse local = pool_.use(), in = inbound_.use();
  return {local.used + in.used, local.peak + in.peak, local.reserved + in.reserved,
          local.beside_small + in.beside_small, local.beside_weights + in.beside_weights};
}

Tensor DeviceState::make_inbound(const heddle_tensor_info& info) {
  const heddle_tensor_info checked = checked_info(info, "tensor");
  const std::uint64_t bytes = span_bytes(checked);
  return make_tensor(checked, std::make_shared<DeviceMemory>(*this, bytes, MemoryUse::inbound));
}

Tensor DeviceState::make(const heddle_tensor_info& info, Reservation* from) {
  const heddle_tensor_info checked = checked_info(info, "tensor");
  const std::uint64_t bytes = span_bytes(checked);
  return make_tensor(checked, allocate(bytes, {.from = from}));
}

void DeviceState::op(std::uint32_t op, std::span<heddle_tensor* const> in,
                     std::span<heddle_tensor* const> out, std::span<const std::byte> attrs,
                     CancelFlag* cancel, Reservation* from) {
  if (in.size() + out.size() > kMaxOperands)
    throw Error(Code::invalid_argument,
                cat(op_name(op), ": an op has at most ", kMaxOperands, " operands"));
  std::array<heddle_view, kMaxOperands> views;
  std::array<const heddle_view*, kMaxOperands> pointers{};
  std::array<Tensor, kMaxOperands> brought;
  const auto view_of = [&](heddle_tensor* tensor, std::size_t slot, bool is_output) {
    if (tensor == nullptr) return;
    if (!is_here(*tensor)) {
      if (is_output && !device_->host_visible())
        throw Error(Code::invalid_argument,
                    cat(op_name(op), ": the output lies in ", tensor->storage->place(), ", not on ",
                        device_->name()));
      brought[slot] = is_output ? Tensor::share(tensor) : bring(Tensor::share(tensor));
      tensor = brought[slot].get();
    }
    views[slot] = {tensor->info, tensor->data()};
    pointers[slot] = &views[slot];
  };
  for (std::size_t i = 0; i < in.size(); ++i) view_of(in[i], i, false);
  for (std::size_t i = 0; i < out.size(); ++i) view_of(out[i], in.size() + i, true);

  const heddle_op_call call{sizeof(heddle_op_call),
                            op_name(op),
                            std::uint32_t(in.size()),
                            std::uint32_t(out.size()),
                            pointers.data(),
                            pointers.data() + in.size(),
                            attrs.data(),
                            std::uint32_t(attrs.size())};
  check_op(call);
  const heddle_kernel& kernel = kernels_->choose(*device_, call);
  const std::size_t scratch =
      kernel.workspace == nullptr ? 0 : kernel.workspace(device_->raw(), &call);
  const std::shared_ptr<DeviceMemory> workspace =
      scratch == 0 ? nullptr : allocate(scratch, {{MemoryKind::workspaces, 0}, op_name(op), from});
  std::vector<Retained> passed;
  const std::lock_guard lock(stream_mutex_);
  Stream& stream = main_stream();
  const CancelScope scope(stream, cancel);
  device_->check(kernel.launch(device_->raw(), stream.raw(), &call,
                               workspace == nullptr ? nullptr : workspace->data()),
                 cat(op_name(op), " on ", device_->name()));
  for (const Tensor& tensor : brought)
    if (tensor && !is_here(*tensor))
      std::ranges::move(retain_locked(tensor->storage), std::back_inserter(passed));
}

bool DeviceState::is_here(const heddle_tensor& tensor) const {
  const auto* memory = dynamic_cast<const DeviceMemory*>(tensor.storage.get());
  return memory != nullptr && &memory->state() == this;
}

void DeviceState::follow(DeviceState& other) {
  if (!other.has_stream()) return;
  const Event reached(*other.device_);
  other.record(reached);
  const std::lock_guard lock(stream_mutex_);
  main_stream().wait_for(reached);
}

void DeviceState::synchronize() {
  if (!has_stream()) return;
  const Event reached(*device_);
  record(reached);
  reached.wait();
  drop_passed();
  reclaim_inbound();
  if (ledger_->is_pressed()) trim_passed();
}

void DeviceState::drop_passed() {
  std::vector<Retained> passed;
  const std::lock_guard lock(stream_mutex_);
  passed = take_passed();
}

std::vector<DeviceState::Retained> DeviceState::take_passed() {
  std::vector<Retained> passed;
  while (!retained_.empty() && retained_.front().passed.done()) {
    passed.push_back(std::move(retained_.front()));
    retained_.pop_front();
  }
  return passed;
}

void DeviceState::settle() noexcept {
  // Whoever waited for that work has been told; here it only matters that nothing runs any more,
  // and that no stream still has a failure to report: it would be taken for one of the next run.
  const auto quietly = [](auto&& wait) {
    try {
      wait();
    } catch (...) {
    }
  };
  quietly([this] { synchronize(); });
  for (Copies& copies : copies_)
    quietly([&] {
      std::optional<Event> reached;  // made only here: the first is a device's first work
      {
        const std::lock_guard lock(copies.mutex);
        if (copies.stream == nullptr) return;
        copies.stream->record(reached.emplace(*device_));
      }
      reached->wait();
    });
}

void DeviceState::release_all() noexcept {
  settle();
  for (bool is_empty = false; !is_empty;) {
    std::optional<Retained> one;  // goes without the lock; a queue of them would take memory
    const std::lock_guard lock(stream_mutex_);
    is_empty = retained_.empty();
    if (is_empty) return;
    one.emplace(std::move(retained_.front()));
    retained_.pop_front();
  }
}

bool DeviceState::close() {
  settle();
  release_all();
  {
    const std::lock_guard lock(fence_mutex_);
    fence_.reset();
  }
  trim_quietly();
  if (memory_use().reserved > 0 || has_guests()) return false;
  for (Copies& copies : copies_) {
    const std::lock_guard lock(copies.mutex);
    copies.stream.reset();
  }
  {
    const std::lock_guard lock(stream_mutex_);
    stream_.reset();
  }
  if (device_->has_context().value_or(false)) device_->release_context();
  return true;
}

void DeviceState::add_guest(std::weak_ptr<DeviceGuest> guest) {
  const auto guests = guests_.lock();
  std::erase_if(*guests, [](const auto& other) { return other.expired(); });
  guests->push_back(std::move(guest));
}

bool DeviceState::has_guests() {
  return std::ranges::any_of(*guests_.lock(), [](const auto& guest) { return !guest.expired(); });
}

void DeviceState::record(const Event& event) {
  const std::lock_guard lock(stream_mutex_);
  main_stream().record(event);
}

void DeviceState::retain(const Tensor& tensor) {
  if (!is_here(*tensor))
    retain(std::shared_ptr<const void>(tensor->storage));  // pool memory is freed in stream order
}

void DeviceState::retain(std::shared_ptr<const void> thing) {
  std::vector<Retained> passed;
  const std::lock_guard lock(stream_mutex_);
  passed = retain_locked(std::move(thing));
}

std::vector<DeviceState::Retained> DeviceState::retain_locked(std::shared_ptr<const void> thing) {
  std::vector<Retained> passed = take_passed();
  retained_.push_back({Event(*device_), std::move(thing)});
  main_stream().record(retained_.back().passed);
  return passed;
}

}  // namespace heddle::engine
