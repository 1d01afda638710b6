// Memory that the engine shares with its workers: host tensors that lie in it cross without a copy.
// The engine makes all of it. A worker may write into what it has asked for, as long as it has it;
// everybody else maps it to read. Any thread.
#pragma once

#include <atomic>
#include <functional>
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

// Of memory that is shared with workers: no other in the process has it.
std::uint64_t next_shared_id();

class SharedBuffer {
 public:
  SharedBuffer(std::uint64_t bytes, SharedMemory::Writers writers);
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

// Counts so many bytes in the host's ledger for as long as the result lives; nullptr: nobody
// counts.
using CountBytes = std::function<std::shared_ptr<void>(std::uint64_t bytes)>;

struct CountedBuffer {
  std::unique_ptr<SharedBuffer> buffer;
  std::shared_ptr<void> counted;  // as long as the buffer is there, in use or kept
};

// Keeps buffers that are free, as mapping one anew costs more than to copy into it. One for what a
// worker reads and one for what it writes.
class SharedBuffers {
 public:
  explicit SharedBuffers(SharedMemory::Writers writers) : writers_(writers) {}
  // Of at least so many bytes; `count` is told how many it has. Throws out_of_memory, also for more
  // than a tensor may have, and what `count` throws when nothing is kept any more.
  CountedBuffer take(std::uint64_t bytes, const CountBytes& count);
  void give_back(CountedBuffer buffer) noexcept;
  void close();  // keeps nothing from now on

 private:
  static constexpr std::uint64_t kMostKept = std::uint64_t{256} << 20;  // bytes
  static constexpr std::size_t kMostBuffers = 64;
  struct Free {
    std::vector<CountedBuffer> buffers;  // the latest last
    std::uint64_t bytes = 0;
    bool is_closed = false;
  };
  bool drop_kept();  // whether there were any
  const SharedMemory::Writers writers_;
  Guarded<Free> free_;
};

class SharedStorage final : public Storage {
 public:
  SharedStorage(CountedBuffer buffer, std::shared_ptr<SharedBuffers> from)
      : buffer_(std::move(buffer)), from_(std::move(from)) {}
  ~SharedStorage() override { from_->give_back(std::move(buffer_)); }
  std::byte* data() const override { return buffer_.buffer->data(); }
  std::uint64_t bytes() const override { return buffer_.buffer->bytes(); }
  const char* place() const override { return "host"; }
  SharedBuffer& buffer() const { return *buffer_.buffer; }

 private:
  CountedBuffer buffer_;
  const std::shared_ptr<SharedBuffers> from_;
};

}  // namespace heddle::engine
