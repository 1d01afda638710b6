// A tensor: a shape and a share of a piece of memory. The memory may belong to a device, to the
// host, to a mapped file, or exist only as a description (a block being recorded): Storage says
// which. The C ABI's heddle_tensor is this very object, so that crossing the border costs nothing.
// Counted, immutable once it has left the node that made it; handles may be copied and dropped on
// any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "engine/tensor/shape.h"

namespace heddle::engine {

// A piece of memory. Freed (in stream order, where that applies) by its destructor.
class Storage {
 public:
  virtual ~Storage() = default;
  // Address of the first byte: a device address, or one the host can read. nullptr for a
  // description.
  virtual std::byte* data() const = 0;
  virtual std::uint64_t bytes() const = 0;
  // "cpu:0", "host", "file", "block". Lives as long as the storage.
  virtual const char* place() const = 0;
  // Blocks until everything enqueued so far that writes this memory is done; throws what failed.
  virtual void wait() const {}
};

}  // namespace heddle::engine

struct heddle_tensor {
  heddle_tensor(const heddle_tensor_info& info, std::shared_ptr<heddle::engine::Storage> storage,
                std::uint64_t offset_bytes)
      : info(info), storage(std::move(storage)), offset_bytes(offset_bytes) {}
  std::byte* data() const {
    std::byte* base = storage->data();
    return base == nullptr ? nullptr : base + offset_bytes;
  }
  mutable std::atomic<std::uint32_t> refs{1};
  const heddle_tensor_info info;
  const std::shared_ptr<heddle::engine::Storage> storage;
  const std::uint64_t offset_bytes;  // of element (0, ...)
};

namespace heddle::engine {

// A counted pointer to something with `refs`; T is heddle_tensor or const heddle_value.
template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref adopt(T* raw) {
    Ref ref;
    ref.raw_ = raw;
    return ref;
  }
  static Ref share(T* raw) {
    if (raw != nullptr) raw->refs.fetch_add(1, std::memory_order_relaxed);
    return adopt(raw);
  }
  Ref(const Ref& other) : Ref(share(other.raw_)) {}
  Ref(Ref&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Ref() { drop(raw_); }
  static void drop(T* raw) {
    if (raw != nullptr && raw->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete raw;
  }
  explicit operator bool() const { return raw_ != nullptr; }
  T* get() const { return raw_; }
  T* operator->() const { return raw_; }
  T& operator*() const { return *raw_; }
  T* release() { return std::exchange(raw_, nullptr); }
  friend bool operator==(const Ref&, const Ref&) = default;

 private:
  T* raw_ = nullptr;
};

using Tensor = Ref<heddle_tensor>;

Tensor make_tensor(const heddle_tensor_info& info, std::shared_ptr<Storage> storage,
                   std::uint64_t offset_bytes = 0);

// In host memory, row-major, contents undefined. Throws out_of_memory.
Tensor make_host_tensor(const heddle_tensor_info& info);

// Another look at the same memory; `offset` in elements from the old element (0, ...). Throws when
// an element would lie outside of the storage, or when the tensor is in a device's private layout.
Tensor view(const Tensor& tensor, const heddle_tensor_info& info, std::int64_t offset);

}  // namespace heddle::engine
