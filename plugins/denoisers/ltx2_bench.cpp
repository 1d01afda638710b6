#include "ltx2_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

struct Ltx2Width {
  std::int64_t width, mlp;
};
enum class Ltx2Version { two, two_3, two_5 };
// As they were published: the transformers' configs, of 2.3 and 2.5 with the connectors that their
// files have.
struct Ltx2Shape {
  Ltx2Width video, audio;
  int layers;
  BenchDrawing drawing;
  Ltx2Version version = Ltx2Version::two;
  int connector_layers = 0;

  bool is_gated() const { return version != Ltx2Version::two; }
};
constexpr std::int64_t kLtx2Text = 3840, kLtx2Waves = 256, kLtx2Channels = 128, kLtx2Heads = 32,
                       kLtx2Registers = 128;
constexpr const char* kLtx2Empty = "EmptyLTXVLatentVideo";
// A clip of five seconds with its sound, with guidance.
constexpr Ltx2Shape kLtx2{{4096, 16384},
                          {2048, 8192},
                          48,
                          {1024, 2 * kLtx2Text, 0, 1280, 4, 2, 736, 121, kLtx2Empty, 126}};
constexpr Ltx2Shape kSmallLtx2{
    {256, 512}, {128, 256}, 2, {16, 2 * kLtx2Text, 0, 128, 2, 2, 96, 17, kLtx2Empty, 18}};

// The connectors read as many columns of the text as they are wide.
constexpr BenchDrawing kLtx2Clip{1024, 4096 + 2048, 0, 1280, 4, 2, 736, 121, kLtx2Empty, 126},
    kLtx25Clip{1024, 4096 + 2048, 0, 1280, 4, 1, 736, 121, kLtx2Empty, 126},
    kSmallLtx2Clip{16, 128 + 64, 0, 128, 2, 2, 96, 17, kLtx2Empty, 18};
constexpr Ltx2Shape kLtx23{{4096, 16384}, {2048, 8192}, 48, kLtx2Clip, Ltx2Version::two_3, 8},
    kSmallLtx23{{128, 256}, {64, 128}, 2, kSmallLtx2Clip, Ltx2Version::two_3, 1};
// Distilled: without guidance.
constexpr Ltx2Shape kLtx25{{4096, 16384}, {2048, 8192}, 48, kLtx25Clip, Ltx2Version::two_5, 8},
    kSmallLtx25{{128, 256}, {64, 128}, 2, kSmallLtx2Clip, Ltx2Version::two_5, 1};

