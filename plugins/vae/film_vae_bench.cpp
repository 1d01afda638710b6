#include "plugins/vae/film_vae_bench.h"

#include <array>
#include <string>

#include "plugins/vae/clip_bench.h"

namespace heddle::vae {
namespace {

// Decoders of AutoencoderKL's kind over frames: widths of the levels as they are gone through.
constexpr int kFilmLevels = 4, kFilmResnets = 3;
using FilmWidths = std::array<std::int64_t, kFilmLevels>;
constexpr FilmWidths kFilmWidths{512, 512, 256, 128}, kSmallFilmWidths{32, 32, 32, 32};
constexpr std::int64_t kFilmChannels = 16;

void film_resnet(ClipTensors& to, const std::string& at, const char* conv, const char* shortcut,
                 std::int64_t in, std::int64_t out) {
  to.norm(at + ".norm1", in);
  to.cube(at + ".conv1" + conv, out, in);
  to.norm(at + ".norm2", out);
  to.cube(at + ".conv2" + conv, out, out);
  if (in != out) to.conv(at + shortcut, {out, in, 1, 1, 1});
}

void add_hunyuan_decoder(const FilmWidths& widths, ClipTensors& to) {
  const char *kConv = ".conv", *kShortcut = ".nin_shortcut.conv";
  std::int64_t width = widths[0];
  to.conv("post_quant_conv", {kFilmChannels, kFilmChannels, 1, 1, 1});
  to.cube("decoder.conv_in.conv", width, kFilmChannels);
  film_resnet(to, "decoder.mid.block_1", kConv, kShortcut, width, width);
  to.norm("decoder.mid.attn_1.norm", width);
  for (const char* name : {"q", "k", "v", "proj_out"})
    to.conv(std::string("decoder.mid.attn_1.") + name, {width, width, 1, 1, 1});
  film_resnet(to, "decoder.mid.block_2", kConv, kShortcut, width, width);
  for (int level = kFilmLevels - 1; level >= 0; --level) {
    const std::string at = "decoder.up." + std::to_string(level);
    const std::int64_t out = widths[std::size_t(kFilmLevels - 1 - level)];
    for (int i = 0; i < kFilmResnets; ++i, width = out)
      film_resnet(to, at + ".block." + std::to_string(i), kConv, kShortcut, width, out);
    if (level > 0) to.cube(at + ".upsample.conv.conv", width, width);
  }
  to.norm("decoder.norm_out", width);
  to.cube("decoder.conv_out.conv", 3, width);
}

void add_seedvr_decoder(const FilmWidths& widths, ClipTensors& to) {
  const char* kShortcut = ".conv_shortcut";
  std::int64_t width = widths[0];
  to.cube("decoder.conv_in", width, kFilmChannels);
  const std::string middle = "decoder.mid_block.";
  film_resnet(to, middle + "resnets.0", "", kShortcut, width, width);
  to.norm(middle + "attentions.0.group_norm", width);
  for (const char* name : {"to_q", "to_k", "to_v", "to_out.0"})
    to.conv(middle + "attentions.0." + name, {width, width});
  film_resnet(to, middle + "resnets.1", "", kShortcut, width, width);
  for (int level = 0; level < kFilmLevels; ++level) {
    const std::string at = "decoder.up_blocks." + std::to_string(level);
    const std::int64_t out = widths[std::size_t(level)];
    for (int i = 0; i < kFilmResnets; ++i, width = out)
      film_resnet(to, at + ".resnets." + std::to_string(i), "", kShortcut, width, out);
    if (level + 1 == kFilmLevels) break;
    // The first two double the frames, too.
    const std::int64_t parts = level < 2 ? 8 : 4;
    to.conv(at + ".upsamplers.0.upscale_conv", {parts * width, width, 1, 1, 1});
    to.cube(at + ".upsamplers.0.conv", width, width);
  }
  to.norm("decoder.conv_norm_out", width);
  to.cube("decoder.conv_out", 3, width);
}

// LTX 2.3's: levels one after another, between which a convolution makes the numbers of more cells.
struct LtxLevel {
  std::int64_t width;
  int resnets;
  std::int64_t parts;  // cells that one becomes behind the level
};
using LtxLevels = std::array<LtxLevel, 5>;
constexpr LtxLevels kLtxLevels{{{1024, 2, 8}, {512, 2, 8}, {512, 4, 2}, {256, 6, 4}, {128, 4, 0}}},
    kSmallLtxLevels{{{64, 1, 8}, {32, 1, 8}, {32, 1, 2}, {16, 1, 4}, {8, 1, 0}}};
constexpr std::int64_t kLtxLatent = 128, kLtxPixels = 48;  // colours of 4 x 4 pixels

void add_ltx_decoder(const LtxLevels& levels, ClipTensors& to) {
  to.table("per_channel_statistics.mean-of-means", {kLtxLatent});
  to.scale("per_channel_statistics.std-of-means", {kLtxLatent});
  to.cube("decoder.conv_in.conv", levels[0].width, kLtxLatent);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const LtxLevel& level = levels[i];
    const auto block = [&](std::size_t n) {
      return "decoder.up_blocks." + std::to_string(n) + ".";
    };
    for (int n = 0; n < level.resnets; ++n)
      for (const char* conv : {".conv1.conv", ".conv2.conv"})
        to.cube(block(2 * i) + "res_blocks." + std::to_string(n) + conv, level.width, level.width);
    if (level.parts > 0)
      to.cube(block(2 * i + 1) + "conv.conv", level.parts * levels[i + 1].width, level.width);
  }
  to.cube("decoder.conv_out.conv", kLtxPixels, levels.back().width);
}

constexpr ClipShape kFilmClip{std::uint32_t(kFilmChannels), 8, 4, {1280, 720, 129}, {16, 16, 5}},
    kSharpClip{std::uint32_t(kFilmChannels), 8, 4, {1280, 720, 21}, {16, 16, 5}},
    kLtxClip{std::uint32_t(kLtxLatent), 32, 8, {1280, 736, 121}, {64, 64, 9}};

template <const ClipShape& kClip, const auto& kWidths, const auto& kSmallWidths, auto kAdd>
heddle_status* make_film_vae(const heddle_host*, const heddle_bench_shape_desc* self,
                             const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    describe_clip(self->name, kClip, *request, *sink, [&](ClipTensors& tensors) {
      kAdd(request->is_small != 0 ? kSmallWidths : kWidths, tensors);
    });
  });
}

}  // namespace

constinit const heddle_bench_shape_desc kHunyuanVaeBench{
    sizeof(heddle_bench_shape_desc), "hunyuan-video-vae",
    "HunyuanVideo 1.0's decoder, 129 frames of 1280x720",
    &make_film_vae<kFilmClip, kFilmWidths, kSmallFilmWidths, &add_hunyuan_decoder>};
constinit const heddle_bench_shape_desc kSeedvrVaeBench{
    sizeof(heddle_bench_shape_desc), "seedvr2-vae", "SeedVR2's decoder, 21 frames of 1280x720",
    &make_film_vae<kSharpClip, kFilmWidths, kSmallFilmWidths, &add_seedvr_decoder>};
constinit const heddle_bench_shape_desc kLtx23VaeBench{
    sizeof(heddle_bench_shape_desc), "ltx2.3-vae", "LTX 2.3's decoder, 121 frames of 1280x736",
    &make_film_vae<kLtxClip, kLtxLevels, kSmallLtxLevels, &add_ltx_decoder>};

}  // namespace heddle::vae
