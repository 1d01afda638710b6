#include "unet_bench.h"

#include <string>
#include <vector>

#include "bench_shape.h"

namespace heddle::denoisers {
namespace {

// A UNet as it was published: by its config, and the files' own headers.
struct UnetShape {
  std::vector<std::int64_t> channels;  // of each level
  std::vector<int> depths;             // of the transformers of each level, and of the middle
  int resnets;                         // of a level downwards
  bool is_linear;
  std::int64_t label;  // 0: none
  BenchDrawing drawing;
  std::int64_t levels = 0,
               more = 0;  // of the x4 upscaler: of noise, and channels beside the latent
};
const UnetShape kSd15{{320, 640, 1280, 1280},  {1, 1, 1, 0, 1}, 2, false, 0,
                      {77, 768, 0, 512, 20, 2}};
const UnetShape kSdxl{
    {320, 640, 1280}, {0, 2, 10, 10}, 2, true, 2816, {77, 2048, 1280, 1024, 20, 2}};
const UnetShape kLotus{{320, 640, 1280, 1280},  {1, 1, 1, 0, 1}, 2, true, 4,
                       {77, 1024, 0, 512, 1, 1}};
const UnetShape kSdX4{{256, 512, 512, 1024},
                      {0, 1, 1, 1, 1},
                      2,
                      true,
                      0,
                      {77, 1024, 0, 1024, 20, 2, 0, 0, "", 0, false, true},
                      1000,
                      3};
// The same families at sizes for plain loops.
const UnetShape kSmallSd{{32, 64}, {1, 0, 1}, 1, false, 0, {16, 96, 0, 64, 2, 2}};
const UnetShape kSmallSdxl{{64, 128}, {0, 1, 1}, 1, true, 1568, {16, 96, 32, 64, 2, 2}};

const UnetShape kSmallLotus{{64, 128}, {0, 1, 1}, 1, true, 4, {16, 96, 0, 64, 1, 1}};
const UnetShape kSmallX4{
    {64, 128}, {0, 1, 1}, 1, true, 0, {16, 96, 0, 64, 2, 2, 0, 0, "", 0, false, true}, 351, 3};

constexpr std::int64_t kUnetLatent = 4, kUnetGate = 2, kUnetMlp = 4, kUnetVectorWidth = 4;

// Tells the tensors of one file.
class UnetTensors {
 public:
  UnetTensors(const UnetShape& shape, BenchTensors& tensors)
      : s_(shape), tensors_(tensors), vector_(kUnetVectorWidth * shape.channels.front()) {}

  void add() {
    const std::int64_t first = s_.channels.front();
    tensors_.linear("time_embed.0", vector_, first);
    tensors_.linear("time_embed.2", vector_, vector_);
    if (s_.label > 0) {
      tensors_.linear("label_emb.0.0", vector_, s_.label);
      tensors_.linear("label_emb.0.2", vector_, vector_);
    }
    if (s_.levels > 0) tensors_.table("label_emb.weight", {s_.levels, vector_});
    tensors_.filter("input_blocks.0.0", first, kUnetLatent + s_.more, 3);
    std::vector<std::int64_t> skips{first};
    std::int64_t channels = first;
    int number = 1;
    const int levels = int(s_.channels.size());
    for (int level = 0; level < levels; ++level) {
      for (int i = 0; i < s_.resnets; ++i, ++number) {
        add_stage(stage("input_blocks", number), level, channels, 0);
        skips.push_back(channels);
      }
      if (level + 1 == levels) break;
      tensors_.filter(stage("input_blocks", number++) + "0.op", channels, channels, 3);
      skips.push_back(channels);
    }
    resnet("middle_block.0.", channels, channels);
    transformer("middle_block.1.", channels, s_.depths.back());
    resnet("middle_block.2.", channels, channels);
    number = 0;
    for (int level = levels - 1; level >= 0; --level)
      for (int i = 0; i <= s_.resnets; ++i, ++number) {
        const std::string at = stage("output_blocks", number);
        add_stage(at, level, channels, skips.back());
        skips.pop_back();
        if (i == s_.resnets && level > 0)
          tensors_.filter(at + (depth(level) > 0 ? "2" : "1") + ".conv", channels, channels, 3);
      }
    norm("out.0", channels);
    tensors_.filter("out.2", kUnetLatent, channels, 3);
  }

 private:
  static std::string stage(const char* name, int number) {
    return std::string(name) + "." + std::to_string(number) + ".";
  }
  int depth(int level) const { return s_.depths[std::size_t(level)]; }

