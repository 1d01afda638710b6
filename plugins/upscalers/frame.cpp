#include "frame.h"

#include <numeric>

#include "esrgan_blocks.h"
#include "frame_blocks.h"
#include "plugins/blocks/slots.h"

namespace heddle::upscalers {
namespace {

constexpr double kFeatureSlope = 0.01;  // of what stands before the enlarging: PyTorch's default
constexpr double kLateSlope = 0.2;

void fill_filter(const Checkpoint& file, Block& block, const std::string& path,
                 const Weight& filter, const Weight& bias, const std::string& module) {
  const std::string name = module + ".weight";
  const std::int64_t out = file.size(name, 0), side = file.size(name, 2);
  blocks::Slots slots(file, block, path);
  slots.fill(filter, name, {out, file.size(name, 1), side, side});
  slots.fill(bias, module + ".bias", {out});
}

void fill_norm(const Checkpoint& file, Block& block, const std::string& path, const Weight& weight,
               const Weight& bias, const std::string& module, std::int64_t width) {
  blocks::Slots slots(file, block, path);
  slots.fill(weight, module + ".weight", {width});
  slots.fill(bias, module + ".bias", {width});
}

}  // namespace

std::int64_t square_root(std::int64_t n) {
  std::int64_t root = 0;
  while (root * root < n && root < 1 << 16) ++root;
  return root * root == n ? root : 0;
}

FrameStart Frame::begin(const FrameStyle& style) {
  using I = FrameIn;
  const std::string module = has("conv_first.1") ? "conv_first.1" : "conv_first";
  Block in = graph_.add<I>("in");
  const Source image = graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  in.link(I::image, image)
      .set(I::multiple, style.window * style.unshuffle)
      .set(I::unshuffle, style.unshuffle)
      .set(I::range, style.range);
  fill_filter(file_, in, "in", I::conv, I::conv_bias, module);
  if (!style.norm.empty())
    fill_norm(file_, in, "in", I::norm, I::norm_bias, style.norm,
              file_.size(module + ".weight", 0));
  return {image, in[I::hidden], in[I::tokens], in[I::pixels]};
}

Source Frame::join(const std::string& path, const std::string& module, const std::string& norm,
                   const Source& hidden, const Source& base, bool may_lack) {
  using J = FrameJoin;
  Block block = graph_.add<J>(path);
  block.link(J::hidden, hidden).link(J::base, base);
  if (!norm.empty())
    fill_norm(file_, block, path, J::norm, J::norm_bias, norm, file_.size(norm + ".weight", 0));
  const bool three = has(module + ".0");
  if (three) {
    fill_filter(file_, block, path, J::first, J::first_bias, module + ".0");
    fill_filter(file_, block, path, J::point, J::point_bias, module + ".2");
  }
  if (three || !may_lack || has(module))
    fill_filter(file_, block, path, J::conv, J::conv_bias, three ? module + ".4" : module);
  return block[J::out];
}

Source Frame::conv(const std::string& path, const std::string& module, const Source& hidden,
                   double slope, std::int64_t scale) {
  using C = FrameConv;
  Block block = graph_.add<C>(path);
  block.link(C::hidden, hidden).set(C::slope, slope).set(C::scale, scale);
  fill_filter(file_, block, path, C::conv, C::conv_bias, module);
  return block[C::out];
}

// "upsample.0", ".2", ...: each makes pixels of channels.
Source Frame::shuffle(const Source& hidden, std::int64_t& scale) {
  Source x = hidden;
  for (int i = 0; has("upsample." + std::to_string(i)); i += 2) {
    const std::string module = "upsample." + std::to_string(i);
    const std::int64_t out = file_.size(module + ".weight", 0),
                       in = file_.size(module + ".weight", 1),
                       factor = in > 0 && out % in == 0 ? square_root(out / in) : 0;
    if (factor == 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + module + "' makes " +
                                          std::to_string(out) + " channels of " +
                                          std::to_string(in) + ", which are no squares of pixels");
    x = conv("up." + std::to_string(i / 2), module, x, 1, factor);
    scale = enlarged_by(file_, scale, factor);
  }
  return x;
}

// "conv_up1", ...: each behind a nearest enlarging; then "conv_hr".
Source Frame::nearest(const Source& hidden, std::int64_t& scale) {
  Source x = hidden;
  for (int i = 1; has("conv_up" + std::to_string(i)); ++i) {
    using U = EsrganUpsample;
    const std::string path = "up." + std::to_string(i - 1);
    Block up = graph_.add<U>(path);
    up.link(U::hidden, x);
    fill_filter(file_, up, path, U::conv, U::conv_bias, "conv_up" + std::to_string(i));
    x = up[U::out];
    scale = enlarged_by(file_, scale, 2);
  }
  return conv("high", "conv_hr", x, kLateSlope);
}

void Frame::end(const char* family, const FrameStyle& style, const FrameStart& start,
                const Source& hidden) {
  using O = FrameOut;
  const std::string first = has("conv_first.1") ? "conv_first.1" : "conv_first";
  const std::int64_t colours =
      file_.size(first + ".weight", 1) / (style.unshuffle * style.unshuffle);
  const bool features = has("conv_before_upsample.0"), direct = !features && has("upsample.0");
  std::int64_t enlarged = 1, factor = 1;
  Source x = hidden;
  if (features) {
    x = conv("features", "conv_before_upsample.0", x, kFeatureSlope);
    x = has("conv_up1") ? nearest(x, enlarged) : shuffle(x, enlarged);
  }
  const std::string last = direct ? "upsample.0" : "conv_last";
  const std::int64_t made = file_.size(last + ".weight", 0);
  if (direct) enlarged = factor = colours > 0 ? square_root(made / colours) : 0;
  if (factor == 0 || made != factor * factor * colours || enlarged % style.unshuffle != 0)
    throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + last + "' makes " +
                                        std::to_string(made) + " channels for pictures of " +
                                        std::to_string(colours));
  const std::int64_t scale = enlarged / style.unshuffle;
  Block out = graph_.add<O>("out");
  out.link(O::hidden, x)
      .link(O::image, start.image)
      .set(O::scale, scale)
      .set(O::shuffle, factor)
      .set(O::range, style.range);
  if (!features && !direct) out.link(O::pixels, start.pixels);
  fill_filter(file_, out, "out", O::conv, O::conv_bias, last);
  graph_.output("image", out[O::out]);
  add_settings(graph_, family,
               {.scale = scale,
                .in_channels = colours,
                .out_channels = colours,
                .minimum = 16,
                .multiple = style.unshuffle * style.unshuffle});
}

}  // namespace heddle::upscalers
