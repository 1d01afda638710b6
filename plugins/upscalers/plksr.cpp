#include "plksr.h"

#include "compact.h"
#include "frame.h"
#include "plugins/blocks/slots.h"
#include "upscaler_blocks.h"

namespace heddle::upscalers {
namespace {

constexpr double kChannelNormEps = 1e-6;
constexpr std::int32_t kNormGroups = 4;  // no file tells it
constexpr std::int64_t kPlkColours = 3;

// Of an odd filter, keeping the size.
heddle_conv2d_attrs around(const Tensor& filter) {
  const auto down = std::int32_t(filter.size(2) / 2), across = std::int32_t(filter.size(3) / 2);
  return {{1, 1}, {down, across, down, across}};
}

// x tanh(ln(1 + exp(x))), which is x (1 - t^2) / (1 + t^2) where t = sigmoid(-x). In f32, as
// numbers near 1 are subtracted.
Tensor mish_of(Context& ctx, const Tensor& x) {
  constexpr double kMost = 4;  // above all of them
  const Tensor wide = ops::cast(ctx, x, HEDDLE_F32);
  const Tensor t = sigmoid(ctx, scaled(ctx, wide, -1));
  const Tensor square = ops::mul(ctx, t, t);
  const Tensor root = ops::rsqrt(ctx, ops::scale_clamp(ctx, square, {1, 1, 0, kMost}));
  const Tensor part = ops::mul(ctx, ops::scale_clamp(ctx, square, {-1, 1, 0, kMost}), wide);
  const Tensor out = ctx.make(x.shape(), x.dtype());
  ops::mul_into(ctx, ops::mul(ctx, part, root), root, out);
  return out;
}

std::string plk_layer(int i) { return "feats." + std::to_string(i); }

// What stands between the first and the last convolution; "" where it is none that is known.
std::string mixer_of(const Checkpoint& file) {
  for (const char* name : {".channel_mixer", ".channe_mixer"})  // the publisher's spelling
    if (file.has(plk_layer(1) + name + ".0.weight")) return name;
  return "";
}

class PlksrBuilder {
 public:
  PlksrBuilder(const Checkpoint& file, Blocks& graph)
      : file_(file),
        graph_(graph),
        mixer_(mixer_of(file)),
        width_(file.size("feats.0.weight", 0)) {}

  void build() {
    using I = PlkIn;
    const Source image = graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    Block in = graph_.add<I>("in");
    in.link(I::image, image);
    fill(in, "in", I::conv, I::conv_bias, "feats.0", width_, kPlkColours);
    Source hidden = in[I::out];
    const int last = blocks::layer_count(file_, "feats.") - 1;
    for (int i = 1; file_.has(plk_layer(i) + ".refine.weight"); ++i) hidden = add_layer(i, hidden);
    const std::int64_t made = file_.size(plk_layer(last) + ".weight", 0),
                       scale = square_root(made / kPlkColours);
    if (scale == 0 || made % kPlkColours != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + plk_layer(last) + "' makes " +
                                          std::to_string(made) +
                                          " channels, which are no squares of pixels");
    using O = CompactOut;  // pixels beside the enlarged picture, there, too
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden).link(O::image, image).set(O::scale, scale);
    fill(out, "out", O::conv, O::conv_bias, plk_layer(last), made, width_);
    graph_.output("image", out[O::out]);
    add_settings(graph_, "plksr",
                 {.scale = scale, .in_channels = kPlkColours, .out_channels = kPlkColours});
  }

