#include "sd3_bench.h"

#include <string>
#include <string_view>

#include "bench_shape.h"
#include "patches.h"

namespace heddle::denoisers {
namespace {

// The transformers as they were published, by the files' own headers.
struct Sd3Shape {
  std::int64_t hidden, side;  // side: of the table of positions
  int blocks, duals;          // duals: blocks with a second attention
  bool is_normed;             // queries and keys are
  BenchDrawing drawing;
};
// As many tokens as a prompt of one window of CLIP has, and one of T5; guidance takes two sets.
constexpr BenchDrawing kSd3Drawing{154, 4096, 2048, 1024, 8, 2};
constexpr Sd3Shape kSd35Large{2432, 192, 38, 0, true, kSd3Drawing},
    kSd35Medium{1536, 384, 24, 13, true, kSd3Drawing},
    kSd3Medium{1536, 192, 24, 0, false, kSd3Drawing};
// The same family at a size for plain loops.
constexpr Sd3Shape kSmallSd3{128, 16, 3, 1, true, {16, 96, 48, 64, 2, 2}};

constexpr std::int64_t kSd3HeadWidth = 64, kSd3Channels = 16, kSd3Waves = 256;

void add_sd3_block(const Sd3Shape& s, int index, BenchTensors& tensors) {
  const std::int64_t d = s.hidden;
  const std::string at = "joint_blocks." + std::to_string(index) + ".";
  const auto attention = [&](const std::string& name, bool is_projected) {
    tensors.linear(name + ".qkv", 3 * d, d);
    if (is_projected) tensors.linear(name + ".proj", d, d);
    for (const char* norm : {".ln_q.weight", ".ln_k.weight"})
      if (s.is_normed) tensors.scale(name + norm, kSd3HeadWidth);
  };
  const bool is_last = index + 1 == s.blocks, is_dual = index < s.duals;
  for (const std::string stream : {"x_block", "context_block"}) {
    const bool is_picture = stream == "x_block", ends = is_last && !is_picture;
    tensors.linear(at + stream + ".adaLN_modulation.1",
                   (ends                    ? 2
                    : is_picture && is_dual ? 9
                                            : 6) *
                       d,
                   d);
    attention(at + stream + ".attn", !ends);
    if (is_picture && is_dual) attention(at + stream + ".attn2", true);
    if (ends) continue;
    tensors.linear(at + stream + ".mlp.fc1", 4 * d, d);
    tensors.linear(at + stream + ".mlp.fc2", d, 4 * d);
  }
}

void add_sd3_tensors(const Sd3Shape& s, BenchTensors& tensors) {
  const std::int64_t d = s.hidden;
  tensors.filter("x_embedder.proj", d, kSd3Channels, kPatch);
  tensors.table("pos_embed", {1, s.side * s.side, d});
  tensors.linear("context_embedder", d, s.drawing.context);
  for (const auto& [name, width] : {std::pair<std::string, std::int64_t>{"t_embedder", kSd3Waves},
                                    {"y_embedder", s.drawing.pooled}}) {
    tensors.linear(name + ".mlp.0", d, width);
    tensors.linear(name + ".mlp.2", d, d);
  }
  for (int i = 0; i < s.blocks; ++i) add_sd3_block(s, i, tensors);
  tensors.linear("final_layer.adaLN_modulation.1", 2 * d, d);
  tensors.linear("final_layer.linear", kSd3Channels * kPatchArea, d);
}

heddle_status* make_sd3(const heddle_host*, const heddle_bench_shape_desc* self,
                        const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const std::string_view name = self->name;
    const Sd3Shape& shape = request->is_small != 0   ? kSmallSd3
                            : name == "sd3.5-large"  ? kSd35Large
                            : name == "sd3.5-medium" ? kSd35Medium
                                                     : kSd3Medium;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_sd3_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kSd35LargeBench{
    sizeof(heddle_bench_shape_desc), "sd3.5-large",
    "Stable Diffusion 3.5 large's transformer, 8 billion parameters, at 1024x1024 with guidance",
    &make_sd3};
constinit const heddle_bench_shape_desc kSd35MediumBench{
    sizeof(heddle_bench_shape_desc), "sd3.5-medium",
    "Stable Diffusion 3.5 medium's transformer, 2.5 billion parameters, at 1024x1024 with guidance",
    &make_sd3};
constinit const heddle_bench_shape_desc kSd3MediumBench{
    sizeof(heddle_bench_shape_desc), "sd3-medium",
    "Stable Diffusion 3 medium's transformer, 2 billion parameters, at 1024x1024 with guidance",
    &make_sd3};

}  // namespace heddle::denoisers
