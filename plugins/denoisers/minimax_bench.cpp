#include "minimax_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// The transformer's config, of ComfyUI's files with a table of times.
struct MinimaxShape {
  std::int64_t width, inner, head, mlp, text;
  int layers;
  BenchDrawing drawing;
};
constexpr std::int64_t kMinimaxPatch = 96, kMinimaxSound = 32, kMinimaxCurve = 8,
                       kMinimaxTimes = 1025;
constexpr const char* kMinimaxEmpty = "EmptyMiniMaxH3LatentAV";
// A clip of five seconds with its sound, without guidance.
constexpr MinimaxShape kMinimaxShape{5376,
                                     7168,
                                     128,
                                     14336,
                                     5120,
                                     50,
                                     {256, 5120, 0, 1344, 20, 1, 768, 124, kMinimaxEmpty, 0, true}};
constexpr MinimaxShape kSmallMinimax{
    128, 192, 32, 256, 64, 2, {16, 64, 0, 96, 2, 1, 64, 5, kMinimaxEmpty, 0, true}};

void add_minimax_layer(const MinimaxShape& s, const std::string& at, BenchTensors& tensors) {
  tensors.scale(at + "norm1.weight", s.width);
  tensors.scale(at + "norm2.weight", s.width);
  tensors.matrix(at + "attn.qkv_proj", 3 * s.inner, s.width);
  tensors.scale(at + "attn.q_norm.weight", s.head);
  tensors.scale(at + "attn.k_norm.weight", s.head);
  tensors.matrix(at + "attn.out_proj", s.width, s.inner);
  tensors.matrix(at + "mlp.fc1", 2 * s.mlp, s.width);
  tensors.matrix(at + "mlp.fc2", s.width, s.mlp);
}

void add_minimax_tensors(const MinimaxShape& s, BenchTensors& tensors) {
  tensors.linear("video_patch_proj", s.width, kMinimaxPatch);
  tensors.linear("audio_patch_proj", s.width, kMinimaxSound);
  tensors.linear("condition_proj", s.width, s.text);
  tensors.table("adaln_t_table", {kMinimaxTimes, kMinimaxCurve});
  for (int i = 0; i < 2; ++i)
    add_minimax_layer(s, "token_refiner.blocks." + std::to_string(i) + ".", tensors);
  tensors.scale("token_refiner.final_norm.weight", s.width);
  constexpr std::int64_t kPieces = 18;  // six for each of three kinds of tokens
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    add_minimax_layer(s, at, tensors);
    tensors.linear(at + "adaln_proj.linear", kPieces * s.width, kMinimaxCurve);
  }
  tensors.scale("final_layer.norm.weight", s.width);
  tensors.linear("final_layer.adaln_proj.linear", 2 * s.width, kMinimaxCurve);
  tensors.linear("final_layer.video_out", kMinimaxPatch, s.width);
  tensors.linear("final_layer.audio_out", kMinimaxSound, s.width);
}

heddle_status* make_minimax(const heddle_host*, const heddle_bench_shape_desc* self,
                            const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const MinimaxShape& shape = request->is_small != 0 ? kSmallMinimax : kMinimaxShape;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_minimax_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kMinimaxBench{
    sizeof(heddle_bench_shape_desc), "minimax-h3",
    "MiniMax H3's transformer with a table of times, 20 billion parameters, 124 frames of 1344x768 "
    "with sound, without guidance",
    &make_minimax};

}  // namespace heddle::denoisers
