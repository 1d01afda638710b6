// Tensors into a device's memory and out of it, one at a time; those between devices that go on
// meanwhile are the transfers of engine/transfer.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/device_state.h"
#include "engine/memory/host_tensor.h"
#include "engine/tensor/call.h"
#include "engine/tensor/gather.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

Tensor DeviceState::bring(const Tensor& tensor) {
  if (is_here(*tensor)) return tensor;
  const auto* elsewhere = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
  const bool readable = elsewhere == nullptr || elsewhere->state().device().host_visible();
  if (readable && device_->host_visible()) {  // one address space: an alias, no bytes
    if (elsewhere == nullptr)
      tensor->storage->wait();
    else
      follow(elsewhere->state());
    return tensor;
  }
  tensor->storage->wait();
  heddle_tensor_info dense = tensor->info;
  std::fill(std::begin(dense.stride), std::end(dense.stride), 0);
  dense = checked_info(dense, "transfer");
  const std::uint64_t bytes = dense_bytes(dense);
  Tensor host = tensor;
  if (!readable || !is_contiguous(tensor->info)) {
    host = make_host_tensor(dense, host_ledger_);
    if (readable)
      gather(tensor->info, tensor->data(), host->data());
    else
      elsewhere->state().read(tensor, host->data(), bytes);
  }
  Tensor here = make(dense);
  std::vector<Retained> passed;
  const std::lock_guard lock(stream_mutex_);
  device_->copy(main_stream(), device_.get(), here->data(), nullptr, host->data(), bytes);
  passed = retain_locked(host->storage);
  return here;
}

Tensor DeviceState::upload(const heddle_tensor_info& info, const void* src) {
  heddle_tensor_info dense = info;
  std::fill(std::begin(dense.stride), std::end(dense.stride), 0);
  const Tensor host = make_host_tensor(checked_info(dense, "upload"), host_ledger_);
  std::memcpy(host->data(), src, dense_bytes(host->info));
  if (device_->host_visible()) return host;
  return bring(host);
}

void DeviceState::read(const Tensor& tensor, void* dst, std::size_t bytes) {
  if (bytes != dense_bytes(tensor->info))
    throw Error(Code::invalid_argument,
                cat("reading ", describe(tensor->info), ": it has ", dense_bytes(tensor->info),
                    " bytes, ", bytes, " were asked for"));
  if (tensor->info.layout != 0)
    throw Error(Code::unsupported,
                cat("reading ", describe(tensor->info), ": it is packed for a device"));
  const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
  if (memory != nullptr && &memory->state() != this)
    return memory->state().read(tensor, dst, bytes);
  const std::shared_ptr<const Event> written = memory == nullptr ? nullptr : memory->written();
  if (memory == nullptr || device_->host_visible()) {
    if (written == nullptr)
      tensor->storage->wait();
    else
      written->wait();  // and not for what comes behind it
    gather(tensor->info, tensor->data(), static_cast<std::byte*>(dst));
    if (written != nullptr) reclaim_passed();
    return;
  }
  if (written != nullptr && is_contiguous(tensor->info)) return read_behind(*written, tensor, dst);
  Tensor dense = tensor;
  if (!is_contiguous(tensor->info)) {
    heddle_tensor_info info = tensor->info;
    std::fill(std::begin(info.stride), std::end(info.stride), 0);
    dense = make(info);
    heddle_tensor* const from[] = {tensor.get()};
    heddle_tensor* const to[] = {dense.get()};
    op(op_id(HEDDLE_OP_COPY), from, to, {});
  }
  try {
    with_stream([&](Stream& stream) {
      device_->copy(stream, nullptr, dst, device_.get(), dense->data(), bytes);
    });
    synchronize();
  } catch (...) {
    settle();  // what was enqueued writes to `dst`, which the caller frees
    throw;
  }
}

// On the stream of copies, so that it passes by what the main stream has still to do. A copy to
// pageable memory blocks inside of the driver until it has begun: that the host waits first keeps
// the stream's lock free for others meanwhile.
void DeviceState::read_behind(const Event& written, const Tensor& tensor, void* dst) {
  written.wait();
  const Event copied(*device_);
  try {
    with_copy_stream(CopyStream::out, [&](Stream& stream) {
      stream.wait_for(written);
      device_->copy(stream, nullptr, dst, device_.get(), tensor->data(), dense_bytes(tensor->info));
      stream.record(copied);
    });
    copied.wait();
  } catch (...) {
    settle();  // as in read()
    throw;
  }
  reclaim_passed();
}

// What synchronize() does besides, of what has passed.
void DeviceState::reclaim_passed() {
  drop_passed();
  reclaim_inbound();
  if (ledger_->is_pressed()) trim_passed();
}

}  // namespace heddle::engine