// Between a stream of queries and one that is seen, over `inner` numbers.
void add_ltx2_attention(BenchTensors& tensors, const std::string& at, std::int64_t asks,
                        std::int64_t seen, std::int64_t inner, bool is_gated) {
  if (is_gated) tensors.linear(at + ".to_gate_logits", kLtx2Heads, asks);
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

// The MLP of a stream; the video's of 2.5 adds nothing to its products.
void add_ltx2_mlp(BenchTensors& tensors, const std::string& at, const Ltx2Width& s, bool adds) {
  if (adds) {
    tensors.linear(at + "ff.net.0.proj", s.mlp, s.width);
    tensors.linear(at + "ff.net.2", s.width, s.mlp);
  } else {
    tensors.matrix(at + "ff.net.0.proj", s.mlp, s.width);
    tensors.matrix(at + "ff.net.2", s.width, s.mlp);
  }
}

void add_ltx2_connector(BenchTensors& tensors, const std::string& name, const Ltx2Width& s,
                        int layers) {
  const std::string module = name + "_embeddings_connector.";
  tensors.table(module + "learnable_registers", {kLtx2Registers, s.width});
  for (int i = 0; i < layers; ++i) {
    const std::string at = module + "transformer_1d_blocks." + std::to_string(i) + ".";
    add_ltx2_attention(tensors, at + "attn1", s.width, s.width, s.width, true);
    add_ltx2_mlp(tensors, at, s, true);
  }
}

void add_ltx2_tensors(const Ltx2Shape& shape, BenchTensors& tensors) {
  const bool is_gated = shape.is_gated();
  const std::int64_t pieces = is_gated ? 9 : 6;
  const auto streams = [&](auto&& of) {
    of(std::string(), "video", shape.video);
    of(std::string("audio_"), "audio", shape.audio);
  };
  streams([&](const std::string& prefix, const std::string& name, const Ltx2Width& s) {
    tensors.linear(prefix + "patchify_proj", s.width, kLtx2Channels);
    if (shape.is_gated()) {
      add_ltx2_levels(tensors, prefix + "prompt_adaln_single", s.width, 2);
      add_ltx2_connector(tensors, name, s, shape.connector_layers);
    } else {
      tensors.linear(prefix + "caption_projection.linear_1", s.width, kLtx2Text);
      tensors.linear(prefix + "caption_projection.linear_2", s.width, s.width);
    }
    add_ltx2_levels(tensors, prefix + "adaln_single", s.width, pieces);
    add_ltx2_levels(tensors, "av_ca_" + name + "_scale_shift_adaln_single", s.width, 4);
    add_ltx2_levels(tensors,
                    prefix.empty() ? "av_ca_a2v_gate_adaln_single" : "av_ca_v2a_gate_adaln_single",
                    s.width, 1);
    tensors.table(prefix + "scale_shift_table", {2, s.width});
    tensors.linear(prefix + "proj_out", kLtx2Channels, s.width);
  });
  if (shape.version == Ltx2Version::two_5)
    tensors.table("keyframes_abs_pos_embedding", {1, shape.video.width});
  const std::int64_t video = shape.video.width, audio = shape.audio.width;
  for (int i = 0; i < shape.layers; ++i) {
    const std::string at = "transformer_blocks." + std::to_string(i) + ".";
    streams([&](const std::string& prefix, const std::string& name, const Ltx2Width& s) {
      for (const char* attention : {"attn1", "attn2"})
        add_ltx2_attention(tensors, at + prefix + attention, s.width, s.width, s.width, is_gated);
      const bool is_video = prefix.empty();
      add_ltx2_mlp(tensors, at + prefix, s, !is_video || shape.version != Ltx2Version::two_5);
      tensors.table(at + prefix + "scale_shift_table", {pieces, s.width});
      if (is_gated) tensors.table(at + prefix + "prompt_scale_shift_table", {2, s.width});
      tensors.table(at + "scale_shift_table_a2v_ca_" + name, {5, s.width});
    });
    add_ltx2_attention(tensors, at + "audio_to_video_attn", video, audio, audio, is_gated);
    add_ltx2_attention(tensors, at + "video_to_audio_attn", audio, video, audio, is_gated);
  }
}

template <const Ltx2Shape& kShape, const Ltx2Shape& kSmallShape>
heddle_status* make_ltx2(const heddle_host*, const heddle_bench_shape_desc* self,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const Ltx2Shape& shape = request->is_small != 0 ? kSmallShape : kShape;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_ltx2_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kLtx2Bench{
    sizeof(heddle_bench_shape_desc), "ltx2-19b",
    "LTX 2's transformer, 19 billion parameters, 121 frames of 1280x736 with sound and guidance",
    &make_ltx2<kLtx2, kSmallLtx2>};
constinit const heddle_bench_shape_desc kLtx23Bench{
    sizeof(heddle_bench_shape_desc), "ltx2.3-22b",
    "LTX 2.3's transformer and connectors, 21 billion parameters, 121 frames of 1280x736 with "
    "sound "
    "and guidance",
    &make_ltx2<kLtx23, kSmallLtx23>};
constinit const heddle_bench_shape_desc kLtx25Bench{
    sizeof(heddle_bench_shape_desc), "ltx2.5-22b",
    "LTX 2.5's distilled transformer and connectors, 21 billion parameters, 121 frames of 1280x736 "
    "with sound, without guidance",
    &make_ltx2<kLtx25, kSmallLtx25>};

}  // namespace heddle::denoisers
