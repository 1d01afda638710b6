#include "flux_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// FLUX.1 as Black Forest Labs published it: model_index of FLUX.1-dev and -schnell, and the files'
// own headers.
struct FluxShape {
  std::int64_t hidden, head, mlp;
  int doubles, singles;
  bool is_guided;
  BenchDrawing drawing;
};
constexpr FluxShape kDev{3072, 128, 12288, 19, 38, true, {512, 4096, 768, 1024, 8, 1}};
constexpr FluxShape kSchnell{3072, 128, 12288, 19, 38, false, {256, 4096, 768, 1024, 4, 1}};
// The model that comes with heddle.
constexpr FluxShape kTiny{256, 64, 1024, 3, 6, false, {64, 256, 128, 256, 8, 2}};

constexpr std::int64_t kTokenWidth = 64, kTimeWidth = 256;

// The same family at a size for plain loops.
FluxShape small_of(const FluxShape& shape) {
  return {128, 64, 256, 2, 2, shape.is_guided, {16, 64, 48, 64, 2, shape.drawing.sets}};
}

void add_tensors(const FluxShape& s, BenchTensors& tensors) {
  const auto embedder = [&](const std::string& name, std::int64_t width) {
    tensors.linear(name + ".in_layer", s.hidden, width);
    tensors.linear(name + ".out_layer", s.hidden, s.hidden);
  };
  tensors.linear("img_in", s.hidden, kTokenWidth);
  tensors.linear("txt_in", s.hidden, s.drawing.context);
  embedder("time_in", kTimeWidth);
  embedder("vector_in", s.drawing.pooled);
  if (s.is_guided) embedder("guidance_in", kTimeWidth);
  for (int i = 0; i < s.doubles; ++i)
    for (const char* stream : {"img_", "txt_"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + stream;
      tensors.linear(at + "mod.lin", 6 * s.hidden, s.hidden);
      tensors.linear(at + "attn.qkv", 3 * s.hidden, s.hidden);
      tensors.scale(at + "attn.norm.query_norm.scale", s.head);
      tensors.scale(at + "attn.norm.key_norm.scale", s.head);
      tensors.linear(at + "attn.proj", s.hidden, s.hidden);
      tensors.linear(at + "mlp.0", s.mlp, s.hidden);
      tensors.linear(at + "mlp.2", s.hidden, s.mlp);
    }
  for (int i = 0; i < s.singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    tensors.linear(at + "modulation.lin", 3 * s.hidden, s.hidden);
    tensors.linear(at + "linear1", 3 * s.hidden + s.mlp, s.hidden);
    tensors.linear(at + "linear2", s.hidden, s.hidden + s.mlp);
    tensors.scale(at + "norm.query_norm.scale", s.head);
    tensors.scale(at + "norm.key_norm.scale", s.head);
  }
  tensors.linear("final_layer.adaLN_modulation.1", 2 * s.hidden, s.hidden);
  tensors.linear("final_layer.linear", kTokenWidth, s.hidden);
}

template <const FluxShape& usual>
heddle_status* make_shape(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const FluxShape shape = request->is_small != 0 ? small_of(usual) : usual;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kFluxDevBench{
    sizeof(heddle_bench_shape_desc), "flux-dev", "FLUX.1 dev, 12 billion parameters, at 1024x1024",
    &make_shape<kDev>};
constinit const heddle_bench_shape_desc kFluxSchnellBench{
    sizeof(heddle_bench_shape_desc), "flux-schnell",
    "FLUX.1 schnell, 12 billion parameters, at 1024x1024", &make_shape<kSchnell>};
constinit const heddle_bench_shape_desc kTinyScenesBench{
    sizeof(heddle_bench_shape_desc), "tiny-scenes", "the model that comes with heddle, at 256x256",
    &make_shape<kTiny>};

}  // namespace heddle::denoisers
