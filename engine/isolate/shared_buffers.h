// Memory that the engine shares with its workers: host tensors that lie in it cross without a copy.
// The engine makes all of it. A worker may write into what it has asked for, as long as it has it;
// everybody else maps it to read. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/isolate/channel.h"
#include "engine/isolate/protocol.h"
#include "engine/isolate/shared_memory.h"
#include "engine/tensor/tensor.h"

namespace heddle::engine {

// The engine's end of a control channel. What cannot be sent is dropped: the worker has ended, and
// whoever calls it next is told so. One that does not listen is made to end.
class WorkerControl {
 public:
  explicit WorkerControl(int socket) : channel_(socket) {}
  void send(ControlMessage kind, const BytesWriter& body, int descriptor = -1) noexcept;
  void shut_down() { channel_.shut_down(); }
  Message receive() { return channel_.receive(); }
  void while_waiting(std::function<void()> call) { channel_.while_waiting(std::move(call)); }
  // From now on it is for sending.
  void have_patience();

 private:
  static constexpr int kMostTicks = 500;  // of 20 ms
  Channel channel_;
  std::atomic<int> ticks_{0};  // that it has not listened to the latest message
};

class SharedBuffer {
 public:
  explicit SharedBuffer(std::uint64_t bytes);
  ~SharedBuffer();  // workers that have mapped it are told
  SharedBuffer(const SharedBuffer&) = delete;
  std::byte* data() const { return memory_.data(); }
  std::uint64_t bytes() const { return memory_.bytes(); }
  std::uint64_t id() const { return id_; }
  // Maps it in a worker, unless it is there already.
  void map_in(const std::shared_ptr<WorkerControl>& worker, bool is_writable);

 private:
  SharedMemory memory_;
  const std::uint64_t id_;  // of no other in the process
  Guarded<std::vector<std::weak_ptr<WorkerControl>>> mapped_in_;
};

// Keeps buffers that are free, as mapping one anew costs more than to copy into it. One for what a
// worker reads and one for what it writes.
class SharedBuffers {
 public:
  std::unique_ptr<SharedBuffer> take(std::uint64_t bytes);  // at least so many
  void give_back(std::unique_ptr<SharedBuffer> buffer) noexcept;
  void close();  // keeps nothing from now on

 private:
  static constexpr std::uint64_t kMostKept = std::uint64_t{256} << 20;  // bytes
  static constexpr std::size_t kMostBuffers = 64;
  struct Free {
    std::vector<std::unique_ptr<SharedBuffer>> buffers;  // the latest last
    std::uint64_t bytes = 0;
    bool is_closed = false;
  };
  Guarded<Free> free_;
};

class SharedStorage final : public Storage {
 public:
  // `counted`: what counts it in the host's ledger, or nullptr.
  SharedStorage(std::unique_ptr<SharedBuffer> buffer, std::shared_ptr<SharedBuffers> from,
                std::shared_ptr<void> counted)
      : buffer_(std::move(buffer)), from_(std::move(from)), counted_(std::move(counted)) {}
  ~SharedStorage() override { from_->give_back(std::move(buffer_)); }
  std::byte* data() const override { return buffer_->data(); }
  std::uint64_t bytes() const override { return buffer_->bytes(); }
  const char* place() const override { return "host"; }
  SharedBuffer& buffer() const { return *buffer_; }

 private:
  std::unique_ptr<SharedBuffer> buffer_;
  const std::shared_ptr<SharedBuffers> from_;
  const std::shared_ptr<void> counted_;
};

}  // namespace heddle::engine
