#include "flux3_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// FLUX 3 klein as its config has it.
struct Flux3Shape {
  std::int64_t hidden, head, channels;
  int layers, singles;
  bool is_distilled;
  BenchDrawing drawing;
};
constexpr Flux3Shape kFlux3Klein{3072, 128, 128, 5, 28, true, {160, 20480, 0, 1024, 16, 1}},
    kFlux3Base{3072, 128, 128, 5, 28, false, {160, 20480, 0, 1024, 16, 2}};

constexpr std::int64_t kFlux3Waves = 256, kFlux3MlpRatio = 3;

// The same family at a size for plain loops.
Flux3Shape small_flux3(const Flux3Shape& shape) {
  return {128, 64, 16, 1, 2, shape.is_distilled, {16, 96, 0, 64, 2, shape.drawing.sets}};
}

void add_flux3_layer(const Flux3Shape& s, const std::string& at, BenchTensors& tensors) {
  const std::int64_t d = s.hidden, mlp = kFlux3MlpRatio * d;
  for (const char* module : {"q_proj", "k_proj", "v_proj", "attn_out"})
    tensors.matrix(at + module, d, d);
  tensors.matrix(at + "mlp_in", 2 * mlp, d);
  tensors.matrix(at + "mlp_out", d, mlp);
  tensors.scale(at + "norm.query_norm.scale", s.head);
  tensors.scale(at + "norm.key_norm.scale", s.head);
}

void add_flux3(const Flux3Shape& s, BenchTensors& tensors) {
  const std::int64_t d = s.hidden;
  for (const char* number : {"time_in", "ref_time_in"}) {
    if (number[0] == 'r' && !s.is_distilled) continue;
    tensors.matrix(std::string(number) + ".in_layer", d, kFlux3Waves);
    tensors.matrix(std::string(number) + ".out_layer", d, d);
  }
  tensors.matrix("txt_in", d, s.drawing.context);
  for (const char* stage : {"early", "single"})
    for (const char* kind : {"image", "image_cond", "txt"})
      tensors.matrix(std::string(stage) + "_stream_modulations." + kind + ".lin", 3 * d, d);
  for (const char* kind : {"image", "image_cond"})
    tensors.matrix(std::string("emb_in.") + kind, d, s.channels);
  for (int i = 0; i < s.layers; ++i)
    for (const char* list :
         {"content_mode_blocks.image.", "content_mode_blocks.image_cond.", "txt_mode_blocks."})
      add_flux3_layer(s, list + std::to_string(i) + ".", tensors);
  for (int i = 0; i < s.singles; ++i)
    add_flux3_layer(s, "single_blocks." + std::to_string(i) + ".", tensors);
  tensors.matrix("final_layer.image.adaLN_modulation.1", 2 * d, d);
  tensors.matrix("final_layer.image.linear", s.channels, d);
}

template <const Flux3Shape& usual>
heddle_status* make_flux3(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const Flux3Shape shape = request->is_small != 0 ? small_flux3(usual) : usual;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_flux3(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kFlux3KleinBench{
    sizeof(heddle_bench_shape_desc), "flux3-klein",
    "FLUX 3 klein, 5.5 billion parameters, at 1024x1024 without guidance",
    &make_flux3<kFlux3Klein>};
constinit const heddle_bench_shape_desc kFlux3KleinBaseBench{
    sizeof(heddle_bench_shape_desc), "flux3-klein-base",
    "FLUX 3 klein base, 5.5 billion parameters, at 1024x1024", &make_flux3<kFlux3Base>};

}  // namespace heddle::denoisers
