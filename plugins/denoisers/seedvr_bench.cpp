#include "seedvr_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// As they were published. The MLPs of 3B have gates, and from some layer on pictures and text share
// their matrices; waves of the rotary table are not read and left out.
struct SeedvrShape {
  std::int64_t width, head, mlp;
  int layers, own_layers;  // own: those with matrices for each stream
  bool is_3b;
  BenchDrawing drawing;
};
constexpr std::int64_t kSharpText = 5120, kSharpWaves = 256, kSharpIn = 132, kSharpOut = 64,
                       kSharpPositive = 58, kSharpNegative = 64;
constexpr BenchDrawing drawn_seedvr(std::uint32_t width, std::uint32_t height,
                                    std::uint32_t frames) {
  BenchDrawing drawing{kSharpPositive, kSharpText, 0, width, 1, 1, height, frames};
  drawing.is_sharpened = true;
  return drawing;
}
constexpr SeedvrShape kSeedvr3{2560, 128, 6912, 32, 10, true, drawn_seedvr(1280, 720, 21)},
    kSmallSeedvr3{128, 32, 256, 3, 1, true, drawn_seedvr(96, 64, 9)},
    kSeedvr7{3072, 128, 12288, 36, 36, false, drawn_seedvr(1280, 720, 21)},
    kSmallSeedvr7{128, 32, 256, 2, 2, false, drawn_seedvr(96, 64, 9)};

// stream: "vid", "txt", or "all" where both share.
void add_seedvr_stream(const SeedvrShape& s, const std::string& at, const std::string& stream,
                       BenchTensors& tensors) {
  const std::int64_t d = s.width;
  tensors.matrix(at + "attn.proj_qkv." + stream, 3 * d, d);
  tensors.linear(at + "attn.proj_out." + stream, d, d);
  for (const char* norm : {"attn.norm_q.", "attn.norm_k."})
    tensors.scale(at + norm + stream + ".weight", s.head);
  const std::string mlp = at + "mlp." + stream;
  if (s.is_3b) {
    tensors.matrix(mlp + ".proj_in_gate", s.mlp, d);
    tensors.matrix(mlp + ".proj_in", s.mlp, d);
    tensors.matrix(mlp + ".proj_out", d, s.mlp);
  } else {
    tensors.linear(mlp + ".proj_in", s.mlp, d);
    tensors.linear(mlp + ".proj_out", d, s.mlp);
  }
  for (const char* part : {"attn_", "mlp_"})
    for (const char* name : {"shift", "scale", "gate"})
      tensors.table(at + "ada." + stream + "." + part + name, {d});
}

void add_seedvr_tensors(const SeedvrShape& s, BenchTensors& tensors) {
  const std::int64_t d = s.width;
  tensors.table("positive_conditioning", {kSharpPositive, kSharpText});
  tensors.table("negative_conditioning", {kSharpNegative, kSharpText});
  tensors.linear("vid_in.proj", d, kSharpIn);
  tensors.linear("txt_in", d, kSharpText);
  tensors.linear("emb_in.proj_in", d, kSharpWaves);
  tensors.linear("emb_in.proj_hid", d, d);
  tensors.linear("emb_in.proj_out", 6 * d, d);
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    if (i >= s.own_layers) {
      add_seedvr_stream(s, at, "all", tensors);
      continue;
    }
    for (const char* stream : {"vid", "txt"}) add_seedvr_stream(s, at, stream, tensors);
  }
  if (s.is_3b) {
    tensors.scale("vid_out_norm.weight", d);
    tensors.table("vid_out_ada.out_shift", {d});
    tensors.table("vid_out_ada.out_scale", {d});
  }
  tensors.linear("vid_out.proj", kSharpOut, d);
}

template <const SeedvrShape& kShape, const SeedvrShape& kSmallShape>
heddle_status* make_seedvr(const heddle_host*, const heddle_bench_shape_desc* self,
                           const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const SeedvrShape& shape = request->is_small != 0 ? kSmallShape : kShape;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_seedvr_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kSeedvr3Bench{
    sizeof(heddle_bench_shape_desc), "seedvr2-3b",
    "SeedVR2's transformer, 3 billion parameters, one step for 21 frames of 1280x720",
    &make_seedvr<kSeedvr3, kSmallSeedvr3>};
constinit const heddle_bench_shape_desc kSeedvr7Bench{
    sizeof(heddle_bench_shape_desc), "seedvr2-7b",
    "SeedVR2's transformer, 7 billion parameters, one step for 21 frames of 1280x720",
    &make_seedvr<kSeedvr7, kSmallSeedvr7>};

}  // namespace heddle::denoisers
