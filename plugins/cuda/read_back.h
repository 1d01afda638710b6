// Copies from a GPU into host memory that is not pinned. The driver makes the caller of such a copy
// wait until the stream has come to it, and meanwhile everybody who asks for anything of that GPU,
// be it whether an event has passed: a run that reads a latent for its preview stopped those on
// other cards for most of a step. So bytes pass through pinned buffers, and a host function of the
// stream takes them from there. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace heddle::cuda {

// Of one GPU.
class ReadBack {
 public:
  ReadBack() = default;
  ReadBack(const ReadBack&) = delete;
  ~ReadBack();  // REQUIRES: the copies are done, and the GPU is the thread's device

  // Enqueues the copy; `dst` stays until it is done. False: nothing was enqueued, since too many
  // bytes are under way, or no pinned memory is to be had. `error` is that of a copy that could not
  // be enqueued; it is cudaSuccess where this is false.
  // REQUIRES: `dst` is not pinned, the stream is not being captured.
  bool enqueue(cudaStream_t stream, void* dst, const void* src, std::size_t bytes,
               cudaError_t& error);

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{2} << 20;
  static constexpr std::size_t kMostBuffers = 8;

  struct Passing {
    ReadBack* owner;
    void* buffer;
    void* dst;
    std::size_t bytes;
  };
  static void CUDART_CB take_over(void* passing);

  std::vector<void*> take(std::size_t count);
  void give_back(void* buffer);

  std::mutex mutex_;
  std::vector<void*> idle_;  // mutex_; has room for all that were made
  std::size_t made_ = 0;     // mutex_
};

// Whether the driver knows nothing of this host memory.
bool is_unpinned(const void* memory);

}  // namespace heddle::cuda
