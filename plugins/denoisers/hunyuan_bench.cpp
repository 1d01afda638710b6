#include "hunyuan_bench.h"

#include <string>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// As it was published: the transformer's config.
struct HunyuanShape {
  std::int64_t hidden, head, mlp, glyph_hidden;
  int refiners, doubles;
  BenchDrawing drawing;
};
constexpr std::int64_t kHunyuanText = 3584, kHunyuanGlyphs = 1472, kHunyuanVision = 1152,
                       kHunyuanTimeWidth = 256, kHunyuanChannels = 32;
// A clip of five seconds, with guidance, of a text that fills half of what it may.
constexpr HunyuanShape kHunyuan15{
    2048,
    128,
    8192,
    2048,
    2,
    54,
    {500, kHunyuanText, 0, 1280, 4, 2, 720, 121, "EmptyHunyuanVideo15Latent"}};
constexpr HunyuanShape kSmallHunyuan15{
    256, 64, 512, 64, 1, 2, {16, kHunyuanText, 0, 64, 2, 2, 48, 9, "EmptyHunyuanVideo15Latent"}};

// 1.0, with guidance as an input and the text of two encoders: states, and a vector.
struct FirstHunyuanShape {
  std::int64_t hidden, head, mlp;
  int refiners, doubles, singles;
  BenchDrawing drawing;
};
constexpr std::int64_t kFirstText = 4096, kFirstPooled = 768, kFirstChannels = 16, kFirstPatch = 2;
constexpr FirstHunyuanShape kHunyuan10{
    3072, 128, 12288, 2, 20, 40, {256, kFirstText, kFirstPooled, 1280, 4, 1, 720, 129}};
constexpr FirstHunyuanShape kSmallHunyuan10{
    256, 64, 512, 1, 2, 2, {16, kFirstText, kFirstPooled, 64, 2, 1, 48, 9}};

void hunyuan_norm(BenchTensors& tensors, const std::string& module, std::int64_t width) {
  tensors.scale(module + ".weight", width);
  tensors.table(module + ".bias", {width});
}

// A vector that modulations are made of: of `in` numbers.
void add_hunyuan_vector(BenchTensors& tensors, const std::string& module, std::int64_t d,
                        std::int64_t in) {
  tensors.linear(module + ".in_layer", d, in);
  tensors.linear(module + ".out_layer", d, d);
}

// What the text goes through before the layers.
void add_hunyuan_text(BenchTensors& tensors, std::int64_t d, std::int64_t text, int refiners) {
  add_hunyuan_vector(tensors, "txt_in.t_embedder", d, kHunyuanTimeWidth);
  add_hunyuan_vector(tensors, "txt_in.c_embedder", d, text);
  tensors.linear("txt_in.input_embedder", d, text);
  for (int i = 0; i < refiners; ++i) {
    const std::string at = "txt_in.individual_token_refiner.blocks." + std::to_string(i) + ".";
    hunyuan_norm(tensors, at + "norm1", d);
    tensors.linear(at + "self_attn.qkv", 3 * d, d);
    tensors.linear(at + "self_attn.proj", d, d);
    hunyuan_norm(tensors, at + "norm2", d);
    tensors.linear(at + "mlp.0", 4 * d, d);
    tensors.linear(at + "mlp.2", d, 4 * d);
    tensors.linear(at + "adaLN_modulation.1", 2 * d, d);
  }
}

