#include "engine/transfer/transfer.h"

#include "engine/memory/host_tensor.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

// The bytes of a tensor that may have gaps: from its first element to its last one.
struct Span {
  std::int64_t begin = 0;  // bytes before element (0, ...), not positive
  std::uint64_t bytes = 0;
};
Span span_of(const heddle_tensor_info& info) {
  const Extent e = extent(info);
  return {dtype_bytes(DType(info.dtype), e.begin),
          std::uint64_t(dtype_bytes(DType(info.dtype), e.end - e.begin))};
}

}  // namespace

Transfer::Transfer(Tensor tensor, DeviceState* to, const WorkWatch& watch)
    : source_(std::move(tensor)), to_(to) {
  const auto* memory = dynamic_cast<const DeviceMemory*>(source_->storage.get());
  DeviceState* const from = memory == nullptr ? nullptr : &memory->state();
  if (from == to) {
    here_ = source_;
    return;
  }
  if (from == nullptr) {  // host memory, which needs no event
    source_->storage->wait();
    if (to->device().host_visible())
      here_ = to->bring(source_);
    else
      watched(watch, *to, dense_bytes(source_->info), [&] { here_ = to->bring(source_); });
    bytes_ = here_ == source_ ? 0 : dense_bytes(source_->info);
    return;
  }
  if (find_route(&from->device(), to == nullptr ? nullptr : &to->device()) == Route::same) {
    here_ = source_;
    copy_task_ = std::make_shared<CopyTask>(*from, to, nullptr, nullptr, 0);
  } else {
    const Span span = span_of(source_->info);
    bytes_ = span.bytes;
    heddle_tensor_info raw{};
    raw.size = sizeof raw;
    raw.dtype = HEDDLE_U8;
    raw.rank = 1;
    raw.shape[0] = std::int64_t(span.bytes);
    const Tensor place = to == nullptr
                             ? make_host_tensor(checked_info(raw, "transfer"), from->host_ledger())
                             : to->make_inbound(raw);
    here_ = make_tensor(source_->info, place->storage, std::uint64_t(-span.begin));
    copy_task_ = std::make_shared<CopyTask>(*from, to, source_->data() + span.begin, place->data(),
                                            span.bytes);
  }
  copy_task_->start(watch, memory->written());
}

Transfer::~Transfer() {
  if (copy_task_ == nullptr) return;
  try {
    if (to_ == nullptr || !awaited_) copy_task_->await();
    if (to_ == nullptr) return;
    // Whatever reads it is enqueued by now: once the main stream is past this point, the copy is
    // done and so are its readers.
    if (source_) to_->retain(source_->storage);
    to_->retain(std::shared_ptr<const void>(std::move(copy_task_)));
  } catch (...) {
    if (to_ != nullptr)
      to_->settle();  // who waits for that work is told there; here nothing may be running any more
  }
}

const Tensor& Transfer::await() {
  if (copy_task_ != nullptr) {
    const std::lock_guard lock(mutex_);
    if (!awaited_ || to_ == nullptr) copy_task_->await();
    awaited_ = true;
    release_source();
  }
  return here_;
}

// Its readers need the source only where they read its very memory.
void Transfer::release_source() {
  if (bytes_ == 0 || !source_) return;
  if (to_ != nullptr) to_->retain(source_->storage);
  source_ = {};
}

}  // namespace heddle::engine