  void add_stage(const std::string& at, int level, std::int64_t& channels, std::int64_t skip) {
    const std::int64_t out = s_.channels[std::size_t(level)];
    resnet(at + "0.", channels + skip, out);
    if (depth(level) > 0) transformer(at + "1.", out, depth(level));
    channels = out;
  }

  void norm(const std::string& module, std::int64_t width) {
    tensors_.scale(module + ".weight", width);
    tensors_.table(module + ".bias", {width});
  }

  void resnet(const std::string& at, std::int64_t in, std::int64_t out) {
    norm(at + "in_layers.0", in);
    tensors_.filter(at + "in_layers.2", out, in, 3);
    tensors_.linear(at + "emb_layers.1", out, vector_);
    norm(at + "out_layers.0", out);
    tensors_.filter(at + "out_layers.3", out, out, 3);
    if (in != out) tensors_.filter(at + "skip_connection", out, in, 1);
  }

  void projection(const std::string& module, std::int64_t width) {
    if (s_.is_linear)
      tensors_.linear(module, width, width);
    else
      tensors_.filter(module, width, width, 1);
  }

  void transformer(const std::string& at, std::int64_t width, int blocks) {
    norm(at + "norm", width);
    projection(at + "proj_in", width);
    for (int i = 0; i < blocks; ++i) {
      const std::string in = at + "transformer_blocks." + std::to_string(i) + ".";
      for (const char* name : {"norm1", "norm2", "norm3"}) norm(in + name, width);
      for (const char* name : {"attn1.to_q", "attn2.to_q"})
        tensors_.matrix(in + name, width, width);
      // The x4 upscaler reads the text in both attentions.
      for (const char* name : {"attn1.to_k", "attn1.to_v"})
        tensors_.matrix(in + name, width, s_.levels > 0 ? s_.drawing.context : width);
      for (const char* name : {"attn2.to_k", "attn2.to_v"})
        tensors_.matrix(in + name, width, s_.drawing.context);
      for (const char* name : {"attn1.to_out.0", "attn2.to_out.0"})
        tensors_.linear(in + name, width, width);
      tensors_.linear(in + "ff.net.0.proj", kUnetGate * kUnetMlp * width, width);
      tensors_.linear(in + "ff.net.2", width, kUnetMlp * width);
    }
    projection(at + "proj_out", width);
  }

  const UnetShape& s_;
  BenchTensors& tensors_;
  const std::int64_t vector_;
};

heddle_status* make_unet(const heddle_bench_shape_desc* self, const UnetShape& shape,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    describe_bench(self->name, shape.drawing, *request, *sink,
                   [&](BenchTensors& tensors) { UnetTensors(shape, tensors).add(); });
  });
}

heddle_status* make_sd15(const heddle_host*, const heddle_bench_shape_desc* self,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return make_unet(self, request->is_small != 0 ? kSmallSd : kSd15, request, sink);
}

heddle_status* make_lotus(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return make_unet(self, request->is_small != 0 ? kSmallLotus : kLotus, request, sink);
}

heddle_status* make_sd_x4(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return make_unet(self, request->is_small != 0 ? kSmallX4 : kSdX4, request, sink);
}

heddle_status* make_sdxl(const heddle_host*, const heddle_bench_shape_desc* self,
                         const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return make_unet(self, request->is_small != 0 ? kSmallSdxl : kSdxl, request, sink);
}

}  // namespace

constinit const heddle_bench_shape_desc kSd15Bench{
    sizeof(heddle_bench_shape_desc), "sd15",
    "Stable Diffusion 1.5's UNet, 860 million parameters, at 512x512 with guidance", &make_sd15};
constinit const heddle_bench_shape_desc kSdxlBench{
    sizeof(heddle_bench_shape_desc), "sdxl",
    "SDXL's UNet, 2.6 billion parameters, at 1024x1024 with guidance", &make_sdxl};
constinit const heddle_bench_shape_desc kLotusBench{
    sizeof(heddle_bench_shape_desc), "lotus", "Lotus' UNet, 867 million parameters, at 512x512",
    &make_lotus};
constinit const heddle_bench_shape_desc kSdX4Bench{
    sizeof(heddle_bench_shape_desc), "sd-x4-upscaler",
    "Stable Diffusion's x4 upscaler, 473 million parameters, to 1024x1024 with guidance",
    &make_sd_x4};

}  // namespace heddle::denoisers
