#include "qwen21_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// As it was published: the transformer's config.
struct Qwen21Shape {
  std::int64_t width, head;
  int layers;
  BenchDrawing drawing;
};
// As many words as a long sentence has; its templates give it one set.
constexpr Qwen21Shape kQwenImage21{4096, 128, 32, {128, 4096, 0, 1024, 25, 1}};
constexpr Qwen21Shape kSmallQwenImage21{128, 32, 2, {16, 96, 0, 128, 2, 1}};

constexpr std::int64_t kQwen21Channels = 64, kQwen21Waves = 256, kQwen21MlpRatio = 3;

void add_qwen21_tensors(const Qwen21Shape& s, BenchTensors& tensors) {
  const std::int64_t width = s.width, mlp = kQwen21MlpRatio * s.width;
  tensors.matrix("img_in", width, kQwen21Channels);
  tensors.table("txt_in.text_norm.weight", {s.drawing.context});
  tensors.matrix("txt_in.in_layer", width, s.drawing.context);
  tensors.matrix("txt_in.out_layer", width, width);
  tensors.matrix("time_text_embed.timestep_embedder.linear_1", width, kQwen21Waves);
  tensors.matrix("time_text_embed.timestep_embedder.linear_2", width, width);
  tensors.matrix("modulation.1", 4 * width, width);
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "transformer_blocks." + std::to_string(i) + ".";
    for (const char* name : {"to_q", "to_k", "to_v", "to_out.0"})
      tensors.matrix(at + "attn." + name, width, width);
    for (const char* name : {"norm_q", "norm_k"})
      tensors.scale(at + "attn." + name + ".weight", s.head);
    tensors.matrix(at + "img_mlp.gate_layer", mlp, width);
    tensors.matrix(at + "img_mlp.proj", mlp, width);
    tensors.matrix(at + "img_mlp.out", width, mlp);
  }
  tensors.matrix("norm_out.linear", width, width);
  tensors.matrix("proj_out", kQwen21Channels, width);
}

heddle_status* make_qwen21(const heddle_host*, const heddle_bench_shape_desc* self,
                           const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const Qwen21Shape& shape = request->is_small != 0 ? kSmallQwenImage21 : kQwenImage21;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_qwen21_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kQwen21Bench{
    sizeof(heddle_bench_shape_desc), "qwen-image-2.1",
    "Qwen-Image 2.1's transformer, 7 billion parameters, at 1024x1024 without guidance",
    &make_qwen21};

}  // namespace heddle::denoisers
