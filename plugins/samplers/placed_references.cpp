// Shown pictures among the tokens of the text (reference_input.h).
#include <algorithm>

#include <heddle/host_memory.hpp>

#include "conditioning.h"
#include "reference_input.h"

namespace heddle::samplers {
namespace {

void check_count(std::size_t count, const ReferenceLayout& layout) {
  if (std::int64_t(count) <= layout.slots) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning carries " + std::to_string(count) +
                                           " reference pictures, the model is shown " +
                                           std::to_string(layout.slots) +
                                           " at most. Leave some out.");
}

// The token of a text of `text` before which a picture stands.
std::int64_t slot_of(const Value& slots, std::size_t number, std::int64_t text) {
  if (number >= slots.count()) return text;
  return slots.item(std::uint32_t(number)).as<std::int64_t>();
}

std::vector<PlacedInput> inputs_of(const std::vector<Shape>& pictures, const Value& slots,
                                   std::int64_t text) {
  std::vector<PlacedInput> inputs;
  for (std::size_t k = 0; k < pictures.size(); ++k) {
    const std::string number = std::to_string(k);
    inputs.push_back({"reference." + number, HEDDLE_F32, pictures[k]});
    inputs.push_back({"slot." + number, HEDDLE_I32, {slot_of(slots, k, text) + 1}});
    if (inputs.back().shape[0] < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the conditioning's image_slots has a negative number: " +
                      std::to_string(inputs.back().shape[0] - 1));
  }
  return inputs;
}

}  // namespace

std::optional<std::vector<PlacedInput>> placed_shapes(const blocks::EntryShapes& entry,
                                                      const ReferenceLayout& layout,
                                                      std::int64_t items) {
  check_count(entry.references.size(), layout);
  std::vector<Shape> pictures;
  for (const heddle_tensor_info& info : entry.references) {
    if (info.rank != 4) return {};
    Shape shape = blocks::shape_of(info);
    shape[0] = fitted_rows(shape[0], items);
    pictures.push_back(shape);
  }
  if (entry.text.rank < 2) return {};
  return inputs_of(pictures, entry.scope.field("image_slots"), entry.text.shape[1]);
}

std::vector<PlacedInput> placed_references(Context& ctx, const Value& entry,
                                           const ReferenceLayout& layout,
                                           const LatentFormat& format, std::int64_t items) {
  HostMemory memory(ctx);
  const Value list = entry.field("reference_latents");
  check_count(list.count(), layout);
  std::vector<Shape> shapes;
  std::vector<Tensor> pictures;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Reference read = read_reference(ctx, list.item(i), layout, format, memory);
    Shape shape = read.shape;
    shape[0] = fitted_rows(shape[0], items);
    const Tensor whole = ctx.make_host(shape, HEDDLE_F32);
    const std::int64_t numbers = whole.count() / shape[0];
    for (std::int64_t row = 0; row < shape[0]; ++row)
      std::copy_n(read.values.data() + row % read.shape[0] * numbers, numbers,
                  whole.data<float>() + row * numbers);
    pictures.push_back(ctx.upload(shape, HEDDLE_F32, whole.data<float>()));
    shapes.push_back(shape);
  }
  const std::int64_t text = entry.field("cross_attn").as<Tensor>().size(1);
  std::vector<PlacedInput> inputs = inputs_of(shapes, entry.field("image_slots"), text);
  for (std::size_t k = 0; k < pictures.size(); ++k) {
    PlacedInput& slot = inputs[2 * k + 1];
    inputs[2 * k].tensor = pictures[k];
    slot.tensor = ctx.make_host(slot.shape, HEDDLE_I32);
    std::fill_n(slot.tensor.data<std::int32_t>(), slot.tensor.count(), 0);
  }
  return inputs;
}

}  // namespace heddle::samplers
