#include "h3_video.h"

#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <heddle/abi/stages.h>

#include "h3_latents.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// The publishers' names, and those of diffusers.
struct H3VideoNames {
  std::string prefix;
  bool diffusers = false;

  static std::optional<H3VideoNames> find(const Checkpoint& file, bool decodes) {
    const char* const original = decodes ? "decoder.transformer_blocks.0.attn.to_qkv.weight"
                                         : "encoder.down.0.block.0.conv1.weight";
    const char* const other = decodes ? "decoder.transformer_blocks.0.attn.to_q.weight"
                                      : "encoder.down_blocks.0.resnets.0.conv1.weight";
    for (const bool diffusers : {false, true}) {
      const auto prefix = blocks::prefix_before(file, diffusers ? other : original);
      if (!prefix ||
          !file.has(*prefix + (decodes ? "decoder.register_tokens" : "quant_conv.weight")))
        continue;
      // Other encoders of these names have pictures alone.
      if (!decodes && file.info(*prefix + (diffusers ? other : original)).rank != 5) continue;
      return {{*prefix, diffusers}};
    }
    return {};
  }

  std::string down(int level) const {
    return prefix + "encoder." + (diffusers ? "down_blocks." : "down.") + std::to_string(level);
  }
  std::string resnet(int level, int number) const {
    return down(level) + (diffusers ? ".resnets." : ".block.") + std::to_string(number);
  }
  std::string shortcut(const std::string& resnet) const {
    return resnet + (diffusers ? ".conv_shortcut" : ".nin_shortcut");
  }
  std::string downsample(int level) const {
    return down(level) + (diffusers ? ".downsamplers.0.conv" : ".downsample.conv");
  }
  std::string layers() const { return prefix + "decoder.transformer_blocks."; }
};

struct H3VideoNumbers {
  static constexpr std::int64_t kPatch = 16 * 16 * 4 * 3;
  std::int64_t head, turned, groups;
  double theta, eps, group_eps;
  std::vector<std::int64_t> frames{1, 2, 2, 1, 1, 1}, sides{2, 2, 2, 2, 1, 1};

  // 0: they do not go together.
  static std::int64_t turned_of(std::int64_t head, double ratio) {
    if (head < 8 || head > 4096 || head % 4 != 0 || !(ratio >= 0 && ratio <= 1)) return 0;
    return std::int64_t(double(head) * ratio);
  }

  H3VideoNumbers(const Checkpoint& file, const Value& config)
      : head(config.get<std::int64_t>("decoder_attention_head_dim", 64)),
        turned(turned_of(head, config.get<double>("decoder_rope_dim_ratio", 0.75))),
        groups(config.get<std::int64_t>("norm_num_groups", 32)),
        theta(config.get<double>("decoder_rope_theta", 100)),
        eps(config.get<double>("decoder_norm_eps", 1e-5)),
        group_eps(config.get<double>("norm_eps", 1e-6)) {
    if (turned < 6 || turned % 6 != 0 || head / std::gcd(turned / 2, head) % 2 != 0 || groups < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": decoder_attention_head_dim " + std::to_string(head) + " with " +
                      std::to_string(turned) + " elements that turn, and norm_num_groups " +
                      std::to_string(groups) +
                      " do not go together. The elements are divided among three axes in pairs.");
    read(config.field("temporal_downsample_factors"), frames);
    read(config.field("spatial_downsample_factors"), sides);
    std::int64_t frame = 1, side = 1;
    for (const std::int64_t factor : frames) frame *= factor;
    for (const std::int64_t factor : sides) side *= factor;
    if (frame != 4 || side != 16 || frames.size() != sides.size())
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": a cell of this autoencoder is " +
                                          std::to_string(side) + " pixels wide and " +
                                          std::to_string(frame) +
                                          " frames long. Only 16 and 4 are supported.");
  }
  static void read(const Value& told, std::vector<std::int64_t>& factors) {
    if (told.count() == 0) return;
    factors.clear();
    for (std::uint32_t i = 0; i < told.count() && i < 16; ++i) {
      const auto factor = told.item(i).as<std::int64_t>();
      factors.push_back(factor == 1 || factor == 2 ? factor : 0);
    }
  }
};

