#include "engine/isolate/shared_buffers.h"

#include <algorithm>
#include <atomic>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

// Equal sizes find each other again: steps of an eighth.
std::uint64_t rounded(std::uint64_t bytes) {
  std::uint64_t step = 4096;
  while (step * 16 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

}  // namespace

std::uint64_t next_shared_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void WorkerControl::have_patience() {
  channel_.while_waiting([this] {
    if (++ticks_ > kMostTicks) throw ChannelClosed();
  });
}

void WorkerControl::send(ControlMessage kind, const BytesWriter& body, int descriptor) noexcept {
  try {
    channel_.send(std::uint32_t(kind), body.bytes(), descriptor);
    ticks_ = 0;
  } catch (...) {
    channel_.shut_down();
  }
}

SharedBuffer::SharedBuffer(std::uint64_t bytes, SharedMemory::Writers writers)
    : memory_(bytes, writers), id_(next_shared_id()) {}

SharedBuffer::~SharedBuffer() {
  BytesWriter body;
  body.number(id_);
  for (const std::weak_ptr<WorkerControl>& worker : *mapped_in_.lock())
    if (const auto control = worker.lock()) control->send(ControlMessage::forget, body);
}

void SharedBuffer::map_in(const std::shared_ptr<WorkerControl>& worker, bool is_writable) {
  const auto mapped = mapped_in_.lock();
  std::erase_if(*mapped, [](const auto& other) { return other.expired(); });
  if (std::ranges::any_of(*mapped, [&](const auto& other) { return other.lock() == worker; }))
    return;
  BytesWriter body;
  body.number(id_);
  body.number(bytes());
  body.flag(is_writable);
  if (is_writable) {
    worker->send(ControlMessage::map, body, memory_.descriptor());
  } else {
    const FileDescriptor descriptor(memory_.read_only_descriptor());
    worker->send(ControlMessage::map, body, descriptor.number());
  }
  mapped->push_back(worker);
}

CountedBuffer SharedBuffers::take(std::uint64_t bytes, const CountBytes& count) {
  if (bytes > std::uint64_t(kMostTensorBytes))
    throw Error(Code::out_of_memory, cat(bytes, " bytes of memory shared with a worker"));
  const std::uint64_t size = rounded(std::max<std::uint64_t>(bytes, 1));
  {
    const auto free = free_.lock();
    const auto found =
        std::find_if(free->buffers.rbegin(), free->buffers.rend(), [&](const CountedBuffer& kept) {
          return kept.buffer->bytes() >= size && kept.buffer->bytes() <= 2 * size;
        });
    if (found != free->buffers.rend()) {
      CountedBuffer taken = std::move(*found);
      free->buffers.erase(std::next(found).base());
      free->bytes -= taken.buffer->bytes();
      return taken;
    }
  }
  std::shared_ptr<void> counted;
  try {
    counted = count ? count(size) : nullptr;
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory || !drop_kept()) throw;
    counted = count(size);
  }
  return {std::make_unique<SharedBuffer>(size, writers_), std::move(counted)};
}

void SharedBuffers::give_back(CountedBuffer buffer) noexcept {
  std::vector<CountedBuffer> dropped;  // without the lock: workers are told
  try {
    const auto free = free_.lock();
    const std::uint64_t bytes = buffer.buffer->bytes();
    if (free->is_closed || bytes > kMostKept) return;
    free->buffers.push_back(std::move(buffer));
    free->bytes += bytes;
    while (free->bytes > kMostKept || free->buffers.size() > kMostBuffers) {
      free->bytes -= free->buffers.front().buffer->bytes();
      dropped.push_back(std::move(free->buffers.front()));
      free->buffers.erase(free->buffers.begin());
    }
  } catch (...) {  // no memory to keep it
  }
}

bool SharedBuffers::drop_kept() {
  std::vector<CountedBuffer> dropped;  // goes without the lock
  const auto free = free_.lock();
  free->bytes = 0;
  dropped.swap(free->buffers);
  return !dropped.empty();
}

void SharedBuffers::close() {
  free_.lock()->is_closed = true;
  (void)drop_kept();
}

}  // namespace heddle::engine
