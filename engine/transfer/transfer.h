// A tensor on its way to another device or to host memory: one for each tensor and destination,
// shared by all readers there. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "engine/transfer/copy_task.h"

namespace heddle::engine {

class Transfer {
 public:
  // Starts: behind all that is enqueued where the tensor lies, or behind what has written it, where
  // its memory says that. The tensor has been enqueued by its maker; its memory is kept until the
  // copy is done, and not longer once somebody has awaited it. `to` nullptr: host memory. The watch
  // is told of the copy.
  Transfer(Tensor tensor, DeviceState* to, const WorkWatch& watch = {});
  ~Transfer();
  Transfer(const Transfer&) = delete;

  // The tensor at its destination, for readers that are enqueued there from now on; for host memory
  // the caller waits.
  const Tensor& await();
  // Where it is going to be: not to be read before await().
  const Tensor& here() const { return here_; }
  std::uint64_t bytes() const { return bytes_; }  // copied

 private:
  void release_source();  // REQUIRES: the copy is awaited

  Tensor source_;  // until what was enqueued for it is sure to be done
  Tensor here_;
  DeviceState* const to_;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<CopyTask> copy_task_;  // nullptr: it is where it is wanted
  std::mutex mutex_;
  bool awaited_ = false;  // guarded by mutex_
};

}  // namespace heddle::engine
