#include "chroma_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// Chroma1-HD as lodestones published it: the defaults of diffusers' ChromaTransformer2DModel.
struct ChromaShape {
  std::int64_t hidden, head, mlp, approximator, waves;
  int doubles, singles, layers;
  BenchDrawing drawing;
};
constexpr ChromaShape kUsual{3072, 128, 12288, 5120, 64, 19, 38, 5, {128, 4096, 0, 1024, 8, 2}};
// The same family at a size for plain loops.
constexpr ChromaShape kSmall{128, 64, 256, 96, 16, 2, 2, 2, {16, 64, 0, 64, 2, 2}};

constexpr std::int64_t kTokenWidth = 64;

// What Radiance has in the place of the first and the last layer.
struct PixelShape {
  std::int64_t side, width, ratio, waves;
  int depth;
};
constexpr PixelShape kUsualPixels{16, 64, 4, 8, 4}, kSmallPixels{16, 16, 2, 4, 2};

void add_approximator(const ChromaShape& s, BenchTensors& tensors) {
  const std::string at = "distilled_guidance_layer.";
  tensors.linear(at + "in_proj", s.approximator, s.waves);
  for (int i = 0; i < s.layers; ++i) {
    const std::string layer = at + "layers." + std::to_string(i) + ".";
    tensors.linear(layer + "in_layer", s.approximator, s.approximator);
    tensors.linear(layer + "out_layer", s.approximator, s.approximator);
    tensors.scale(at + "norms." + std::to_string(i) + ".scale", s.approximator);
  }
  tensors.linear(at + "out_proj", s.hidden, s.approximator);
}

void add_pixels(const ChromaShape& s, const PixelShape& p, BenchTensors& tensors) {
  tensors.filter("img_in_patch", s.hidden, 3, p.side);
  tensors.linear("nerf_image_embedder.embedder.0", p.width, 3 + p.waves * p.waves);
  for (int i = 0; i < p.depth; ++i) {
    const std::string at = "nerf_blocks." + std::to_string(i) + ".";
    tensors.linear(at + "param_generator", 3 * p.width * p.width * p.ratio, s.hidden);
    tensors.scale(at + "norm.scale", p.width);
  }
  tensors.scale("nerf_final_layer_conv.norm.scale", p.width);
  tensors.filter("nerf_final_layer_conv.conv", 3, p.width, 3);
}

// pixels: nullptr where it draws latents.
void add_tensors(const ChromaShape& s, const PixelShape* pixels, BenchTensors& tensors) {
  if (pixels == nullptr)
    tensors.linear("img_in", s.hidden, kTokenWidth);
  else
    add_pixels(s, *pixels, tensors);
  tensors.linear("txt_in", s.hidden, s.drawing.context);
  add_approximator(s, tensors);
  for (int i = 0; i < s.doubles; ++i)
    for (const char* stream : {"img_", "txt_"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + stream;
      tensors.linear(at + "attn.qkv", 3 * s.hidden, s.hidden);
      tensors.scale(at + "attn.norm.query_norm.scale", s.head);
      tensors.scale(at + "attn.norm.key_norm.scale", s.head);
      tensors.linear(at + "attn.proj", s.hidden, s.hidden);
      tensors.linear(at + "mlp.0", s.mlp, s.hidden);
      tensors.linear(at + "mlp.2", s.hidden, s.mlp);
    }
  for (int i = 0; i < s.singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    tensors.linear(at + "linear1", 3 * s.hidden + s.mlp, s.hidden);
    tensors.linear(at + "linear2", s.hidden, s.hidden + s.mlp);
    tensors.scale(at + "norm.query_norm.scale", s.head);
    tensors.scale(at + "norm.key_norm.scale", s.head);
  }
  if (pixels == nullptr) tensors.linear("final_layer.linear", kTokenWidth, s.hidden);
}

// Of Radiance where `draws_pixels`.
template <bool draws_pixels>
heddle_status* make_shape(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const bool is_small = request->is_small != 0;
    const ChromaShape& shape = is_small ? kSmall : kUsual;
    const PixelShape* const pixels = is_small ? &kSmallPixels : &kUsualPixels;
    describe_bench(self->name, shape.drawing, *request, *sink, [&](BenchTensors& tensors) {
      add_tensors(shape, draws_pixels ? pixels : nullptr, tensors);
    });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kChromaBench{
    sizeof(heddle_bench_shape_desc), "chroma", "Chroma1-HD, 8.9 billion parameters, at 1024x1024",
    &make_shape<false>};
constinit const heddle_bench_shape_desc kRadianceBench{
    sizeof(heddle_bench_shape_desc), "chroma-radiance",
    "Chroma1-Radiance, 9.5 billion parameters, 1024x1024 pixels without an autoencoder",
    &make_shape<true>};

}  // namespace heddle::denoisers
