#include "compact.h"

#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"
#include "upscaler_blocks.h"
#include "upscaler_shape.h"

namespace heddle::upscalers {
namespace {

std::string layer(int index) { return "body." + std::to_string(index); }

void fill_conv(const Checkpoint& file, Block& block, const Weight& filter, const Weight& bias,
               int index, std::int64_t out, std::int64_t in) {
  blocks::Slots slots(file, block, layer(index));
  slots.fill(filter, layer(index) + ".weight", {out, in, 3, 3});
  slots.fill(bias, layer(index) + ".bias", {out});
}

// The scale whose square times `colours` makes so many channels; 0 for none.
std::int64_t scale_of(std::int64_t channels, std::int64_t colours) {
  if (colours <= 0) return 0;
  for (std::int64_t scale = 1; scale * scale * colours <= channels; ++scale)
    if (scale * scale * colours == channels) return scale;
  return 0;
}

}  // namespace

void CompactLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor made =
      ops::conv2d(ctx, ops::cast(ctx, x, ctx.compute()), ctx[conv], ctx[conv_bias], kSame);
  ops::leaky_relu_into(ctx, made, ctx[slopes].reshape({1, 1, 1, made.size(3)}), 0, made);
  ctx[out] = made;
}

void CompactOut::execute(Context& ctx) {
  const std::int64_t factor = ctx[scale];
  const Tensor made = shuffled(
      ctx, blocks::wide_conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kSame), factor);
  const Tensor pixels = ops::cast(ctx, ctx[image], HEDDLE_F32);
  ctx[out] = ops::add(ctx, made, factor == 1 ? pixels : ops::upsample_nearest(ctx, pixels, factor));
}

int Compact::match(const Checkpoint& file, const Value&) {
  const auto rank = [&](const char* name) { return file.has(name) ? file.info(name).rank : 0; };
  return rank("body.0.weight") == 4 && rank("body.1.weight") == 1 && rank("body.2.weight") == 4
             ? 100
             : 0;
}

void Compact::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const int last = blocks::layer_count(file, "body.") - 1;  // convolutions and slopes, in turns
  const std::int64_t colours = file.size("body.0.weight", 1), width = file.size("body.0.weight", 0),
                     made = file.size(layer(last) + ".weight", 0), scale = scale_of(made, colours);
  if (scale == 0 || last % 2 != 0)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": '" + layer(last) + "' makes " +
                                        std::to_string(made) +
                                        " channels, which are no squares "
                                        "of pixels of " +
                                        std::to_string(colours) + " channels");
  const Source image = graph.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  Source hidden = image;
  for (int i = 0; i < last; i += 2) {
    using L = CompactLayer;
    Block block = graph.add<L>(layer(i));
    block.link(L::hidden, hidden);
    fill_conv(file, block, L::conv, L::conv_bias, i, width, i == 0 ? colours : width);
    blocks::Slots(file, block, layer(i)).fill(L::slopes, layer(i + 1) + ".weight", {width});
    hidden = block[L::out];
  }
  using O = CompactOut;
  Block out = graph.add<O>("out");
  out.link(O::hidden, hidden).link(O::image, image).set(O::scale, scale);
  fill_conv(file, out, O::conv, O::conv_bias, last, made, width);
  graph.output("image", out[O::out]);
  add_settings(graph, "realesrgan_compact",
               {.scale = scale, .in_channels = colours, .out_channels = colours});
}

}  // namespace heddle::upscalers
