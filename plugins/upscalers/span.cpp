#include "span.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "frame.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"
#include "upscaler_blocks.h"

namespace heddle::upscalers {
namespace {

constexpr int kSpanBlocks = 6;
constexpr double kColourRange = 255;  // no file tells it
// The border is widened, too: there is the bias of the first of three.
constexpr heddle_conv2d_attrs kBorder{{1, 1}, {1, 1, 1, 1}}, kInside{{1, 1}, {0, 0, 0, 0}};

std::string span_block(int i) { return "block_" + std::to_string(i); }

class SpanBuilder {
 public:
  SpanBuilder(const Checkpoint& file, bool joins, Blocks& graph)
      : file_(file),
        graph_(graph),
        joins_(joins),
        width_(file.size("conv_1.sk.weight", 0)),
        colours_(file.size("conv_1.sk.weight", 1)) {}

  void build() {
    using I = SpanIn;
    Block in = graph_.add<I>("in");
    in.link(I::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH))
        .set(I::norm, !file_.has("no_norm"));
    const Source first = conv("conv_1", in[I::out], colours_, false, nullptr);
    Source x = first, early, late;
    for (int i = 1; i <= kSpanBlocks; ++i) {
      const Source base = x;
      late = conv(span_block(i) + ".c1_r", x, width_, true, nullptr);
      const Source middle = conv(span_block(i) + ".c2_r", late, width_, true, nullptr);
      x = conv(span_block(i) + ".c3_r", middle, width_, false, &base);
      if (i == 1) early = x;
    }
    finish(first, conv("conv_2", x, width_, false, nullptr), early, late);
    if (!joined_.empty()) graph_.setting("joined_convolutions", list_of(joined_));
  }

 private:
  bool has(const std::string& tensor, const Shape& shape) const {
    if (!file_.has(tensor)) return false;
    const heddle_tensor_info& info = file_.info(tensor);
    return Shape(info.shape, info.shape + info.rank) == shape;
  }
  // The file has the four convolutions and room for the one that they make together.
  bool can_join(const std::string& module, std::int64_t in) const {
    if (!joins_ || !file_.has(module + ".conv.0.weight") || !file_.has(module + ".conv.1.weight"))
      return false;
    const std::int64_t wide_in = file_.size(module + ".conv.0.weight", 0),
                       wide_out = file_.size(module + ".conv.1.weight", 0);
    const std::pair<const char*, Shape> all[] = {{".eval_conv", {width_, in, 3, 3}},
                                                 {".sk", {width_, in, 1, 1}},
                                                 {".conv.0", {wide_in, in, 1, 1}},
                                                 {".conv.1", {wide_out, wide_in, 3, 3}},
                                                 {".conv.2", {width_, wide_out, 1, 1}}};
    return std::ranges::all_of(all, [&](const auto& each) {
      return has(module + each.first + ".weight", each.second) &&
             has(module + each.first + ".bias", {each.second.front()});
    });
  }
  Source joined_conv(const std::string& module, const Source& hidden, std::int64_t in, bool silu,
                     const Source* base) {
    using C = SpanJoinedConv;
    Block block = graph_.add<C>(module);
    block.link(C::hidden, hidden).set(C::silu, silu);
    if (base != nullptr) block.link(C::base, *base);
    blocks::Slots slots(file_, block, module);
    slots.fill(C::conv, module + ".eval_conv.weight", {width_, in, 3, 3});
    slots.fill(C::conv_bias, module + ".eval_conv.bias", {width_});
    joined_.push_back(value_of(module));
    return block[C::out];
  }
  Source conv(const std::string& module, const Source& hidden, std::int64_t in, bool silu,
              const Source* base) {
    if (can_join(module, in)) return joined_conv(module, hidden, in, silu, base);
    using C = SpanConv;
    Block block = graph_.add<C>(module);
    block.link(C::hidden, hidden).set(C::silu, silu);
    if (base != nullptr) block.link(C::base, *base);
    blocks::Slots slots(file_, block, module);
    const auto fill = [&](const Weight& weight, const Weight& bias, const char* name,
                          std::int64_t outputs, std::int64_t inputs, std::int64_t side) {
      slots.fill(weight, module + name + ".weight", {outputs, inputs, side, side});
      slots.fill(bias, module + name + ".bias", {outputs});
    };
    const std::int64_t wide_in = file_.size(module + ".conv.0.weight", 0),
                       wide_out = file_.size(module + ".conv.1.weight", 0);
    fill(C::skip, C::skip_bias, ".sk", width_, in, 1);
    fill(C::widen, C::widen_bias, ".conv.0", wide_in, in, 1);
    fill(C::filter, C::filter_bias, ".conv.1", wide_out, wide_in, 3);
    fill(C::narrow, C::narrow_bias, ".conv.2", width_, wide_out, 1);
    return block[C::out];
  }

