#include "control.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "even_sides.h"
#include "flux_blocks.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kModes = "controlnet_mode_embedder.weight";

}  // namespace

std::optional<std::string> control_prefix(const Checkpoint& file) {
  return blocks::prefix_before(file, "controlnet_blocks.0.weight");
}

void add_control(Context& ctx, const Tensor& stream, std::int64_t first, const Tensor& control,
                 const ControlPlace& place) {
  const std::int64_t width = stream.size(2), count = control.size(2) / width;
  if (count < 1 || control.size(2) % width != 0 || place.depth < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "residuals of " + std::to_string(control.size(2)) +
                    " numbers a token are not those of a stream of width " + std::to_string(width) +
                    ". Use a ControlNet that was made for this model.");
  const std::int64_t each = (place.depth + count - 1) / count,
                     at = std::min(place.index / each, count - 1);
  if (place.is_first && place.index != at * each) return;
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, stream.size(1)),
                     end = std::clamp<std::int64_t>(control.size(1) - first, begin, stream.size(1));
  if (begin == end) return;
  const Tensor residual = control.slice(2, at * width, (at + 1) * width);
  const Tensor changed = tokens(stream, {begin, end});
  ops::add_into(ctx, changed, tokens(residual, {first + begin, first + end}), changed);
}

void ControlAdd::execute(Context& ctx) { ctx[out] = ops::add(ctx, ctx[img], ctx[hint]); }

void ControlHintZeros::execute(Context& ctx) {
  const Tensor given = ctx[hint];
  Shape shape = given.shape();
  const std::int64_t count = shape[1];
  shape[1] = ctx[channels];
  if (count > shape[1])
    throw Error(HEDDLE_INVALID_ARGUMENT, "the ControlNet reads hints of at most " +
                                             std::to_string(shape[1]) + " channels, got " +
                                             std::to_string(count));
  const Tensor all = ctx.make(shape, given.dtype());
  ops::copy_into(ctx, given, all.slice(1, 0, count));
  if (count < shape[1]) ops::fill(ctx, all.slice(1, count, shape[1]), 0);
  ctx[out] = all;
}

void ControlBegin::execute(Context& ctx) {
  const Tensor tokens = ops::cast(ctx, ctx[hint], ctx.compute());
  ctx[out] = ops::add(ctx, ctx[img], blocks::wide_linear(ctx, tokens, ctx[weight], ctx[bias]));
}

void ControlHintIn::execute(Context& ctx) {
  const Tensor even = even_sides(ctx, ctx[hint]), filter = ctx[weight];
  if (even.size(1) != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the ControlNet reads hints of " +
                                             std::to_string(filter.size(1)) + " channels, got " +
                                             std::to_string(even.size(1)));
  const Tensor pixels = ops::cast(ctx, even.permute({0, 2, 3, 1}), ctx.compute());
  const auto step = std::int32_t(kPatch);
  const Tensor grid = blocks::wide_conv2d(ctx, pixels, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  ctx[out] = grid.reshape({even.size(0), grid.size(1) * grid.size(2), filter.size(0)});
}

void ControlHintFilters::execute(Context& ctx) {
  Tensor grid = ops::cast(ctx, ctx[hint].permute({0, 2, 3, 1}), ctx.compute());
  constexpr std::size_t kCount = std::size(weights);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::int32_t step = i == 2 || i == 4 || i == 6 ? 2 : 1;
    const heddle_conv2d_attrs attrs{{step, step}, {1, 1, 1, 1}};
    if (i + 1 == kCount) {
      grid = blocks::wide_conv2d(ctx, grid, ctx[weights[i]], ctx[biases[i]], attrs);
      break;
    }
    const Tensor made = ops::conv2d(ctx, grid, ctx[weights[i]], ctx[biases[i]], attrs);
    grid = ops::activate(ctx, made, HEDDLE_ACT_SILU);
  }
  ctx[out] = ctx[pixels_first] ? grid : ops::contiguous(ctx, grid.permute({0, 3, 1, 2}));
}

