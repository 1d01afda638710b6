// What a slot's bytes are told to be, and by what they are known.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/joined_dtype.h"
#include "engine/memory/weight_source.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/node.h"

namespace heddle::engine {
namespace {

void require_whole_blocks(const std::vector<WeightSource::Part>& parts,
                          const WeightSource::Range& columns, DType joined) {
  for (const WeightSource::Part& part : parts) {
    // What is widened before it is divided stands in no blocks any more.
    const DType stored = part.tensor->packed != nullptr ? DType::f32 : part.tensor->dtype;
    const std::int64_t below = elements_below(*part.tensor, 2),
                       block = dtype_block(is_block_format(joined) ? joined : stored).elements;
    if (columns.begin * below % block == 0 && columns.end * below % block == 0) continue;
    throw Error(Code::unsupported,
                cat(quote(part.tensor->name), " (", join(part.tensor->shape, ", "),
                    ") cannot be divided at its columns ", columns.begin, " and ", columns.end,
                    ": numbers of ", dtype_name(matrix_dtype(*part.tensor)), " stand in blocks of ",
                    block, ". Divide the model in another way than by rows."));
  }
}

void require_frame(const std::vector<WeightSource::Part>& parts, std::int64_t frame) {
  for (const WeightSource::Part& part : parts) {
    const TensorView& t = *part.tensor;
    const std::size_t axes = t.shape.size();
    const bool has_frames = axes == 3 || (axes == 5 && frame > 0);
    if (has_frames && frame <= t.shape[kFrameAxis] && frame >= -t.shape[kFrameAxis] &&
        !is_block_format(t.dtype))
      continue;
    throw Error(Code::unsupported,
                cat(quote(t.name), " (", join(t.shape, ", "), ") of ", dtype_name(t.dtype),
                    " cannot be cut into filters of a frame: three or five axes, and numbers that "
                    "stand alone, are needed. Use a file in 16 or 32 bits."));
  }
}

// What is transposed is put together from one tensor as it is in the file.
void require_one_whole(const std::vector<WeightSource::Part>& parts, const WeightPatches* patches) {
  const WeightSource::Part& part = parts.front();
  const TensorView& t = *part.tensor;
  const bool is_patched = patches != nullptr && !patches->of(t.name).empty();
  if (parts.size() == 1 && part.begin == 0 && part.end == t.shape[0] && !is_patched) return;
  throw Error(Code::unsupported,
              cat(quote(t.name), " (", join(t.shape, ", "),
                  ") is taken transposed, which only one whole tensor can be that nothing is added "
                  "to. Leave the LoRA out."));
}

// Nobody multiplies tables, so nothing can be added beside their product.
void require_unpatched(const std::vector<WeightSource::Part>& parts, const WeightPatches& patches) {
  for (const WeightSource::Part& part : parts)
    if (!patches.of(part.tensor->name).empty())
      throw Error(Code::unsupported,
                  cat(quote(part.tensor->name), " is a table of ", dtype_name(part.tensor->dtype),
                      ", to which nothing can be added. Use a file with 16 or 32 bits."));
}

}  // namespace

heddle_tensor_info WeightSource::info() const {
  if (!places.empty()) return make_info(HEDDLE_F32, std::vector{placed_rows, placed_width});
  const TensorView& first = *parts.at(0).tensor;
  std::vector<std::int64_t> shape = first.shape;
  std::int64_t rows = 0;
  for (const Part& part : parts) {
    const TensorView& t = *part.tensor;
    if (t.shape.empty() || part.begin < 0 || part.end > t.shape[0] || part.begin > part.end)
      throw Error(Code::invalid_argument, cat(quote(t.name), " (", join(t.shape, ", "),
                                              ") has no rows ", part.begin, " to ", part.end));
    if (!std::equal(t.shape.begin() + 1, t.shape.end(), shape.begin() + 1, shape.end()))
      throw Error(
          Code::invalid_argument,
          cat(quote(first.name), " (", join(first.shape, ", "), ") and ", quote(t.name), " (",
              join(t.shape, ", "), ") cannot be joined: only their first sizes may differ"));
    rows += part.end - part.begin;
  }
  shape[0] = rows;
  std::vector<const TensorView*> tensors;
  for (const Part& part : parts) tensors.push_back(part.tensor);
  const DType dtype = joined_dtype(tensors, use);
  if (frame != 0) {
    require_frame(parts, frame);
    shape.erase(shape.begin() + kFrameAxis);
    if (frame < 0) {
      require_one_whole(parts, patches.get());
      std::swap(shape[0], shape[1]);
    }
  }
  if (patches != nullptr && is_block_format(dtype) && use != HEDDLE_USE_LINEAR)
    require_unpatched(parts, *patches);
  if (!columns.empty()) {
    std::int64_t wide = 0;
    for (const Range& c : columns) {
      if (shape.size() < 2 || c.begin < 0 || c.end < c.begin || c.end > shape[1])
        throw Error(Code::invalid_argument, cat(quote(first.name), " (", join(first.shape, ", "),
                                                ") has no columns ", c.begin, " to ", c.end));
      require_whole_blocks(parts, c, dtype);
      wide += c.end - c.begin;
    }
    shape[1] = wide;
  }
  return make_info(heddle_dtype(dtype), shape);
}

heddle_tensor_info WeightSource::device_info() const {
  heddle_tensor_info told = info();
  const bool is_half = told.dtype == HEDDLE_BF16 || told.dtype == HEDDLE_F16;
  if (is_half && has_merged(*this))
    told = make_info(HEDDLE_F32, std::vector(told.shape, told.shape + told.rank));
  return told;
}

std::int32_t WeightSource::device_use() const {
  const bool is_scaled_fp8 = use == HEDDLE_USE_LINEAR && places.empty() && !parts.empty() &&
                             parts.front().tensor->is_scaled_fp8;
  return is_scaled_fp8 ? HEDDLE_USE_LINEAR_FP8 : use;
}

Hash128 WeightSource::key(Hash128 checkpoint) const {
  Hasher hasher;
  // Of joined checkpoints each tensor keeps the key that it has in its own.
  const bool is_joined = !parts.empty() && parts[0].tensor->joined_from.has_value();
  hasher.add(is_joined ? *parts[0].tensor->joined_from : checkpoint).add(use);
  for (const Part& part : parts) {
    hasher.add(std::string_view(part.tensor->name)).add(part.begin).add(part.end);
    if (part.tensor->is_widened) hasher.add(std::string_view("widened"));
    if (patches != nullptr && !is_patched_beside(*part.tensor, use))
      patches->add_to_key(hasher, part.tensor->name, part.begin, part.end);
  }
  if (!places.empty()) hasher.add(std::string_view("places")).add(placed_rows).add(placed_width);
  for (const Place& place : places)
    hasher.add(place.row).add(place.column).add(place.scale).add(place.file);
  if (frame != 0) hasher.add(std::string_view("frame")).add(frame);
  for (const Range& c : columns) hasher.add(std::string_view("columns")).add(c.begin).add(c.end);
  return hasher.finish();
}

std::int64_t elements_below(const TensorView& tensor, std::size_t axes) {
  std::int64_t count = 1;
  for (std::size_t axis = axes; axis < tensor.shape.size(); ++axis) count *= tensor.shape[axis];
  return count;
}

bool has_merged(const WeightSource& source) {
  if (source.patches == nullptr) return false;
  for (const WeightSource::Part& part : source.parts)
    if (!is_patched_beside(*part.tensor, source.use))
      for (const WeightPatches::Term& term : source.patches->of(part.tensor->name))
        if (term.begin < part.end && part.begin < term.end) return true;
  return false;
}

}  // namespace heddle::engine
