#include "zimage_bench.h"

#include <algorithm>
#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// Z-Image as it was published: the transformer's config.
struct ZImageShape {
  std::int64_t hidden, head, mlp;
  int layers, refiners;
  BenchDrawing drawing;
};
// As many words as a long sentence has, without padding; the turbo model takes one set.
constexpr ZImageShape kZImageTurbo{3840, 128, 10240, 30, 2, {128, 2560, 0, 1024, 8, 1}};
// The same family at a size for plain loops.
constexpr ZImageShape kSmallZImage{128, 32, 256, 2, 1, {16, 96, 0, 64, 2, 1}};

constexpr std::int64_t kZImageTokenWidth = 64, kZImageWaves = 256, kZImageTimeWidth = 1024;

void add_zimage_layer(const ZImageShape& s, const std::string& at, std::int64_t vector,
                      BenchTensors& tensors) {
  tensors.matrix(at + "attention.qkv", 3 * s.hidden, s.hidden);
  tensors.matrix(at + "attention.out", s.hidden, s.hidden);
  for (const char* name : {"q_norm", "k_norm"})
    tensors.scale(at + "attention." + name + ".weight", s.head);
  for (const char* name : {"attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"})
    tensors.scale(at + name + ".weight", s.hidden);
  tensors.matrix(at + "feed_forward.w1", s.mlp, s.hidden);
  tensors.matrix(at + "feed_forward.w2", s.hidden, s.mlp);
  tensors.matrix(at + "feed_forward.w3", s.mlp, s.hidden);
  if (vector > 0) tensors.linear(at + "adaLN_modulation.0", 4 * s.hidden, vector);
}

void add_zimage_tensors(const ZImageShape& s, BenchTensors& tensors) {
  const std::int64_t vector = std::min(s.hidden, kZImageWaves);
  tensors.linear("x_embedder", s.hidden, kZImageTokenWidth);
  tensors.scale("cap_embedder.0.weight", s.drawing.context);
  tensors.linear("cap_embedder.1", s.hidden, s.drawing.context);
  tensors.linear("t_embedder.mlp.0", kZImageTimeWidth, kZImageWaves);
  tensors.linear("t_embedder.mlp.2", vector, kZImageTimeWidth);
  for (const char* name : {"x_pad_token", "cap_pad_token"}) tensors.token(name, s.hidden);
  for (int i = 0; i < s.refiners; ++i) {
    add_zimage_layer(s, "noise_refiner." + std::to_string(i) + ".", vector, tensors);
    add_zimage_layer(s, "context_refiner." + std::to_string(i) + ".", 0, tensors);
  }
  for (int i = 0; i < s.layers; ++i)
    add_zimage_layer(s, "layers." + std::to_string(i) + ".", vector, tensors);
  tensors.linear("final_layer.adaLN_modulation.1", s.hidden, vector);
  tensors.linear("final_layer.linear", kZImageTokenWidth, s.hidden);
}

heddle_status* make_zimage(const heddle_host*, const heddle_bench_shape_desc* self,
                           const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const ZImageShape& shape = request->is_small != 0 ? kSmallZImage : kZImageTurbo;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_zimage_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kZImageBench{
    sizeof(heddle_bench_shape_desc), "z-image",
    "Z-Image's transformer, 6 billion parameters, at 1024x1024 without guidance", &make_zimage};

}  // namespace heddle::denoisers
