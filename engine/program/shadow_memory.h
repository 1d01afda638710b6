// What a piece of memory holds and who touched it last, byte range by byte range: for checks of
// plans whose launches and copies run on several devices without a common order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/tensor/dtype.h"
#include "heddle/abi/value.h"

namespace heddle::engine {

// Who does things one after another: a device's main stream, or one copy.
struct Moment {
  std::uint32_t actor = 0, time = 0;
};
// By actor: up to which of its moments everything is known to be done.
using VectorClock = std::vector<std::uint32_t>;

inline bool is_before(const Moment& moment, const VectorClock& clock) {
  return clock[moment.actor] >= moment.time;
}

// An access: at which moment, knowing of what, through which storage of the plan.
struct Access {
  Moment moment;
  const VectorClock& known;
  std::int32_t storage;
};

// Bytes [begin, end) of something; `content` names what they hold, from its byte `from` on.
struct Piece {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t content = 0, from = 0;
};

class ShadowMemory {
 public:
  // Both return what is wrong, or "". A read appends what it finds to `found` where that is wanted.
  std::string read(std::uint64_t begin, std::uint64_t end, const Access& by,
                   std::vector<Piece>* found);
  std::string write(const Piece& piece, const Access& by);

 private:
  struct MemoryKind {
    std::uint64_t end = 0;
    std::int32_t storage = -1;
    Moment writer;
    std::uint64_t content = 0, from = 0;
    std::vector<Moment> readers;  // none of them before another
  };
  using Map = std::map<std::uint64_t, MemoryKind>;

  // The first piece at or behind `at`, after a piece that `at` is inside of was cut there.
  Map::iterator cut(std::uint64_t at);

  Map pieces_;  // by begin; no two overlap
};

// A tensor counted in what has a size of its own: elements, or the blocks that neighbours of a row
// share.
struct Items {
  explicit Items(const heddle_tensor_info& tensor) : info(tensor) {
    const DTypeBlock block = dtype_block(DType(tensor.dtype));
    bytes = std::uint64_t(block.bytes);
    if (block.elements == 1 || info.rank == 0) return;
    info.shape[info.rank - 1] /= block.elements;
    for (std::uint32_t i = 0; i + 1 < info.rank; ++i) info.stride[i] /= block.elements;
  }
  heddle_tensor_info info;
  std::uint64_t bytes = 0;
};

// The bytes of a tensor's elements as they lie in memory, in runs that are as long as can be:
// visit(begin, bytes), relative to element (0, ...). Axes that repeat elements count once.
template <class F>
void for_each_run(const heddle_tensor_info& info, std::uint64_t item_bytes, F&& visit) {
  struct Axis {
    std::int64_t size, stride;
  };
  std::vector<Axis> axes;
  for (std::uint32_t i = 0; i < info.rank; ++i) {
    if (info.shape[i] == 0) return;
    if (info.shape[i] > 1 && info.stride[i] != 0) axes.push_back({info.shape[i], info.stride[i]});
  }
  std::ranges::stable_sort(axes, std::ranges::greater(), &Axis::stride);
  std::int64_t run = 1;
  for (; !axes.empty() && axes.back().stride == run; axes.pop_back()) run *= axes.back().size;
  std::vector<std::int64_t> at(axes.size(), 0);
  for (;;) {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) begin += at[i] * axes[i].stride;
    visit(begin * std::int64_t(item_bytes), std::uint64_t(run) * item_bytes);
    std::size_t axis = axes.size();
    while (axis > 0 && ++at[axis - 1] == axes[axis - 1].size) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace heddle::engine
