#include "flux2_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// FLUX.2 as Black Forest Labs published it: the configs of FLUX.2-dev, FLUX.2-klein-9B and -4B.
struct Flux2Shape {
  std::int64_t hidden, head, channels;
  int doubles, singles;
  bool is_guided;
  BenchDrawing drawing;
};
constexpr Flux2Shape kDev2{6144, 128, 128, 8, 48, true, {512, 15360, 0, 1024, 8, 1}};
constexpr Flux2Shape kKlein9{4096, 128, 128, 8, 24, false, {512, 12288, 0, 1024, 4, 1}};
constexpr Flux2Shape kKlein4{3072, 128, 128, 5, 20, false, {512, 7680, 0, 1024, 4, 1}};

constexpr std::int64_t kFlux2Waves = 256, kFlux2MlpRatio = 3;

// The same family at a size for plain loops.
Flux2Shape small_flux2(const Flux2Shape& shape) {
  return {128, 64, 16, 2, 2, shape.is_guided, {16, 96, 0, 64, 2, shape.drawing.sets}};
}

void add_flux2(const Flux2Shape& s, BenchTensors& tensors) {
  const std::int64_t d = s.hidden, mlp = kFlux2MlpRatio * d;
  tensors.matrix("img_in", d, s.channels);
  tensors.matrix("txt_in", d, s.drawing.context);
  for (const char* number : {"time_in", "guidance_in"}) {
    if (number[0] == 'g' && !s.is_guided) continue;
    tensors.matrix(std::string(number) + ".in_layer", d, kFlux2Waves);
    tensors.matrix(std::string(number) + ".out_layer", d, d);
  }
  tensors.matrix("double_stream_modulation_img.lin", 6 * d, d);
  tensors.matrix("double_stream_modulation_txt.lin", 6 * d, d);
  tensors.matrix("single_stream_modulation.lin", 3 * d, d);
  for (int i = 0; i < s.doubles; ++i)
    for (const char* stream : {"img_", "txt_"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + stream;
      tensors.matrix(at + "attn.qkv", 3 * d, d);
      tensors.scale(at + "attn.norm.query_norm.scale", s.head);
      tensors.scale(at + "attn.norm.key_norm.scale", s.head);
      tensors.matrix(at + "attn.proj", d, d);
      tensors.matrix(at + "mlp.0", 2 * mlp, d);
      tensors.matrix(at + "mlp.2", d, mlp);
    }
  for (int i = 0; i < s.singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    tensors.matrix(at + "linear1", 3 * d + 2 * mlp, d);
    tensors.matrix(at + "linear2", d, d + mlp);
    tensors.scale(at + "norm.query_norm.scale", s.head);
    tensors.scale(at + "norm.key_norm.scale", s.head);
  }
  tensors.matrix("final_layer.adaLN_modulation.1", 2 * d, d);
  tensors.matrix("final_layer.linear", s.channels, d);
}

template <const Flux2Shape& usual>
heddle_status* make_flux2(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const Flux2Shape shape = request->is_small != 0 ? small_flux2(usual) : usual;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_flux2(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kFlux2DevBench{
    sizeof(heddle_bench_shape_desc), "flux2-dev", "FLUX.2 dev, 32 billion parameters, at 1024x1024",
    &make_flux2<kDev2>};
constinit const heddle_bench_shape_desc kFlux2Klein9Bench{
    sizeof(heddle_bench_shape_desc), "flux2-klein-9b",
    "FLUX.2 klein, 9 billion parameters, at 1024x1024", &make_flux2<kKlein9>};
constinit const heddle_bench_shape_desc kFlux2Klein4Bench{
    sizeof(heddle_bench_shape_desc), "flux2-klein-4b",
    "FLUX.2 klein, 4 billion parameters, at 1024x1024", &make_flux2<kKlein4>};

}  // namespace heddle::denoisers