 private:
  Source add_layer(int i, const Source& hidden) {
    using L = PlkLayer;
    const std::string path = plk_layer(i), mixer = path + mixer_;
    Block block = graph_.add<L>(path);
    const bool is_real = mixer_ == ".channel_mixer";
    block.link(L::hidden, hidden).set(L::mish, is_real);
    const std::int64_t wide = file_.size(mixer + ".0.weight", 0),
                       part = file_.size(path + ".lk.conv.weight", 0);
    fill(block, path, L::mix1, L::mix1_bias, mixer + ".0", wide, width_);
    fill(block, path, L::mix2, L::mix2_bias, mixer + ".2", width_, wide);
    fill(block, path, L::large, L::large_bias, path + ".lk.conv", part, part);
    if (part > width_)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + path + ".lk.conv' sees " +
                                          std::to_string(part) + " channels of " +
                                          std::to_string(width_));
    if (file_.has(path + ".attn.f.0.weight"))
      fill(block, path, L::share, L::share_bias, path + ".attn.f.0", width_, width_);
    fill(block, path, L::refine, L::refine_bias, path + ".refine", width_, width_);
    if (file_.has(path + ".layer_norm.weight"))
      fill_norm(block, path, L::norm, L::norm_bias, path + ".layer_norm");
    else if (is_real)
      fill_norm(block, path, L::groups_norm, L::groups_bias, path + ".norm");
    return block[L::out];
  }
  void fill(Block& block, const std::string& path, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t in) {
    const std::string name = module + ".weight";
    blocks::Slots slots(file_, block, path);
    slots.fill(filter, name, {out, in, file_.size(name, 2), file_.size(name, 3)});
    slots.fill(bias, module + ".bias", {out});
  }
  void fill_norm(Block& block, const std::string& path, const Weight& weight, const Weight& bias,
                 const std::string& module) {
    blocks::Slots slots(file_, block, path);
    slots.fill(weight, module + ".weight", {width_});
    slots.fill(bias, module + ".bias", {width_});
  }

  const Checkpoint& file_;
  Blocks& graph_;
  std::string mixer_;
  std::int64_t width_;
};

}  // namespace

void PlkIn::execute(Context& ctx) {
  ctx[out] =
      ops::conv2d(ctx, ops::cast(ctx, ctx[image], ctx.compute()), ctx[conv], ctx[conv_bias], kSame);
}

void PlkLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const auto conv = [&](const Tensor& from, const Weight& filter, const Weight& bias) {
    const Tensor weight = ctx[filter];
    return ops::conv2d(ctx, from, weight, ctx[bias], around(weight));
  };
  const Tensor seen =
      ctx[norm] ? ops::layer_norm(ctx, x, ctx[norm], ctx[norm_bias], kChannelNormEps) : x;
  Tensor wide = conv(seen, mix1, mix1_bias);
  if (ctx[mish])
    wide = mish_of(ctx, wide);
  else
    ops::activate_into(ctx, wide, HEDDLE_ACT_GELU, wide);
  Tensor mixed = conv(wide, mix2, mix2_bias);
  const Tensor first = mixed.slice(3, 0, ctx[large].size(0));
  ops::copy_into(ctx, conv(first, large, large_bias), first);
  if (ctx[share]) mixed = ops::mul(ctx, mixed, sigmoid(ctx, conv(mixed, share, share_bias)));
  if (!ctx[groups_norm]) {
    ctx[out] = ops::conv2d(ctx, mixed, ctx[refine], ctx[refine_bias], kPoint, x);
    return;
  }
  const Tensor refined = ops::conv2d(ctx, mixed, ctx[refine], ctx[refine_bias], kPoint);
  const Tensor normed = ops::group_norm(ctx, refined, ctx[groups_norm], ctx[groups_bias],
                                        {kNormEps, kNormGroups, HEDDLE_ACT_NONE});
  ctx[out] = ops::combine(ctx, {{1, normed}, {1, x}});
}

int Plksr::match(const Checkpoint& file, const Value&) {
  const auto has_any = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (file.has(plk_layer(1) + name)) return true;
    return false;
  };
  return file.has("feats.0.weight") && file.has("feats.1.refine.weight") &&
                 has_any({".channel_mixer.0.weight", ".channe_mixer.0.weight"}) &&
                 has_any({".lk.conv.weight", ".lk.convs.0.weight", ".lk.mn_conv.weight"})
             ? 100
             : 0;
}

void Plksr::build(const Checkpoint& file, const Value&, Blocks& graph) {
  for (const char* name :
       {"to_img.init_pos", "feats.1.lk.convs.0.weight", "feats.1.lk.mn_conv.weight"})
    if (file.has(name))
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": this PLKSR has '" + name +
                                          "', which is not known yet. Take one with plain large "
                                          "filters and without DySample.");
  PlksrBuilder(file, graph).build();
}

}  // namespace heddle::upscalers
