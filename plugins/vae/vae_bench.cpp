#include "plugins/vae/vae_bench.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "heddle/value.hpp"
#include "plugins/vae/film_vae_bench.h"
#include "plugins/vae/wan_vae_bench.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kLatent = 16, kPixelColours = 3;
constexpr int kLevels = 4;
using Widths = std::array<std::int64_t, kLevels>;  // of the levels, the finest first
constexpr Widths kPublished{128, 256, 512, 512}, kSmall{32, 32, 32, 64};
constexpr const char* kFile = "vae/flux-vae.safetensors";

// The tensors of "ae.safetensors", as Black Forest Labs published it.
class Tensors {
 public:
  explicit Tensors(const heddle_bench_sink& sink) : sink_(sink) {}

  void encoder(const Widths& widths) {
    conv("encoder.conv_in", widths[0], kPixelColours);
    std::int64_t width = widths[0];
    for (int level = 0; level < kLevels; ++level) {
      const std::string at = "encoder.down." + std::to_string(level);
      for (int i = 0; i < 2; ++i) resnet(at, i, width, widths[std::size_t(level)]);
      if (level + 1 < kLevels) conv(at + ".downsample.conv", width, width);
    }
    middle("encoder", width);
    end("encoder", 2 * kLatent, width);
  }
  void decoder(const Widths& widths) {
    std::int64_t width = widths.back();
    conv("decoder.conv_in", width, kLatent);
    middle("decoder", width);
    for (int level = kLevels - 1; level >= 0; --level) {
      const std::string at = "decoder.up." + std::to_string(level);
      for (int i = 0; i < 3; ++i) resnet(at, i, width, widths[std::size_t(level)]);
      if (level > 0) conv(at + ".upsample.conv", width, width);
    }
    end("decoder", kPixelColours, width);
  }

 private:
  void add(const std::string& name, const Shape& shape, double mean, double deviation) {
    const heddle_bench_tensor tensor{
        sizeof tensor, kFile, name.c_str(), HEDDLE_F32, std::uint32_t(shape.size()),
        shape.data(),  mean,  deviation};
    sink_.tensor(sink_.to, &tensor);
  }
  void conv(const std::string& module, std::int64_t out, std::int64_t in, std::int64_t side = 3) {
    add(module + ".weight", {out, in, side, side}, 0, 1 / std::sqrt(double(in * side * side)));
    add(module + ".bias", {out}, 0, 0.02);
  }
  void norm(const std::string& module, std::int64_t width) {
    add(module + ".weight", {width}, 1, 0.02);
    add(module + ".bias", {width}, 0, 0.02);
  }
  void block(const std::string& module, std::int64_t in, std::int64_t out) {
    norm(module + ".norm1", in);
    conv(module + ".conv1", out, in);
    norm(module + ".norm2", out);
    conv(module + ".conv2", out, out);
    if (in != out) conv(module + ".nin_shortcut", out, in, 1);
  }
  // `width` becomes that of the level.
  void resnet(const std::string& level, int index, std::int64_t& width, std::int64_t out) {
    block(level + ".block." + std::to_string(index), width, out);
    width = out;
  }
  void middle(const std::string& side, std::int64_t width) {
    block(side + ".mid.block_1", width, width);
    norm(side + ".mid.attn_1.norm", width);
    for (const char* name : {"q", "k", "v", "proj_out"})
      conv(side + ".mid.attn_1." + name, width, width, 1);
    block(side + ".mid.block_2", width, width);
  }
  void end(const std::string& side, std::int64_t out, std::int64_t width) {
    norm(side + ".norm_out", width);
    conv(side + ".conv_out", out, width);
  }

  const heddle_bench_sink& sink_;
};

heddle_status* make(const heddle_host*, const heddle_bench_shape_desc*,
                    const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const bool is_small = request->is_small != 0;
    const std::uint32_t side = is_small ? 64 : 1024;
    heddle_bench_workflow w{};
    w.size = sizeof w;
    w.width = request->width != 0 ? request->width : side;
    w.height = request->height != 0 ? request->height : side;
    w.steps = w.sets = 1;
    if (w.width % 8 != 0 || w.height % 8 != 0 || std::max(w.width, w.height) > 16384)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a picture of " + std::to_string(w.width) + " x " +
                                               std::to_string(w.height) +
                                               " pixels: sides are multiples of 8, up to 16384");
    if (request->steps > 1 || request->sets > 1)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a picture is decoded in one step of one set");
    Tensors tensors(*sink);
    tensors.encoder(is_small ? kSmall : kPublished);
    tensors.decoder(is_small ? kSmall : kPublished);
    char json[1024];
    std::snprintf(
        json, sizeof json,
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "flux-vae.safetensors"}},)"
        R"("latent": {"class_type": "RandomLatent", "inputs": {"width": %u, "height": %u, "channels": %d, "seed": 1}},)"
        R"("decode": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}},)"
        R"("end": {"class_type": "Discard", "inputs": {"value": ["decode", 0]}}})",
        w.width, w.height, int(kLatent));
    w.json = json;
    w.node = "decode";
    w.output = "decode.IMAGE";
    w.field = "";
    w.vary = "latent.seed";
    sink->workflow(sink->to, &w);
  });
}

constexpr heddle_bench_shape_desc kFluxVae{sizeof(heddle_bench_shape_desc), "flux-vae",
                                           "FLUX.1's autoencoder, decoding 1024x1024", &make};

}  // namespace

const heddle_list* VaeBench::list() {
  return descs<kFluxVae, kWanVaeBench, kWan22VaeBench, kHunyuanVaeBench, kSeedvrVaeBench,
               kLtx23VaeBench>();
}

}  // namespace heddle::vae