void ControlModes::execute(Context& ctx) {
  const Tensor text = ctx[txt];
  if (!ctx.has(mode)) {
    ctx[out] = text;
    return;
  }
  const Tensor ids = ctx[mode];
  const std::int64_t count = ids.size(0), length = count + text.size(1);
  const Tensor rows =
      blocks::wide_embedding(ctx, ctx[table], ids).reshape({1, count, text.size(2)});
  const Tensor all = ctx.make({text.size(0), length, text.size(2)}, text.dtype());
  for (std::int64_t item = 0; item < text.size(0); ++item)
    ops::copy_into(ctx, rows, tokens(all.slice(0, item, item + 1), {0, count}));
  if (text.size(1) > 0) ops::copy_into(ctx, text, tokens(all, {count, length}));
  ctx[out] = all;
}

void ControlOut::execute(Context& ctx) {
  const Tensor all = ctx[hidden];
  const std::int64_t length = all.size(1), count = token_count(ctx[x], ctx[patch]);
  ctx[out] = blocks::wide_linear(ctx, ops::contiguous(ctx, tokens(all, {length - count, length})),
                                 ctx[weight], ctx[bias]);
}

Source ControlBuilder::filtered(const Source& hint) const {
  using B = ControlHintFilters;
  Block block = graph_.add<B>("embed.filters");
  block.link(B::hint, hint);
  blocks::Slots slots(file_, block, "embed.filters");
  std::int64_t channels = 3;
  for (std::size_t i = 0; i < std::size(B::weights); ++i) {
    // Activations are numbered, too.
    const std::string module = prefix_ + "input_hint_block." + std::to_string(2 * i);
    const std::int64_t made = file_.size(module + ".weight", 0);
    slots.fill(B::weights[i], module + ".weight", {made, channels, 3, 3});
    slots.fill(B::biases[i], module + ".bias", {made});
    channels = made;
  }
  return block[B::out];
}

Source ControlBuilder::add_hint(const Source& img, const Source& hint,
                                const std::string& module) const {
  return add_hint_tokens(img, hint_tokens(hint, module));
}

Source ControlBuilder::hint_tokens(const Source& hint, const std::string& module) const {
  using B = FluxImageIn;
  const std::string weight = prefix_ + module + ".weight";
  Block block = graph_.add<B>("embed.hint");
  block.link(B::x, hint).set(B::patch, kPatch);
  blocks::Slots slots(file_, block, "embed.hint");
  slots.fill(B::weight, weight, {hidden_, file_.size(weight, 1)});
  slots.fill(B::bias, prefix_ + module + ".bias", {hidden_});
  return block[B::out];
}

Source ControlBuilder::add_hint_tokens(const Source& img, const Source& hint) const {
  Block sum = graph_.add<ControlAdd>("embed.controlled");
  sum.link(ControlAdd::img, img).link(ControlAdd::hint, hint);
  return sum[ControlAdd::out];
}

Source ControlBuilder::add_modes(const Source& txt) const {
  using B = ControlModes;
  const std::string table = prefix_ + kModes;
  if (!file_.has(table)) return txt;
  Block block = graph_.add<B>("embed.modes");
  block.link(B::txt, txt)
      .link(B::mode, graph_.input("mode", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
  blocks::Slots(file_, block, "embed.modes").fill(B::table, table, {file_.size(table, 0), hidden_});
  return block[B::out];
}

void ControlBuilder::add_residual(const std::string& stream, int index, const std::string& module,
                                  const Source& hidden, const Source& x) const {
  using B = ControlOut;
  const std::string number = std::to_string(index), path = stream + "." + number + ".control";
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden).link(B::x, x);
  blocks::Slots slots(file_, block, path);
  slots.fill(B::weight, prefix_ + module + ".weight", {hidden_, hidden_});
  slots.fill(B::bias, prefix_ + module + ".bias", {hidden_});
  graph_.output(("control." + stream + "." + number).c_str(), block[B::out]);
}

void ControlBuilder::add_settings(const char* family, int doubles, int singles) const {
  graph_.setting("controls", std::string(family));
  graph_.setting("control_width", hidden_);
  graph_.setting("control_doubles", std::int64_t{doubles});
  graph_.setting("control_singles", std::int64_t{singles});
  graph_.setting("patch", kPatch);
  if (const std::string table = prefix_ + kModes; file_.has(table))
    graph_.setting("control_modes", file_.size(table, 0));
}

void add_control_settings(Blocks& graph, std::int64_t hidden, int doubles, int singles) {
  graph.setting("control_width", hidden);
  graph.setting("controlled_doubles", std::int64_t{doubles});
  if (singles > 0) graph.setting("controlled_singles", std::int64_t{singles});
}

}  // namespace heddle::denoisers
