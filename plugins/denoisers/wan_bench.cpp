#include "wan_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// As they were published: the transformers' configs.
struct WanShape {
  std::int64_t channels, width, mlp;
  int layers;
  BenchDrawing drawing;
};
constexpr std::int64_t kText = 4096, kTokens = 512, kWaves = 256;
// A clip of five seconds, with guidance.
constexpr WanShape kWan13{16, 1536, 8960, 30, {kTokens, kText, 0, 832, 4, 2, 480, 81}};
constexpr WanShape kWan14{16, 5120, 13824, 40, {kTokens, kText, 0, 832, 4, 2, 480, 81}};
constexpr WanShape kSmallWan{16, 256, 384, 2, {16, kText, 0, 64, 2, 2, 48, 9}};
// A cell of its latent stands for 16 x 16 pixels, as of HunyuanVideo 1.5's.
constexpr const char* kCoarseEmpty = "EmptyHunyuanVideo15Latent";
constexpr WanShape kWan5{
    48, 3072, 14336, 30, {kTokens, kText, 0, 1280, 4, 2, 704, 121, kCoarseEmpty}};
constexpr WanShape kSmallWan5{48, 256, 384, 2, {16, kText, 0, 96, 2, 2, 64, 9, kCoarseEmpty}};

void add_wan_tensors(const WanShape& s, BenchTensors& tensors) {
  const std::int64_t d = s.width;
  tensors.frame_filter("patch_embedding", d, s.channels, 2);
  tensors.linear("text_embedding.0", d, kText);
  tensors.linear("text_embedding.2", d, d);
  tensors.linear("time_embedding.0", d, kWaves);
  tensors.linear("time_embedding.2", d, d);
  tensors.linear("time_projection.1", 6 * d, d);
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    for (const char* attention : {"self_attn.", "cross_attn."}) {
      for (const char* name : {"q", "k", "v", "o"}) tensors.linear(at + attention + name, d, d);
      for (const char* name : {"norm_q", "norm_k"})
        tensors.scale(at + attention + name + ".weight", d);
    }
    tensors.scale(at + "norm3.weight", d);
    tensors.table(at + "norm3.bias", {d});
    tensors.linear(at + "ffn.0", s.mlp, d);
    tensors.linear(at + "ffn.2", d, s.mlp);
    tensors.table(at + "modulation", {1, 6, d});
  }
  tensors.table("head.modulation", {1, 2, d});
  tensors.linear("head.head", 4 * s.channels, d);
}

template <const WanShape& kShape, const WanShape& kSmallShape>
heddle_status* make_wan(const heddle_host*, const heddle_bench_shape_desc* self,
                        const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const WanShape& shape = request->is_small != 0 ? kSmallShape : kShape;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_wan_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kWan13Bench{
    sizeof(heddle_bench_shape_desc), "wan-1.3b",
    "Wan 2.1's transformer, 1.3 billion parameters, 81 frames of 832x480 with guidance",
    &make_wan<kWan13, kSmallWan>};
constinit const heddle_bench_shape_desc kWan14Bench{
    sizeof(heddle_bench_shape_desc), "wan-14b",
    "Wan 2.1's transformer, 14 billion parameters, 81 frames of 832x480 with guidance",
    &make_wan<kWan14, kSmallWan>};
constinit const heddle_bench_shape_desc kWan5Bench{
    sizeof(heddle_bench_shape_desc), "wan2.2-5b",
    "Wan 2.2's transformer, 5 billion parameters, 121 frames of 1280x704 with guidance",
    &make_wan<kWan5, kSmallWan5>};

}  // namespace heddle::denoisers
