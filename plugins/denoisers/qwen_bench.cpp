#include "qwen_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// Qwen-Image as it was published: the transformer's config, and the files' own headers.
struct QwenShape {
  std::int64_t hidden, head, mlp;
  int blocks;
  BenchDrawing drawing;
  bool is_layered = false;
};
// As many words as a long sentence has, without padding; guidance takes two sets.
constexpr QwenShape kQwenImage{3072, 128, 12288, 60, {128, 3584, 0, 1024, 8, 2}};
// A picture and three layers: 13 frames of a video are 4 of a latent.
constexpr QwenShape kLayered{3072, 128, 12288, 60, {128, 3584, 0, 640, 8, 2, 640, 13}, true};
constexpr QwenShape kSmallLayered{256, 64, 512, 2, {16, 96, 0, 64, 2, 2, 48, 9}, true};
// The same family at a size for plain loops, whose matrices can still be divided by rows.
constexpr QwenShape kSmallQwen{256, 64, 512, 2, {16, 96, 0, 64, 2, 2}};

constexpr std::int64_t kQwenTokenWidth = 64, kQwenWaves = 256;

void add_qwen_tensors(const QwenShape& s, BenchTensors& tensors) {
  tensors.linear("img_in", s.hidden, kQwenTokenWidth);
  tensors.scale("txt_norm.weight", s.drawing.context);
  tensors.linear("txt_in", s.hidden, s.drawing.context);
  tensors.linear("time_text_embed.timestep_embedder.linear_1", s.hidden, kQwenWaves);
  tensors.linear("time_text_embed.timestep_embedder.linear_2", s.hidden, s.hidden);
  if (s.is_layered) tensors.table("time_text_embed.addition_t_embedding.weight", {2, s.hidden});
  for (int i = 0; i < s.blocks; ++i) {
    const std::string at = "transformer_blocks." + std::to_string(i) + ".";
    for (const char* name : {"to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj",
                             "add_v_proj", "to_add_out"})
      tensors.linear(at + "attn." + name, s.hidden, s.hidden);
    for (const char* name : {"norm_q", "norm_k", "norm_added_q", "norm_added_k"})
      tensors.scale(at + "attn." + name + ".weight", s.head);
    for (const char* stream : {"img_", "txt_"}) {
      tensors.linear(at + stream + "mod.1", 6 * s.hidden, s.hidden);
      tensors.linear(at + stream + "mlp.net.0.proj", s.mlp, s.hidden);
      tensors.linear(at + stream + "mlp.net.2", s.hidden, s.mlp);
    }
  }
  tensors.linear("norm_out.linear", 2 * s.hidden, s.hidden);
  tensors.linear("proj_out", kQwenTokenWidth, s.hidden);
}

template <const QwenShape& kLarge, const QwenShape& kSmall>
heddle_status* make_qwen(const heddle_host*, const heddle_bench_shape_desc* self,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const QwenShape& shape = request->is_small != 0 ? kSmall : kLarge;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_qwen_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kQwenImageBench{
    sizeof(heddle_bench_shape_desc), "qwen-image",
    "Qwen-Image's transformer, 20 billion parameters, at 1024x1024 with guidance",
    &make_qwen<kQwenImage, kSmallQwen>};
constinit const heddle_bench_shape_desc kQwenLayeredBench{
    sizeof(heddle_bench_shape_desc), "qwen-image-layered",
    "Qwen-Image-Layered's transformer, a picture of 640x640 and three layers with guidance",
    &make_qwen<kLayered, kSmallLayered>};

}  // namespace heddle::denoisers
