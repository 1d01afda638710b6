#include "zimage_bench.h"

#include <algorithm>
#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// Z-Image and Lumina 2 as they were published: the transformers' configs.
struct ZImageShape {
  std::int64_t hidden, head, kv_heads, mlp;
  int layers, refiners;
  bool is_lumina;
  BenchDrawing drawing;
};
// As many words as a long sentence has, without padding; the turbo model takes one set.
constexpr ZImageShape kZImageTurbo{3840, 128, 30, 10240, 30, 2, false, {128, 2560, 0, 1024, 8, 1}};
constexpr ZImageShape kLumina2{2304, 96, 8, 9216, 26, 2, true, {128, 2304, 0, 1024, 8, 2}};
// The same families at a size for plain loops.
constexpr ZImageShape kSmallZImage{128, 32, 4, 256, 2, 1, false, {16, 96, 0, 64, 2, 1}};
constexpr ZImageShape kSmallLumina2{144, 36, 2, 256, 2, 1, true, {16, 96, 0, 64, 2, 2}};

constexpr std::int64_t kZImageTokenWidth = 64, kZImageWaves = 256, kZImageTimeWidth = 1024;

void add_zimage_layer(const ZImageShape& s, const std::string& at, std::int64_t vector,
                      BenchTensors& tensors) {
  tensors.matrix(at + "attention.qkv", s.hidden + 2 * s.kv_heads * s.head, s.hidden);
  tensors.matrix(at + "attention.out", s.hidden, s.hidden);
  for (const char* name : {"q_norm", "k_norm"})
    tensors.scale(at + "attention." + name + ".weight", s.head);
  for (const char* name : {"attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"})
    tensors.scale(at + name + ".weight", s.hidden);
  tensors.matrix(at + "feed_forward.w1", s.mlp, s.hidden);
  tensors.matrix(at + "feed_forward.w2", s.hidden, s.mlp);
  tensors.matrix(at + "feed_forward.w3", s.mlp, s.hidden);
  const char* const modulation = s.is_lumina ? "adaLN_modulation.1" : "adaLN_modulation.0";
  if (vector > 0) tensors.linear(at + modulation, 4 * s.hidden, vector);
}

void add_zimage_tensors(const ZImageShape& s, BenchTensors& tensors) {
  const std::int64_t vector = std::min(s.hidden, s.is_lumina ? kZImageTimeWidth : kZImageWaves),
                     inner = s.is_lumina ? vector : kZImageTimeWidth;
  tensors.linear("x_embedder", s.hidden, kZImageTokenWidth);
  tensors.scale("cap_embedder.0.weight", s.drawing.context);
  tensors.linear("cap_embedder.1", s.hidden, s.drawing.context);
  tensors.linear("t_embedder.mlp.0", inner, kZImageWaves);
  tensors.linear("t_embedder.mlp.2", vector, inner);
  if (!s.is_lumina)
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

template <const ZImageShape& usual, const ZImageShape& small>
heddle_status* make_zimage(const heddle_host*, const heddle_bench_shape_desc* self,
                           const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const ZImageShape& shape = request->is_small != 0 ? small : usual;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_zimage_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kZImageBench{
    sizeof(heddle_bench_shape_desc), "z-image",
    "Z-Image's transformer, 6 billion parameters, at 1024x1024 without guidance",
    &make_zimage<kZImageTurbo, kSmallZImage>};
constinit const heddle_bench_shape_desc kLumina2Bench{
    sizeof(heddle_bench_shape_desc), "lumina2",
    "Lumina 2's transformer, 2.6 billion parameters, at 1024x1024 with guidance",
    &make_zimage<kLumina2, kSmallLumina2>};

}  // namespace heddle::denoisers
