#include "krea2_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// As it was published: the transformer's config.
struct Krea2Shape {
  std::int64_t width, head, kv_heads, mlp;
  std::int64_t text_width, text_head, text_mlp, states;  // as many heads of keys as of queries
  int layers, text_layers;
  BenchDrawing drawing;
};
// As many words as a long sentence has; the turbo model takes one set.
constexpr Krea2Shape kKrea2Turbo{
    6144, 128, 12, 16384, 2560, 128, 6912, 12, 28, 2, {128, 12 * 2560, 0, 1024, 8, 1}};
constexpr Krea2Shape kSmallKrea2{128, 32, 2, 256, 64, 16, 96, 3, 2, 1, {16, 3 * 64, 0, 64, 2, 1}};

constexpr std::int64_t kKrea2TokenWidth = 64, kKrea2Waves = 256;

void add_krea2_layer(const std::string& at, std::int64_t width, std::int64_t head,
                     std::int64_t keys, std::int64_t mlp, BenchTensors& tensors) {
  tensors.matrix(at + "attn.wq", width, width);
  tensors.matrix(at + "attn.wk", keys, width);
  tensors.matrix(at + "attn.wv", keys, width);
  tensors.matrix(at + "attn.gate", width, width);
  tensors.matrix(at + "attn.wo", width, width);
  for (const char* name : {"qnorm", "knorm"})
    tensors.table(at + "attn.qknorm." + name + ".scale", {head});
  for (const char* name : {"prenorm", "postnorm"}) tensors.table(at + name + ".scale", {width});
  tensors.matrix(at + "mlp.gate", mlp, width);
  tensors.matrix(at + "mlp.up", mlp, width);
  tensors.matrix(at + "mlp.down", width, mlp);
}

void add_krea2_tensors(const Krea2Shape& s, BenchTensors& tensors) {
  tensors.linear("first", s.width, kKrea2TokenWidth);
  tensors.linear("tmlp.0", s.width, kKrea2Waves);
  tensors.linear("tmlp.2", s.width, s.width);
  tensors.linear("tproj.1", 6 * s.width, s.width);
  for (const char* list : {"layerwise_blocks.", "refiner_blocks."})
    for (int i = 0; i < s.text_layers; ++i)
      add_krea2_layer("txtfusion." + std::string(list) + std::to_string(i) + ".", s.text_width,
                      s.text_head, s.text_width, s.text_mlp, tensors);
  tensors.matrix("txtfusion.projector", 1, s.states);
  tensors.table("txtmlp.0.scale", {s.text_width});
  tensors.linear("txtmlp.1", s.width, s.text_width);
  tensors.linear("txtmlp.3", s.width, s.width);
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    add_krea2_layer(at, s.width, s.head, s.kv_heads * s.head, s.mlp, tensors);
    tensors.table(at + "mod.lin", {6 * s.width});
  }
  tensors.table("last.modulation.lin", {2, s.width});
  tensors.table("last.norm.scale", {s.width});
  tensors.linear("last.linear", kKrea2TokenWidth, s.width);
}

heddle_status* make_krea2(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const Krea2Shape& shape = request->is_small != 0 ? kSmallKrea2 : kKrea2Turbo;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_krea2_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kKrea2Bench{
    sizeof(heddle_bench_shape_desc), "krea2",
    "Krea 2 turbo's transformer, 12 billion parameters, at 1024x1024 without guidance",
    &make_krea2};

}  // namespace heddle::denoisers