  void finish(const Source& first, const Source& last, const Source& early, const Source& late) {
    const std::int64_t made = file_.size("upsampler.0.weight", 0);
    // As many colours come out as go in, or three, four, one: what the number of channels allows.
    std::int64_t scale = 0, colours = 0;
    for (const std::int64_t n : {colours_, std::int64_t{3}, std::int64_t{4}, std::int64_t{1}})
      if (scale == 0 && n > 0 && made % n == 0) scale = square_root(made / n), colours = n;
    if (scale == 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": 'upsampler.0' makes " +
                                          std::to_string(made) +
                                          " channels, which are no squares of pixels");
    using O = SpanOut;
    Block out = graph_.add<O>("out");
    out.link(O::first, first).link(O::last, last).link(O::early, early).link(O::late, late);
    out.set(O::scale, scale);
    blocks::Slots slots(file_, out, "out");
    slots.fill(O::mix, "conv_cat.weight", {width_, 4 * width_, 1, 1});
    slots.fill(O::mix_bias, "conv_cat.bias", {width_});
    slots.fill(O::conv, "upsampler.0.weight", {made, width_, 3, 3});
    slots.fill(O::conv_bias, "upsampler.0.bias", {made});
    graph_.output("image", out[O::out]);
    add_settings(graph_, "span",
                 {.scale = scale, .in_channels = colours_, .out_channels = colours});
  }

  const Checkpoint& file_;
  Blocks& graph_;
  const bool joins_;
  std::int64_t width_, colours_;
  std::vector<Value> joined_;  // modules
};

}  // namespace

void SpanIn::execute(Context& ctx) {
  const Tensor pixels = ops::cast(ctx, ctx[image], HEDDLE_F32);
  const Tensor seen =
      ctx[norm]
          ? scaled(ctx, ops::add(ctx, pixels, colour_mean(ctx, pixels.size(3), -1)), kColourRange)
          : pixels;
  ctx[out] = ops::cast(ctx, seen, ctx.compute());
}

namespace {

// SiLU, or attention to what it was made of, x: (x + base) (sigmoid(x) - 1/2), where sigmoid(x) -
// 1/2 is tanh(x / 2) / 2.
template <class Conv>
Tensor finished(Context& ctx, const Tensor& made) {
  if (ctx[Conv::silu]) ops::activate_into(ctx, made, HEDDLE_ACT_SILU, made);
  if (!ctx.has(Conv::base)) return made;
  const Tensor half = scaled(ctx, made, 0.5);
  const Tensor sum = ops::combine(ctx, {{0.5, made}, {0.5, ctx[Conv::base]}});
  ops::gated_activation_into(ctx, half, sum, HEDDLE_ACT_TANH, sum);
  return sum;
}

}  // namespace

void SpanJoinedConv::execute(Context& ctx) {
  ctx[out] = finished<SpanJoinedConv>(
      ctx, ops::conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kSame));
}

void SpanConv::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor wide = ops::conv2d(ctx, x, ctx[widen], ctx[widen_bias], kBorder);
  const Tensor filtered = ops::conv2d(ctx, wide, ctx[filter], ctx[filter_bias], kInside);
  const Tensor around = ops::conv2d(ctx, x, ctx[skip], ctx[skip_bias], kPoint);
  const Tensor made = ops::conv2d(ctx, filtered, ctx[narrow], ctx[narrow_bias], kPoint, around);
  ctx[out] = finished<SpanConv>(ctx, made);
}

void SpanOut::execute(Context& ctx) {
  const Tensor parts[] = {ctx[first], ctx[last], ctx[early], ctx[late]};
  const std::int64_t width = parts[0].size(3);
  Shape shape = parts[0].shape();
  shape[3] = 4 * width;
  const Tensor all = ctx.make(shape);
  for (int i = 0; i < 4; ++i)
    ops::copy_into(ctx, parts[i], all.slice(3, i * width, (i + 1) * width));
  const Tensor mixed = ops::conv2d(ctx, all, ctx[mix], ctx[mix_bias], kPoint);
  ctx[out] =
      shuffled(ctx, blocks::wide_conv2d(ctx, mixed, ctx[conv], ctx[conv_bias], kSame), ctx[scale]);
}

int Span::match(const Checkpoint& file, const Value&) {
  return file.has("conv_1.sk.weight") && file.has("block_1.c1_r.sk.weight") &&
                 file.has("conv_cat.weight") && file.has("conv_2.sk.weight") &&
                 file.has("upsampler.0.weight")
             ? 100
             : 0;
}

void Span::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const bool joins = config.is(HEDDLE_KIND_RECORD) && config.get<bool>("joins", false);
  SpanBuilder(file, joins, graph).build();
}

}  // namespace heddle::upscalers