class H3VideoBuilder {
 public:
  H3VideoBuilder(const Checkpoint& file, const H3VideoNames& names, const H3VideoNumbers& numbers,
                 Blocks& graph)
      : file_(file), names_(names), n_(numbers), graph_(graph) {}

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = H3VaeLatentIn;
    const std::string side = names_.prefix + "decoder.",
                      embed = side + (names_.diffusers ? "proj_in" : "x_embedder");
    const std::int64_t latent = file_.size(embed + ".weight", 1);
    channels_ = file_.size(embed + ".weight", 0);
    if (channels_ % n_.head != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": tokens of " + std::to_string(channels_) +
                      " channels do not divide into heads of " + std::to_string(n_.head) +
                      " elements (decoder_attention_head_dim).");
    const Source z = graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT);
    Block in = graph_.add<B>("in");
    in.link(B::z, z).set(B::head, n_.head).set(B::turned, n_.turned).set(B::theta, n_.theta);
    blocks::Slots slots(file_, in, "in");
    point(slots, B::quant, B::quant_bias, names_.prefix + "post_quant_conv", latent, latent);
    slots.fill(B::proj, embed + ".weight", {channels_, latent});
    slots.fill(B::proj_bias, embed + ".bias", {channels_});
    const std::string registers = side + "register_tokens";
    slots.fill(B::registers, registers, {1, file_.size(registers, 1), channels_});
    hidden_ = in[B::out];
    const int count = blocks::layer_count(file_, names_.layers());
    for (int i = 0; i < count; ++i) add_layer(i, in[B::cos], in[B::sin]);
    using O = H3VaeImageOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_).link(O::z, z).set(O::eps, n_.eps);
    blocks::Slots last(file_, out, "out");
    last.fill(O::norm, side + "norm_out.weight", {channels_});
    last.fill(O::norm_bias, side + "norm_out.bias", {channels_});
    last.fill(O::proj, side + "proj_out.weight", {H3VideoNumbers::kPatch, channels_});
    last.fill(O::proj_bias, side + "proj_out.bias", {H3VideoNumbers::kPatch});
    graph_.output("image", out[O::image]);
    return latent;
  }

  std::int64_t encode() {
    using B = H3VaeImageIn;
    const std::string side = names_.prefix + "encoder.";
    channels_ = file_.size(side + "conv_in.weight", 0);
    Block in = graph_.add<B>("in");
    in.link(B::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT));
    blocks::Slots slots(file_, in, "in");
    filter(slots, side + "conv_in", B::conv, B::bias, channels_, 3);
    hidden_ = in[B::out];
    add_levels();
    using O = H3VaeLatentOut;
    const std::int64_t moments = file_.size(side + "conv_out.weight", 0);
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_).set(O::groups, n_.groups).set(O::eps, n_.group_eps);
    blocks::Slots last(file_, out, "out");
    norm(last, O::norm, O::norm_bias, side + "norm_out", channels_);
    filter(last, side + "conv_out", O::conv, O::bias, moments, channels_);
    point(last, O::quant, O::quant_bias, names_.prefix + "quant_conv", moments, moments);
    graph_.output("mean", out[O::mean]);
    graph_.output("logvar", out[O::logvar]);
    return moments / 2;
  }

 private:
  void filter(blocks::Slots& slots, const std::string& module, const Weight& conv,
              const Weight& bias, std::int64_t out, std::int64_t in) {
    slots.fill(conv, module + ".weight", {out, in, 3, 3, 3});
    slots.fill(bias, module + ".bias", {out});
  }
  void point(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
             const std::string& module, std::int64_t out, std::int64_t in) {
    Part part{module + ".weight"};
    part.frame = 1;
    slots.fill(matrix, {part}, {out, in, 1, 1, 1});
    slots.fill(bias, module + ".bias", {out});
  }
  void norm(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const std::string& module, std::int64_t channels) {
    if (channels % n_.groups != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + module + "' has " + std::to_string(channels) +
                      " channels in " + std::to_string(n_.groups) + " groups (norm_num_groups)");
    slots.fill(weight, module + ".weight", {channels});
    slots.fill(bias, module + ".bias", {channels});
  }

  void add_levels() {
    const int levels = blocks::layer_count(
        file_, names_.prefix + "encoder." + (names_.diffusers ? "down_blocks." : "down."));
    if (std::size_t(levels) != n_.frames.size())
      throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": the encoder has " +
                                               std::to_string(levels) + " levels, there are " +
                                               std::to_string(n_.frames.size()) +
                                               " temporal_downsample_factors. Check its config.");
    for (int level = 0; level < levels; ++level) {
      const int count = blocks::layer_count(
          file_, names_.down(level) + (names_.diffusers ? ".resnets." : ".block."));
      for (int i = 0; i < count; ++i) add_resnet(names_.resnet(level, i), level, i);
      const std::int64_t frames = n_.frames[std::size_t(level)];
      if (n_.sides[std::size_t(level)] == 1 && frames == 1) continue;
      if (n_.sides[std::size_t(level)] == 1)
        throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": level " + std::to_string(level) +
                                            " changes the number of frames alone, which is not "
                                            "supported");
      add_downsample(level, frames);
    }
  }
  void add_resnet(const std::string& module, int level, int number) {
    using B = H3VaeResnet;
    const std::string path = "down." + std::to_string(level) + "." + std::to_string(number);
    const std::int64_t out = file_.size(module + ".conv1.weight", 0);
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::groups, n_.groups).set(B::eps, n_.group_eps);
    blocks::Slots slots(file_, block, path);
    norm(slots, B::norm1, B::norm1_bias, module + ".norm1", channels_);
    filter(slots, module + ".conv1", B::conv1, B::bias1, out, channels_);
    norm(slots, B::norm2, B::norm2_bias, module + ".norm2", out);
    filter(slots, module + ".conv2", B::conv2, B::bias2, out, out);
    if (out != channels_)
      point(slots, B::shortcut, B::shortcut_bias, names_.shortcut(module), out, channels_);
    hidden_ = block[B::out];
    channels_ = out;
  }
  void add_downsample(int level, std::int64_t frames) {
    using B = H3VaeDownsample;
    const std::string path = "down." + std::to_string(level) + ".downsample";
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::frames, frames);
    blocks::Slots slots(file_, block, path);
    filter(slots, names_.downsample(level), B::conv, B::bias, channels_, channels_);
    hidden_ = block[B::out];
  }

  void add_layer(int number, const Source& cos, const Source& sin) {
    using B = H3VaeLayer;
    const std::string path = "layer." + std::to_string(number),
                      at = names_.layers() + std::to_string(number) + ".",
                      up = at + (names_.diffusers ? "ff.net.0.proj" : "ff.w1"),
                      down = at + (names_.diffusers ? "ff.net.2" : "ff.w2"),
                      proj = at + (names_.diffusers ? "attn.to_out.0" : "attn.to_out");
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).link(B::cos, cos).link(B::sin, sin).set(B::eps, n_.eps);
    block.set(B::head, n_.head).set(B::turned, n_.turned).set(B::by_head, !names_.diffusers);
    blocks::Slots slots(file_, block, path);
    slots.fill(B::norm1, at + "norm1.weight", {channels_});
    slots.fill(B::norm2, at + "norm2.weight", {channels_});
    slots.fill(B::scale1, at + "scale1", {channels_});
    slots.fill(B::scale2, at + "scale2", {channels_});
    for (const auto& [port, kind] :
         {std::pair(&B::qkv, "weight"), std::pair(&B::qkv_bias, "bias")}) {
      std::vector<Part> parts;
      for (const char* part : {"attn.to_q.", "attn.to_k.", "attn.to_v."})
        parts.push_back({at + part + kind});
      if (!names_.diffusers) parts = {{at + "attn.to_qkv." + kind}};
      slots.fill(*port, parts, with_rows(3 * channels_, kind));
    }
    slots.fill(B::proj, proj + ".weight", {channels_, channels_});
    slots.fill(B::proj_bias, proj + ".bias", {channels_});
    const std::int64_t inner = file_.size(down + ".weight", 1);
    for (const auto& [port, kind] : {std::pair(&B::up, "weight"), std::pair(&B::up_bias, "bias")}) {
      // In diffusers the gate stands behind.
      std::vector<Part> parts{{up + "." + kind}};
      if (names_.diffusers)
        parts = {{up + "." + kind, inner, 2 * inner}, {up + "." + kind, 0, inner}};
      slots.fill(*port, parts, with_rows(2 * inner, kind));
    }
    slots.fill(B::down, down + ".weight", {channels_, inner});
    slots.fill(B::down_bias, down + ".bias", {channels_});
    hidden_ = block[B::out];
  }
  Shape with_rows(std::int64_t rows, std::string_view kind) const {
    return kind == "bias" ? Shape{rows} : Shape{rows, channels_};
  }

  const Checkpoint& file_;
  const H3VideoNames& names_;
  const H3VideoNumbers& n_;
  Blocks& graph_;
  std::int64_t channels_ = 0;
  Source hidden_;
};

