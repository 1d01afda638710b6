#include "read_back.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace heddle::cuda {

ReadBack::~ReadBack() {
  for (void* buffer : idle_) cudaFreeHost(buffer);
}

bool ReadBack::enqueue(cudaStream_t stream, void* dst, const void* src, std::size_t bytes,
                       cudaError_t& error) {
  error = cudaSuccess;
  const std::size_t count = (bytes + kBufferBytes - 1) / kBufferBytes;
  std::vector<std::unique_ptr<Passing>> parts(count > kMostBuffers ? 0 : count);
  for (auto& part : parts) part = std::make_unique<Passing>();
  const std::vector<void*> buffers = take(parts.size());
  if (buffers.empty()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * kBufferBytes;
    *parts[i] = {this, buffers[i], static_cast<std::byte*>(dst) + begin,
                 std::min(kBufferBytes, bytes - begin)};
    error = cudaMemcpyAsync(buffers[i], static_cast<const std::byte*>(src) + begin, parts[i]->bytes,
                            cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess) error = cudaLaunchHostFunc(stream, take_over, parts[i].get());
    if (error != cudaSuccess) {
      cudaStreamSynchronize(stream);  // or the copy could write to a buffer that another one has
      for (std::size_t rest = i; rest < count; ++rest) give_back(buffers[rest]);
      return true;
    }
    parts[i].release();  // its host function's now
  }
  return true;
}

void CUDART_CB ReadBack::take_over(void* passing) {
  const std::unique_ptr<Passing> part(static_cast<Passing*>(passing));
  std::memcpy(part->dst, part->buffer, part->bytes);
  part->owner->give_back(part->buffer);
}

// None: there are not so many. The driver is asked without the lock: it may wait for a host
// function, which needs it.
std::vector<void*> ReadBack::take(std::size_t count) {
  std::vector<void*> taken;
  taken.reserve(count);
  std::size_t made = 0;
  {
    const std::lock_guard lock(mutex_);
    idle_.reserve(kMostBuffers);
    if (count == 0 || idle_.size() + (kMostBuffers - made_) < count) return taken;
    const std::size_t from_idle = std::min(count, idle_.size());
    taken.assign(idle_.end() - std::ptrdiff_t(from_idle), idle_.end());
    idle_.resize(idle_.size() - from_idle);
    made = count - from_idle;
    made_ += made;
  }
  for (; made > 0; --made) {
    void* buffer = nullptr;
    if (cudaHostAlloc(&buffer, kBufferBytes, cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();
      const std::lock_guard lock(mutex_);
      made_ -= made;
      idle_.insert(idle_.end(), taken.begin(), taken.end());
      return {};
    }
    taken.push_back(buffer);
  }
  return taken;
}

void ReadBack::give_back(void* buffer) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(buffer);
}

bool is_unpinned(const void* memory) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace heddle::cuda
