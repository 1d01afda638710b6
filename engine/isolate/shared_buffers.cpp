#include "engine/isolate/shared_buffers.h"

#include <algorithm>
#include <atomic>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

std::uint64_t next_buffer() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Equal sizes find each other again: steps of an eighth.
std::uint64_t rounded(std::uint64_t bytes) {
  std::uint64_t step = 4096;
  while (step * 16 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

}  // namespace

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

SharedBuffer::SharedBuffer(std::uint64_t bytes) : memory_(bytes), id_(next_buffer()) {}

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

std::unique_ptr<SharedBuffer> SharedBuffers::take(std::uint64_t bytes) {
  const std::uint64_t size = rounded(std::max<std::uint64_t>(bytes, 1));
  {
    const auto free = free_.lock();
    const auto found = std::find_if(
        free->buffers.rbegin(), free->buffers.rend(),
        [&](const auto& buffer) { return buffer->bytes() >= size && buffer->bytes() <= 2 * size; });
    if (found != free->buffers.rend()) {
      std::unique_ptr<SharedBuffer> taken = std::move(*found);
      free->buffers.erase(std::next(found).base());
      free->bytes -= taken->bytes();
      return taken;
    }
  }
  return std::make_unique<SharedBuffer>(size);
}

void SharedBuffers::give_back(std::unique_ptr<SharedBuffer> buffer) noexcept {
  std::vector<std::unique_ptr<SharedBuffer>> dropped;  // without the lock: workers are told
  try {
    const auto free = free_.lock();
    if (free->is_closed || buffer->bytes() > kMostKept) return;
    free->bytes += buffer->bytes();
    free->buffers.push_back(std::move(buffer));
    while (free->bytes > kMostKept || free->buffers.size() > kMostBuffers) {
      free->bytes -= free->buffers.front()->bytes();
      dropped.push_back(std::move(free->buffers.front()));
      free->buffers.erase(free->buffers.begin());
    }
  } catch (...) {  // no memory to keep it
  }
}

void SharedBuffers::close() {
  std::vector<std::unique_ptr<SharedBuffer>> dropped;
  const auto free = free_.lock();
  free->is_closed = true;
  free->bytes = 0;
  dropped.swap(free->buffers);
}

}  // namespace heddle::engine
