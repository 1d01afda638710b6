#include "sam3_calls.h"

#include <algorithm>

#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::detection {
namespace {

constexpr float kNoObject = -1024;
constexpr int kSegmenterMasks = 4;

}  // namespace

Sam3Parts::Sam3Parts(const Value& model, Context* ctx) {
  const Value settings = model.is(HEDDLE_KIND_MODEL) ? model_settings(model) : Value();
  parts_ = settings.field("parts");
  if (const Value configs = settings.field("part_configs"); parts_ && ctx != nullptr) {
    Record built;
    for (std::uint32_t i = 0; i < configs.count(); ++i)
      built.set(configs.key(i), rebuilt_model(*ctx, model, configs.item(i)));
    parts_ = built.value();
  }
  trunk = parts_.field("trunk");
  detector = parts_.field("detector");
  if (settings.get<std::string>("family", "") != "sam3" || !trunk.is(HEDDLE_KIND_MODEL) ||
      !detector.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "model: this is no SAM 3. Link CheckpointLoaderSimple with its checkpoint, such as "
                "sam3.1_multiplex_fp16.safetensors.");
  const auto number = [&](const char* key) { return settings.get<std::int64_t>(key, 0); };
  side = number("image_size");
  grid = number("grid");
  width = number("width");
  text_width = number("text_width");
  queries = number("queries");
  tracker = {number("slots"), number("slot_masks"), number("memories"), number("channels")};
}

Value Sam3Parts::part(const char* name) const {
  const Value model = parts_.field(name);
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "model: this file has no tracker of SAM 3.1, which follows objects in videos. Take "
              "the whole checkpoint of SAM 3.1, such as sam3.1_multiplex_fp16.safetensors; the "
              "tracker of SAM 3 is not supported.");
}

Value Sam3Parts::segmenter() const {
  const Value model = parts_.field("segmenter");
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "model: this file of SAM 3 has no tracker ('tracker.model.*'), which makes masks of "
              "points and boxes and refines others. Take the whole checkpoint, or set "
              "refine_iterations to 0 and give a text.");
}

Floats Sam3Calls::resized(const float* from, const blocks::GridSize& size,
                          const blocks::GridSize& to, std::int64_t inner,
                          blocks::Resampling method) {
  Floats made(std::size_t(to.height * to.width * inner), &memory_);
  if (size == to)
    std::copy_n(from, made.size(), made.data());
  else
    blocks::resample(blocks::Source::of(from, {1, size, inner}), to, method, made.data(), memory_,
                     [&] {
                       if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                     });
  return made;
}

Tensor Sam3Calls::seen(const float* pixels, const blocks::GridSize& size) {
  const std::int64_t side = parts_.side;
  const Floats picture = resized(pixels, size, {side, side}, 3);
  const Tensor input = ctx_.upload({1, side, side, 3}, HEDDLE_F32, picture.data());
  const Value made =
      call_model(ctx_, parts_.trunk, Record().set("picture", value_of(input)).value());
  return made.field("hidden").as<Tensor>();
}

Sam3Found Sam3Calls::find(const Tensor& hidden, const PromptText& text) {
  if (text.states.size(2) != parts_.text_width)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "conditioning: its text has states of width " +
                    std::to_string(text.states.size(2)) + ", SAM 3 reads " +
                    std::to_string(parts_.text_width) +
                    ". Encode the text with the CLIP of SAM 3's checkpoint.");
  const Value made = call_model(
      ctx_, parts_.detector,
      Record().set("hidden", value_of(hidden)).set("text", value_of(text.states)).value());
  return {ctx_.read<float>(made.field("boxes").as<Tensor>()),
          ctx_.read<float>(made.field("scores").as<Tensor>()), made.field("masks").as<Tensor>()};
}

Record Sam3Calls::prompt(const Tensor& hidden, const std::vector<PromptPoint>& points) {
  const auto count = std::int64_t(points.size());
  std::vector<float> places;
  std::vector<std::int32_t> kinds;
  for (const PromptPoint& point : points) {  // the middle of a pixel
    for (const double at : {point.x, point.y})
      places.push_back((float(at) + 0.5f) / float(parts_.side));
    kinds.push_back(point.kind);
  }
  return Record()
      .set("hidden", value_of(hidden))
      .set("points", value_of(ctx_.upload({count, 2}, HEDDLE_F32, places.data())))
      .set("kinds", value_of(ctx_.upload({count}, HEDDLE_I32, kinds.data())));
}

Floats Sam3Calls::segment(const Tensor& hidden, const std::vector<PromptPoint>& points,
                          const float* mask, bool ambiguous) {
  const std::int64_t side = parts_.side, fine = parts_.mask_side();
  Record inputs = prompt(hidden, points);
  if (mask != nullptr) {
    const Floats smaller =
        resized(mask, {side, side}, {fine, fine}, 1, blocks::Resampling::bilinear_antialiased);
    inputs.set("mask", value_of(ctx_.upload({1, fine, fine, 1}, HEDDLE_F32, smaller.data())));
  }
  const Value made = call_model(ctx_, parts_.segmenter(), inputs.value());
  Floats all(std::size_t(side * side), &memory_);
  if (!(ctx_.read<float>(made.field("object").as<Tensor>()).front() > 0)) {
    std::fill(all.begin(), all.end(), kNoObject);
    return all;
  }
  std::ptrdiff_t best = 0;
  if (ambiguous) {
    const std::vector<float> qualities = ctx_.read<float>(made.field("qualities").as<Tensor>());
    best = std::max_element(qualities.begin() + 1, qualities.begin() + kSegmenterMasks) -
           qualities.begin();
  }
  const Tensor chosen = made.field(("mask." + std::to_string(best)).c_str()).as<Tensor>();
  Floats logits(std::size_t(fine * fine), &memory_);
  read_to<float>(ctx_, chosen, logits);
  return resized(logits.data(), {fine, fine}, {side, side}, 1);
}

std::vector<Infer::Named> segmenter_shapes(const Sam3Parts& parts, std::int64_t points,
                                           bool has_mask) {
  std::vector<Infer::Named> shapes{{"hidden", HEDDLE_F32, {1, parts.grid, parts.grid, parts.width}},
                                   {"points", HEDDLE_F32, {points, 2}},
                                   {"kinds", HEDDLE_I32, {points}}};
  if (has_mask)
    shapes.push_back({"mask", HEDDLE_F32, {1, parts.mask_side(), parts.mask_side(), 1}});
  return shapes;
}

}  // namespace heddle::detection
