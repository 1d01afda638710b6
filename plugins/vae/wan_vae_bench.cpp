#include "plugins/vae/wan_vae_bench.h"

#include <heddle/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "heddle/value.hpp"

namespace heddle::vae {
namespace {

// The decoder's tensors by the original names, as it was published: a latent of 16 channels, levels
// of 4, 4, 2 and 1 times `width` channels with three residual blocks each, of which the first two
// double the frames.
class WanDecoderTensors {
 public:
  static constexpr std::int64_t kChannels = 16, kColours = 3, kTaps = 3, kPublishedWidth = 96,
                                kSmallWidth = 16;
  static constexpr int kLevels = 4, kResnets = 3, kTimeLevels = 2;

  WanDecoderTensors(const heddle_bench_sink& sink, std::int64_t width)
      : sink_(sink), width_(width) {}

  void add_all() {
    constexpr std::int64_t kFactors[kLevels] = {4, 4, 2, 1};
    conv("conv2", {kChannels, kChannels, 1, 1, 1});
    std::int64_t width = kFactors[0] * width_;
    cube("decoder.conv1", width, kChannels);
    resnet("decoder.middle.0", width, width);
    attention("decoder.middle.1", width);
    resnet("decoder.middle.2", width, width);
    int number = 0;
    const auto next = [&] { return "decoder.upsamples." + std::to_string(number++); };
    for (int level = 0; level < kLevels; ++level) {
      const std::int64_t out = kFactors[level] * width_;
      for (int i = 0; i < kResnets; ++i, width = out) resnet(next(), width, out);
      if (level + 1 == kLevels) break;
      const std::string resample = next();
      conv(resample + ".resample.1", {out / 2, out, kTaps, kTaps});
      if (level < kTimeLevels) conv(resample + ".time_conv", {2 * out, out, kTaps, 1, 1});
      width = out / 2;
    }
    norm("decoder.head.0.gamma", {width, 1, 1, 1});
    cube("decoder.head.2", kColours, width);
  }

 private:
  void add(const std::string& name, const Shape& shape, double mean, double deviation) {
    const heddle_bench_tensor tensor{sizeof tensor,
                                     "vae/wan-vae.safetensors",
                                     name.c_str(),
                                     HEDDLE_F32,
                                     std::uint32_t(shape.size()),
                                     shape.data(),
                                     mean,
                                     deviation};
    sink_.tensor(sink_.to, &tensor);
  }
  void conv(const std::string& module, const Shape& shape) {
    double terms = 1;
    for (std::size_t axis = 1; axis < shape.size(); ++axis) terms *= double(shape[axis]);
    add(module + ".weight", shape, 0, 1 / std::sqrt(terms));
    add(module + ".bias", {shape[0]}, 0, 0.02);
  }
  void cube(const std::string& module, std::int64_t out, std::int64_t in) {
    conv(module, {out, in, kTaps, kTaps, kTaps});
  }
  void norm(const std::string& name, const Shape& shape) { add(name, shape, 1, 0.02); }
  void resnet(const std::string& module, std::int64_t in, std::int64_t out) {
    norm(module + ".residual.0.gamma", {in, 1, 1, 1});
    cube(module + ".residual.2", out, in);
    norm(module + ".residual.3.gamma", {out, 1, 1, 1});
    cube(module + ".residual.6", out, out);
    if (in != out) conv(module + ".shortcut", {out, in, 1, 1, 1});
  }
  void attention(const std::string& module, std::int64_t width) {
    norm(module + ".norm.gamma", {width, 1, 1});
    conv(module + ".to_qkv", {3 * width, width, 1, 1});
    conv(module + ".proj", {width, width, 1, 1});
  }

  const heddle_bench_sink& sink_;
  const std::int64_t width_;
};

heddle_status* make_wan_vae(const heddle_host*, const heddle_bench_shape_desc*,
                            const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const bool is_small = request->is_small != 0;
    const auto given = [&](std::uint32_t value, std::uint32_t small, std::uint32_t published) {
      return value != 0 ? value : is_small ? small : published;
    };
    heddle_bench_workflow w{};
    w.size = sizeof w;
    w.width = given(request->width, 64, 832);
    w.height = given(request->height, 48, 480);
    w.steps = w.sets = 1;
    const std::uint32_t frames = given(request->frames, 9, 81);
    if (w.width % 8 != 0 || w.height % 8 != 0 || std::max(w.width, w.height) > 16384 ||
        frames % 4 != 1 || frames < 5 || frames > 16384)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  std::to_string(frames) + " frames of " + std::to_string(w.width) + " x " +
                      std::to_string(w.height) +
                      " pixels: sides are multiples of 8, up to 16384, and frames one more than a "
                      "multiple of 4, from 5 to 16381");
    if (request->steps > 1 || request->sets > 1)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a clip is decoded in one step of one set");
    using Tensors = WanDecoderTensors;
    Tensors(*sink, is_small ? Tensors::kSmallWidth : Tensors::kPublishedWidth).add_all();
    char json[1024];
    std::snprintf(
        json, sizeof json,
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan-vae.safetensors"}},)"
        R"("latent": {"class_type": "RandomLatent", "inputs": {"width": %u, "height": %u, "channels": %d, "length": %u, "seed": 1}},)"
        R"("decode": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}},)"
        R"("end": {"class_type": "Discard", "inputs": {"value": ["decode", 0]}}})",
        w.width, w.height, int(Tensors::kChannels), frames);
    w.json = json;
    w.node = "decode";
    w.output = "decode.IMAGE";
    w.field = "";
    w.vary = "latent.seed";
    sink->workflow(sink->to, &w);
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kWanVaeBench{
    sizeof(heddle_bench_shape_desc), "wan-vae",
    "Wan 2.1's decoder, 81 frames of 832x480 by chunks of four", &make_wan_vae};

}  // namespace heddle::vae
