#include "ltx2_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

struct Ltx2Width {
  std::int64_t width, mlp;
};
// As it was published: the transformer's config.
struct Ltx2Shape {
  Ltx2Width video, audio;
  int layers;
  BenchDrawing drawing;
};
constexpr std::int64_t kLtx2Text = 3840, kLtx2Waves = 256, kLtx2Channels = 128;
constexpr const char* kLtx2Empty = "EmptyLTXVLatentVideo";
// A clip of five seconds with its sound, with guidance.
constexpr Ltx2Shape kLtx2{{4096, 16384},
                          {2048, 8192},
                          48,
                          {1024, 2 * kLtx2Text, 0, 1280, 4, 2, 736, 121, kLtx2Empty, 126}};
constexpr Ltx2Shape kSmallLtx2{
    {256, 512}, {128, 256}, 2, {16, 2 * kLtx2Text, 0, 128, 2, 2, 96, 17, kLtx2Empty, 18}};

// Between a stream of queries and one that is seen, over `inner` numbers.
void add_ltx2_attention(BenchTensors& tensors, const std::string& at, std::int64_t asks,
                        std::int64_t seen, std::int64_t inner) {
  tensors.linear(at + ".to_q", inner, asks);
  tensors.linear(at + ".to_k", inner, seen);
  tensors.linear(at + ".to_v", inner, seen);
  tensors.linear(at + ".to_out.0", asks, inner);
  for (const char* name : {".q_norm.weight", ".k_norm.weight"}) tensors.scale(at + name, inner);
}

void add_ltx2_levels(BenchTensors& tensors, const std::string& at, std::int64_t width,
                     std::int64_t pieces) {
  tensors.linear(at + ".emb.timestep_embedder.linear_1", width, kLtx2Waves);
  tensors.linear(at + ".emb.timestep_embedder.linear_2", width, width);
  tensors.linear(at + ".linear", pieces * width, width);
}

void add_ltx2_tensors(const Ltx2Shape& shape, BenchTensors& tensors) {
  const auto streams = [&](auto&& of) {
    of(std::string(), "video", shape.video);
    of(std::string("audio_"), "audio", shape.audio);
  };
  streams([&](const std::string& prefix, const std::string& name, const Ltx2Width& s) {
    tensors.linear(prefix + "patchify_proj", s.width, kLtx2Channels);
    tensors.linear(prefix + "caption_projection.linear_1", s.width, kLtx2Text);
    tensors.linear(prefix + "caption_projection.linear_2", s.width, s.width);
    add_ltx2_levels(tensors, prefix + "adaln_single", s.width, 6);
    add_ltx2_levels(tensors, "av_ca_" + name + "_scale_shift_adaln_single", s.width, 4);
    add_ltx2_levels(tensors,
                    prefix.empty() ? "av_ca_a2v_gate_adaln_single" : "av_ca_v2a_gate_adaln_single",
                    s.width, 1);
    tensors.table(prefix + "scale_shift_table", {2, s.width});
    tensors.linear(prefix + "proj_out", kLtx2Channels, s.width);
  });
  const std::int64_t video = shape.video.width, audio = shape.audio.width;
  for (int i = 0; i < shape.layers; ++i) {
    const std::string at = "transformer_blocks." + std::to_string(i) + ".";
    streams([&](const std::string& prefix, const std::string& name, const Ltx2Width& s) {
      for (const char* attention : {"attn1", "attn2"})
        add_ltx2_attention(tensors, at + prefix + attention, s.width, s.width, s.width);
      tensors.linear(at + prefix + "ff.net.0.proj", s.mlp, s.width);
      tensors.linear(at + prefix + "ff.net.2", s.width, s.mlp);
      tensors.table(at + prefix + "scale_shift_table", {6, s.width});
      tensors.table(at + "scale_shift_table_a2v_ca_" + name, {5, s.width});
    });
    add_ltx2_attention(tensors, at + "audio_to_video_attn", video, audio, audio);
    add_ltx2_attention(tensors, at + "video_to_audio_attn", audio, video, audio);
  }
}

heddle_status* make_ltx2(const heddle_host*, const heddle_bench_shape_desc* self,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const Ltx2Shape& shape = request->is_small != 0 ? kSmallLtx2 : kLtx2;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_ltx2_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kLtx2Bench{
    sizeof(heddle_bench_shape_desc), "ltx2-19b",
    "LTX 2's transformer, 19 billion parameters, 121 frames of 1280x736 with sound and guidance",
    &make_ltx2};

}  // namespace heddle::denoisers