void build_h3_video_side(const Checkpoint& file, const Value& config, Blocks& graph, bool decodes) {
  const auto names = H3VideoNames::find(file, decodes);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no video autoencoder of MiniMax H3");
  const H3VideoNumbers numbers(file, config);
  H3VideoBuilder builder(file, *names, numbers, graph);
  const std::int64_t channels = decodes ? builder.decode() : builder.encode();
  graph.setting("family", "minimax_h3_vae");
  graph.setting(HEDDLE_ROUND_STAGE, std::int64_t{0});
  graph.setting(HEDDLE_ROUND_INPUT, decodes ? "z" : "image");
  graph.setting(HEDDLE_ROUND_INDEPENDENT, true);
  graph.setting("scaling_factor", 1.0);
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", channels);
  graph.setting("downscale", std::int64_t{16});
  graph.setting("pixel_channels", std::int64_t{3});
  add_h3_statistics(file, config, {kH3VideoMeans, kH3VideoDeviations}, channels, graph);
  const auto clip = config.get<std::int64_t>("clip_length", 17),
             dropped = config.get<std::int64_t>("token_drop", 3);
  if (clip != 17 || dropped != 3)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": clip_length " + std::to_string(clip) +
                                        " and token_drop " + std::to_string(dropped) +
                                        " in its config. Only 17 and 3 are supported.");
  graph.setting("clips", Record()
                             .set("frames", value_of(clip))
                             .set("cells", value_of(std::int64_t{5}))
                             .set("shared", value_of(std::int64_t{2}))
                             .set("dropped", value_of(dropped))
                             .set("tile", value_of(std::int64_t{256}))
                             .set("tile_overlap", value_of(std::int64_t{64}))
                             .value());
}

}  // namespace

int AutoencoderH3Decoder::match(const Checkpoint& file, const Value&) {
  return H3VideoNames::find(file, true) ? 100 : 0;
}
void AutoencoderH3Decoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_h3_video_side(file, config, graph, true);
}

int AutoencoderH3Encoder::match(const Checkpoint& file, const Value&) {
  return H3VideoNames::find(file, false) ? 100 : 0;
}
void AutoencoderH3Encoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_h3_video_side(file, config, graph, false);
}

}  // namespace heddle::vae
