#include "plugins/vae/wan_vae_bench.h"

#include <string>

#include "plugins/vae/clip_bench.h"

namespace heddle::vae {
namespace {

// The decoders' tensors by the original names, as they were published: levels of 4, 4, 2 and 1
// times `width` channels with three residual blocks each, of which the first two double the frames.
struct WanDecoderShape {
  std::int64_t channels, colours, width;
  bool is_nested;  // 2.2: a level is a module of its own, and resampling keeps the channels
};
constexpr WanDecoderShape kWan21Decoder{16, 3, 96, false}, kSmallWan21Decoder{16, 3, 16, false},
    kWan22Decoder{48, 12, 256, true}, kSmallWan22Decoder{48, 12, 16, true};

class WanDecoderTensors {
 public:
  WanDecoderTensors(const WanDecoderShape& shape, ClipTensors& tensors) : s_(shape), to_(tensors) {}

  void add_all() {
    to_.conv("conv2", {s_.channels, s_.channels, 1, 1, 1});
    std::int64_t width = kFactors[0] * s_.width;
    to_.cube("decoder.conv1", width, s_.channels);
    resnet("decoder.middle.0", width, width);
    attention("decoder.middle.1", width);
    resnet("decoder.middle.2", width, width);
    int number = 0;
    for (int level = 0; level < kLevels; ++level) {
      if (s_.is_nested) number = 0;
      const std::string at = "decoder.upsamples." +
                             (s_.is_nested ? std::to_string(level) + ".upsamples." : std::string());
      const auto next = [&] { return at + std::to_string(number++); };
      const std::int64_t out = kFactors[level] * s_.width;
      for (int i = 0; i < kResnets; ++i, width = out) resnet(next(), width, out);
      if (level + 1 == kLevels) break;
      const std::string resample = next();
      width = s_.is_nested ? out : out / 2;
      to_.conv(resample + ".resample.1", {width, out, kTaps, kTaps});
      if (level < kTimeLevels) to_.conv(resample + ".time_conv", {2 * out, out, kTaps, 1, 1});
    }
    to_.scale("decoder.head.0.gamma", {width, 1, 1, 1});
    to_.cube("decoder.head.2", s_.colours, width);
  }

 private:
  static constexpr int kLevels = 4, kResnets = 3, kTimeLevels = 2;
  static constexpr std::int64_t kFactors[kLevels] = {4, 4, 2, 1}, kTaps = 3;

  void resnet(const std::string& module, std::int64_t in, std::int64_t out) {
    to_.scale(module + ".residual.0.gamma", {in, 1, 1, 1});
    to_.cube(module + ".residual.2", out, in);
    to_.scale(module + ".residual.3.gamma", {out, 1, 1, 1});
    to_.cube(module + ".residual.6", out, out);
    if (in != out) to_.conv(module + ".shortcut", {out, in, 1, 1, 1});
  }
  void attention(const std::string& module, std::int64_t width) {
    to_.scale(module + ".norm.gamma", {width, 1, 1});
    to_.conv(module + ".to_qkv", {3 * width, width, 1, 1});
    to_.conv(module + ".proj", {width, width, 1, 1});
  }

  const WanDecoderShape& s_;
  ClipTensors& to_;
};

constexpr ClipShape kWan21Clip{16, 8, 4, {832, 480, 81}, {64, 48, 9}},
    kWan22Clip{48, 16, 4, {1280, 704, 121}, {64, 48, 9}};

template <const ClipShape& kClip, const WanDecoderShape& kShape, const WanDecoderShape& kSmallShape>
heddle_status* make_wan_vae(const heddle_host*, const heddle_bench_shape_desc* self,
                            const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    describe_clip(self->name, kClip, *request, *sink, [&](ClipTensors& tensors) {
      WanDecoderTensors(request->is_small != 0 ? kSmallShape : kShape, tensors).add_all();
    });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kWanVaeBench{
    sizeof(heddle_bench_shape_desc), "wan-vae",
    "Wan 2.1's decoder, 81 frames of 832x480 by chunks of four",
    &make_wan_vae<kWan21Clip, kWan21Decoder, kSmallWan21Decoder>};
constinit const heddle_bench_shape_desc kWan22VaeBench{
    sizeof(heddle_bench_shape_desc), "wan2.2-vae",
    "Wan 2.2's decoder of 5B's latents, 121 frames of 1280x704 by chunks of four",
    &make_wan_vae<kWan22Clip, kWan22Decoder, kSmallWan22Decoder>};

}  // namespace heddle::vae
