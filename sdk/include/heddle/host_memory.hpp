// heddle/host_memory.hpp - host memory that a node needs for a while. It counts within the host's
// budget (--host-budget), like host tensors: others evict what they keep for it, and where that
// is not enough the call fails with HEDDLE_OUT_OF_MEMORY, which says who holds what. All of it
// belongs to one call, and to that call's thread.
#pragma once

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <span>
#include <vector>

#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// For std::pmr containers; it outlives them.
class HostMemory final : public std::pmr::memory_resource {
 public:
  explicit HostMemory(Context& ctx) : ctx_(ctx) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

 private:
  static constexpr std::size_t kFront = 64;  // a cache line, to which host tensors are aligned

  // The memory of a tensor, whose handle stands in front of it.
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > std::size_t(std::numeric_limits<std::int64_t>::max()) - kFront ||
        alignment > kFront)
      throw Error(HEDDLE_OUT_OF_MEMORY, "host memory: cannot allocate " + std::to_string(bytes) +
                                            " bytes aligned to " + std::to_string(alignment));
    Tensor piece = ctx_.make_host({std::int64_t(bytes + kFront)}, HEDDLE_U8);
    auto* const front = piece.data<std::byte>();
    new (front) heddle_tensor*(piece.release());
    return front + kFront;
  }
  void do_deallocate(void* data, std::size_t, std::size_t) override {
    services.tensor->release(
        *reinterpret_cast<heddle_tensor**>(static_cast<std::byte*>(data) - kFront));
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  Context& ctx_;
};

// Row-major elements of a tensor, copied. Waits for it. REQUIRES: `to` has as many bytes.
template <class T, class Elements>
void read_to(Context& ctx, const Tensor& tensor, Elements&& to) {
  const std::span<T> elements(to);
  check(services.tensor->read(ctx.raw(), tensor.raw(), elements.data(), elements.size_bytes()));
}

// Row-major elements of an f32 tensor in host memory: where they are if they lie like that, else a
// copy. REQUIRES: the tensor is, or is a part of, an input of a node that works on the host
// (HEDDLE_NODE_HOST) or of a port that wants it there (HEDDLE_PORT_HOST).
class HostFloats {
 public:
  HostFloats(Context& ctx, const Tensor& tensor) : tensor_(tensor), memory_(ctx), copy_(&memory_) {
    elements_ = {tensor.data<float>(), std::size_t(tensor.count())};
    if (tensor.dtype() == HEDDLE_F32 && is_row_major(tensor.info())) return;
    copy_.resize(elements_.size());
    read_to<float>(ctx, tensor, copy_);
    elements_ = copy_;
  }
  HostFloats(const HostFloats&) = delete;
  HostFloats& operator=(const HostFloats&) = delete;

  const float* data() const { return elements_.data(); }
  std::size_t size() const { return elements_.size(); }
  std::span<const float> elements() const { return elements_; }

 private:
  static bool is_row_major(const heddle_tensor_info& info) {
    std::int64_t step = 1;
    for (std::uint32_t i = info.rank; i-- > 0; step *= info.shape[i])
      if (info.shape[i] > 1 && info.stride[i] != step) return false;
    return info.layout == 0;
  }

  const Tensor tensor_;
  HostMemory memory_;
  std::pmr::vector<float> copy_;
  std::span<const float> elements_;
};

}  // namespace heddle