// Layers in which pictures and text are two streams.
void add_hunyuan_doubles(BenchTensors& tensors, std::int64_t d, std::int64_t head, std::int64_t mlp,
                         int doubles) {
  for (int i = 0; i < doubles; ++i)
    for (const char* stream : {"img_", "txt_"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + stream;
      tensors.linear(at + "mod.lin", 6 * d, d);
      tensors.linear(at + "attn.qkv", 3 * d, d);
      tensors.scale(at + "attn.norm.query_norm.weight", head);
      tensors.scale(at + "attn.norm.key_norm.weight", head);
      tensors.linear(at + "attn.proj", d, d);
      tensors.linear(at + "mlp.0", mlp, d);
      tensors.linear(at + "mlp.2", d, mlp);
    }
}

void add_hunyuan_tensors(const HunyuanShape& s, BenchTensors& tensors) {
  const std::int64_t d = s.hidden;
  tensors.frame_filter("img_in.proj", d, 2 * kHunyuanChannels + 1, 1);
  add_hunyuan_vector(tensors, "time_in", d, kHunyuanTimeWidth);
  add_hunyuan_text(tensors, d, kHunyuanText, s.refiners);
  hunyuan_norm(tensors, "byt5_in.layernorm", kHunyuanGlyphs);
  tensors.linear("byt5_in.fc1", s.glyph_hidden, kHunyuanGlyphs);
  tensors.linear("byt5_in.fc2", s.glyph_hidden, s.glyph_hidden);
  tensors.linear("byt5_in.fc3", d, s.glyph_hidden);
  hunyuan_norm(tensors, "vision_in.proj.0", kHunyuanVision);
  tensors.linear("vision_in.proj.1", kHunyuanVision, kHunyuanVision);
  tensors.linear("vision_in.proj.3", d, kHunyuanVision);
  hunyuan_norm(tensors, "vision_in.proj.4", d);
  tensors.table("cond_type_embedding.weight", {3, d});
  add_hunyuan_doubles(tensors, d, s.head, s.mlp, s.doubles);
  tensors.linear("final_layer.adaLN_modulation.1", 2 * d, d);
  tensors.linear("final_layer.linear", kHunyuanChannels, d);
}

void add_first_hunyuan_tensors(const FirstHunyuanShape& s, BenchTensors& tensors) {
  const std::int64_t d = s.hidden;
  tensors.frame_filter("img_in.proj", d, kFirstChannels, kFirstPatch);
  add_hunyuan_vector(tensors, "time_in", d, kHunyuanTimeWidth);
  add_hunyuan_vector(tensors, "vector_in", d, kFirstPooled);
  add_hunyuan_vector(tensors, "guidance_in", d, kHunyuanTimeWidth);
  add_hunyuan_text(tensors, d, kFirstText, s.refiners);
  add_hunyuan_doubles(tensors, d, s.head, s.mlp, s.doubles);
  for (int i = 0; i < s.singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    tensors.linear(at + "modulation.lin", 3 * d, d);
    tensors.linear(at + "linear1", 3 * d + s.mlp, d);
    tensors.linear(at + "linear2", d, d + s.mlp);
    tensors.scale(at + "norm.query_norm.weight", s.head);
    tensors.scale(at + "norm.key_norm.weight", s.head);
  }
  tensors.linear("final_layer.adaLN_modulation.1", 2 * d, d);
  tensors.linear("final_layer.linear", kFirstPatch * kFirstPatch * kFirstChannels, d);
}

heddle_status* make_hunyuan(const heddle_host*, const heddle_bench_shape_desc* self,
                            const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const HunyuanShape& shape = request->is_small != 0 ? kSmallHunyuan15 : kHunyuan15;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_hunyuan_tensors(shape, tensors); });
  });
}

heddle_status* make_first_hunyuan(const heddle_host*, const heddle_bench_shape_desc* self,
                                  const heddle_bench_request* request,
                                  const heddle_bench_sink* sink) {
  return guard([&] {
    const FirstHunyuanShape& shape = request->is_small != 0 ? kSmallHunyuan10 : kHunyuan10;
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { add_first_hunyuan_tensors(shape, tensors); });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kHunyuan10Bench{
    sizeof(heddle_bench_shape_desc), "hunyuan-video",
    "HunyuanVideo 1.0's transformer, 13 billion parameters, 129 frames of 1280x720",
    &make_first_hunyuan};
constinit const heddle_bench_shape_desc kHunyuan15Bench{
    sizeof(heddle_bench_shape_desc), "hunyuan-video-1.5",
    "HunyuanVideo 1.5's transformer, 8 billion parameters, 121 frames of 1280x720 with guidance",
    &make_hunyuan};

}  // namespace heddle::denoisers
