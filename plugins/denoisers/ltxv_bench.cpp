#include "ltxv_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// As it was published: the transformer's config.
struct LtxvShape {
  std::int64_t width, mlp;
  int layers;
  BenchDrawing drawing;
};
constexpr std::int64_t kLtxvText = 4096, kLtxvWaves = 256, kLtxvChannels = 128;
constexpr const char* kLtxvEmpty = "EmptyLTXVLatentVideo";
// A clip of four seconds, with guidance.
constexpr LtxvShape kLtxv2{2048, 8192, 28, {128, kLtxvText, 0, 768, 4, 2, 512, 97, kLtxvEmpty}};
// The same, at the size that it was published for.
constexpr LtxvShape kLtxv13{4096, 16384, 48, {128, kLtxvText, 0, 1216, 4, 2, 704, 121, kLtxvEmpty}};
constexpr LtxvShape kSmallLtxv{256, 384, 2, {16, kLtxvText, 0, 128, 2, 2, 96, 17, kLtxvEmpty}};

void add_ltxv_tensors(const LtxvShape& s, BenchTensors& tensors) {
  const std::int64_t d = s.width;
  tensors.linear("patchify_proj", d, kLtxvChannels);
  tensors.linear("caption_projection.linear_1", d, kLtxvText);
  tensors.linear("caption_projection.linear_2", d, d);
  tensors.linear("adaln_single.emb.timestep_embedder.linear_1", d, kLtxvWaves);
  tensors.linear("adaln_single.emb.timestep_embedder.linear_2", d, d);
  tensors.linear("adaln_single.linear", 6 * d, d);
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "transformer_blocks." + std::to_string(i) + ".";
    for (const char* attention : {"attn1.", "attn2."}) {
      for (const char* name : {"to_q", "to_k", "to_v", "to_out.0"})
        tensors.linear(at + attention + name, d, d);
      for (const char* name : {"q_norm", "k_norm"})
        tensors.scale(at + attention + name + ".weight", d);
    }
    tensors.linear(at + "ff.net.0.proj", s.mlp, d);
    tensors.linear(at + "ff.net.2", d, s.mlp);
    tensors.table(at + "scale_shift_table", {6, d});
  }
  tensors.table("scale_shift_table", {2, d});
  tensors.linear("proj_out", kLtxvChannels, d);
}

template <const LtxvShape& kShape>
heddle_status* make_ltxv(const heddle_host*, const heddle_bench_shape_desc* self,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const LtxvShape& shape = request->is_small != 0 ? kSmallLtxv : kShape;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_ltxv_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kLtxvBench{
    sizeof(heddle_bench_shape_desc), "ltxv-2b",
    "LTX-Video's transformer, 2 billion parameters, 97 frames of 768x512 with guidance",
    &make_ltxv<kLtxv2>};
constinit const heddle_bench_shape_desc kLtxv13Bench{
    sizeof(heddle_bench_shape_desc), "ltxv-13b",
    "LTX-Video's transformer, 13 billion parameters, 121 frames of 1216x704 with guidance",
    &make_ltxv<kLtxv13>};

}  // namespace heddle::denoisers
