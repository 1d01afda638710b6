#include "unet_video.h"

#include <string>
#include <vector>

#include "flux_blocks.h"
#include "plugins/blocks/slots.h"
#include "unet_blocks.h"
#include "unet_filler.h"
#include "unet_names.h"
#include "unet_settings.h"
#include "unet_vector.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kVideoHeadWidth = 64;

// Builds the graph of one file.
class VideoBuilder {
 public:
  VideoBuilder(const Checkpoint& file, const UnetNames& names, const UnetSizes& sizes,
               Blocks& graph)
      : file_(file), names_(names), d_(sizes), graph_(graph) {}

  void run() {
    x_ = graph_.input("x", HEDDLE_INPUT_PER_STEP);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    context_ = graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT);
    vector_ = add_vector({file_, names_, d_}, timestep, std::nullopt, graph_);
    hidden_ = embed_latent();
    channels_ = d_.channels;
    std::vector<Skip> skips{{hidden_, channels_}};
    for (std::size_t i = 1; i < names_.inputs().size(); ++i) {
      add_stage(names_.inputs()[i], "input." + std::to_string(i), nullptr);
      skips.push_back({hidden_, channels_});
    }
    int number = 0;
    for (const UnetPart& part : names_.middle())
      add_part(part, "middle." + std::to_string(number++), nullptr);
    for (std::size_t i = 0; i < names_.outputs().size(); ++i) {
      if (skips.empty())
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    file_.path() +
                        ": the UNet has more stages upwards than downwards. The file is "
                        "damaged.");
      const Skip skip = skips.back();
      skips.pop_back();
      like_ = skips.empty() ? skip.hidden : skips.back().hidden;
      add_stage(names_.outputs()[i], "output." + std::to_string(i), &skip);
    }
    add_final();
  }

 private:
  using Kind = UnetPart::Kind;
  struct Skip {
    Source hidden;
    std::int64_t channels;
  };
  struct Tokens {
    Source all;
    std::int64_t heads, width;
  };

  UnetFiller filler(Block& block, const std::string& path, const UnetPart* part = nullptr) const {
    return {names_, part, blocks::Slots(file_, block, path)};
  }
  std::int64_t rows(const UnetPart& part, const std::string& module) const {
    return file_.size(names_.in_part(part, module, "weight"), 0);
  }

  Source embed_latent() {
    using B = UnetIn;
    Block block = graph_.add<B>("input.0.conv");
    block.link(B::x, x_);
    if (d_.more > 0) block.link(B::concat, graph_.input("concat", HEDDLE_INPUT_LOOP_INVARIANT));
    filler(block, "input.0.conv")
        .both(B::conv, B::conv_bias, "input_blocks.0.0", {d_.channels, d_.latent + d_.more, 3, 3});
    return block[B::out];
  }

  void add_stage(const UnetStage& stage, const std::string& path, const Skip* skip) {
    for (const UnetPart& part : stage) add_part(part, path, skip);
  }

  void add_part(const UnetPart& part, const std::string& path, const Skip* skip) {
    if (part.kind == Kind::resnet) {
      add_resnet(part, path, skip);
      return add_time_resnet(part, path);
    }
    if (part.kind == Kind::transformer) return add_transformer(part, path);
    const bool is_up = part.kind == Kind::up;
    if (!is_up) return add_resample<UnetDown>(part, path + ".smaller.conv", "op");
    add_resample<UnetUp>(part, path + ".larger.conv", "conv");
  }

  Source modulation(const UnetPart& part, const std::string& path, const std::string& module,
                    std::int64_t width) {
    using M = FluxModulation;
    Block block = graph_.add<M>(path);
    block.link(M::vector, vector_);
    filler(block, path, &part).both(M::weight, M::bias, module, {width, d_.vector});
    return block[M::out];
  }

  void add_resnet(const UnetPart& part, const std::string& path, const Skip* skip) {
    using B = UnetResnet;
    const std::int64_t in = channels_ + (skip == nullptr ? 0 : skip->channels),
                       out = rows(part, "in_layers.2");
    const Source mod = modulation(part, path + ".modulation", "emb_layers.1", out);
    Block block = graph_.add<B>(path + ".resnet");
    block.link(B::hidden, hidden_).link(B::mod, mod);
    if (skip != nullptr) block.link(B::skip, skip->hidden);
    UnetFiller fill = filler(block, path + ".resnet", &part);
    fill.both(B::norm1, B::norm1_bias, "in_layers.0", {in});
    fill.both(B::conv1, B::conv1_bias, "in_layers.2", {out, in, 3, 3});
    fill.both(B::norm2, B::norm2_bias, "out_layers.0", {out});
    fill.both(B::conv2, B::conv2_bias, "out_layers.3", {out, out, 3, 3});
    if (in != out) fill.both(B::shortcut, B::shortcut_bias, "skip_connection", {out, in, 1, 1});
    hidden_ = block[B::out];
    channels_ = out;
  }

  void add_time_resnet(const UnetPart& part, const std::string& path) {
    using B = VideoResnet;
    const std::string at = "time_stack.";
    const std::int64_t width = channels_;
    const Source mod = modulation(part, path + ".time.modulation", at + "emb_layers.1", width);
    Block block = graph_.add<B>(path + ".time.resnet");
    block.link(B::hidden, hidden_).link(B::mod, mod);
    UnetFiller fill = filler(block, path + ".time.resnet", &part);
    fill.both(B::norm1, B::norm1_bias, at + "in_layers.0", {width});
    fill.both(B::conv1, B::conv1_bias, at + "in_layers.2", {width, width, 3, 1, 1});
    fill.both(B::norm2, B::norm2_bias, at + "out_layers.0", {width});
    fill.both(B::conv2, B::conv2_bias, at + "out_layers.3", {width, width, 3, 1, 1});
    fill.slots.fill(B::mix, names_.in_part(part, "time_mixer", "mix_factor"), {1});
    hidden_ = block[B::out];
  }

  void add_transformer(const UnetPart& part, const std::string& path) {
    const std::int64_t width = rows(part, "proj_in");
    if (width % kVideoHeadWidth != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": tokens of " + std::to_string(width) + " numbers ('" +
                      names_.in_part(part, "proj_in", "weight") +
                      "') do not divide into heads of " + std::to_string(kVideoHeadWidth) +
                      ". The file is damaged.");
    Block enter = graph_.add<UnetTokensIn>(path + ".tokens.in");
    enter.link(UnetTokensIn::hidden, hidden_);
    UnetFiller first = filler(enter, path + ".tokens.in", &part);
    first.both(UnetTokensIn::norm, UnetTokensIn::norm_bias, "norm", {channels_});
    first.both(UnetTokensIn::proj, UnetTokensIn::proj_bias, "proj_in", {width, channels_});
    const Source places = add_places(part, path + ".places", width);
    Tokens tokens{enter[UnetTokensIn::out], width / kVideoHeadWidth, width};
    for (int k = 0; k < part.depth; ++k) {
      const std::string of = path + ".transformer." + std::to_string(k);
      tokens.all = add_block(part, of, k, tokens);
      tokens.all = add_time_block(part, of + ".time", k, tokens, places);
    }
    Block leave = graph_.add<UnetTokensOut>(path + ".picture.out");
    leave.link(UnetTokensOut::tokens, tokens.all).link(UnetTokensOut::hidden, hidden_);
    filler(leave, path + ".picture.out", &part)
        .both(UnetTokensOut::proj, UnetTokensOut::proj_bias, "proj_out", {channels_, width});
    hidden_ = leave[UnetTokensOut::out];
  }

  Source add_places(const UnetPart& part, const std::string& path, std::int64_t width) {
    using B = VideoPlaces;
    Block block = graph_.add<B>(path);
    block.link(B::x, x_);
    const std::int64_t inner = rows(part, "time_pos_embed.0");
    UnetFiller fill = filler(block, path, &part);
    fill.both(B::in, B::in_bias, "time_pos_embed.0", {inner, width});
    fill.both(B::last, B::last_bias, "time_pos_embed.2", {width, inner});
    return block[B::out];
  }

  // The slots that both kinds of transformers have.
  template <class B>
  void fill_block(UnetFiller& fill, const UnetPart& part, const std::string& at,
                  std::int64_t width) const {
    fill.both(B::norm1, B::norm1_bias, at + "norm1", {width});
    fill.matrix(B::qkv, {at + "attn1.to_q", at + "attn1.to_k", at + "attn1.to_v"},
                {3 * width, width});
    fill.both(B::proj, B::proj_bias, at + "attn1.to_out.0", {width, width});
    fill.both(B::norm2, B::norm2_bias, at + "norm2", {width});
    fill.matrix(B::text_q, {at + "attn2.to_q"}, {width, width});
    fill.both(B::text_proj, B::text_proj_bias, at + "attn2.to_out.0", {width, width});
    fill.both(B::norm3, B::norm3_bias, at + "norm3", {width});
    const std::int64_t raised = rows(part, at + "ff.net.0.proj");
    fill.both(B::up, B::up_bias, at + "ff.net.0.proj", {raised, width});
    fill.both(B::down, B::down_bias, at + "ff.net.2", {width, raised / 2});
  }

  Source add_block(const UnetPart& part, const std::string& path, int index, const Tokens& tokens) {
    using B = UnetTransformer;
    const std::string at = "transformer_blocks." + std::to_string(index) + ".";
    Block text = graph_.add<UnetContext>(path + ".context");
    text.link(UnetContext::x, x_).link(UnetContext::context, context_);
    filler(text, path + ".context", &part)
        .matrix(UnetContext::kv, {at + "attn2.to_k", at + "attn2.to_v"},
                {2 * tokens.width, d_.context});
    Block block = graph_.add<B>(path + ".block");
    block.link(B::tokens, tokens.all)
        .link(B::kv, text[UnetContext::out])
        .set(B::heads, tokens.heads);
    UnetFiller fill = filler(block, path + ".block", &part);
    fill_block<B>(fill, part, at, tokens.width);
    return block[B::out];
  }

  Source add_time_block(const UnetPart& part, const std::string& path, int index,
                        const Tokens& tokens, const Source& places) {
    using B = VideoTransformer;
    const std::string at = "time_stack." + std::to_string(index) + ".";
    const std::int64_t width = tokens.width;
    Block text = graph_.add<VideoContext>(path + ".context");
    text.link(VideoContext::context, context_);
    filler(text, path + ".context", &part)
        .matrix(VideoContext::kv, {at + "attn2.to_k", at + "attn2.to_v"}, {2 * width, d_.context});
    Block block = graph_.add<B>(path + ".block");
    block.link(B::tokens, tokens.all)
        .link(B::places, places)
        .link(B::kv, text[VideoContext::out])
        .set(B::heads, tokens.heads);
    UnetFiller fill = filler(block, path + ".block", &part);
    fill.both(B::norm_in, B::norm_in_bias, at + "norm_in", {width});
    const std::int64_t raised = rows(part, at + "ff_in.net.0.proj");
    fill.both(B::up_in, B::up_in_bias, at + "ff_in.net.0.proj", {raised, width});
    fill.both(B::down_in, B::down_in_bias, at + "ff_in.net.2", {width, raised / 2});
    fill_block<B>(fill, part, at, width);
    fill.slots.fill(B::mix, names_.in_part(part, "time_mixer", "mix_factor"), {1});
    return block[B::out];
  }

  template <class B>
  void add_resample(const UnetPart& part, const std::string& path, const char* module) {
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    if constexpr (std::is_same_v<B, UnetUp>) block.link(B::like, like_);
    filler(block, path, &part).both(B::conv, B::conv_bias, module, {channels_, channels_, 3, 3});
    hidden_ = block[B::out];
  }

  void add_final() {
    using B = UnetOut;
    Block block = graph_.add<B>("final.conv");
    block.link(B::hidden, hidden_).link(B::x, x_);
    UnetFiller fill = filler(block, "final.conv");
    fill.both(B::norm, B::norm_bias, "out.0", {channels_});
    fill.both(B::conv, B::conv_bias, "out.2", {d_.latent, channels_, 3, 3});
    graph_.output("out", block[B::out]);
  }

  const Checkpoint& file_;
  const UnetNames& names_;
  const UnetSizes& d_;
  Blocks& graph_;
  Source x_, context_, vector_;
  Source hidden_, like_;  // what the next block reads; of the size that the next step up gives
  std::int64_t channels_ = 0;
};

}  // namespace

int UnetVideo::match(const Checkpoint& file, const Value&) {
  const std::optional<UnetNames> names = UnetNames::find(file);
  return names && names->mixes_frames() ? 100 : 0;
}

void UnetVideo::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::optional<UnetNames> names = UnetNames::find(file);
  if (!names || !names->mixes_frames())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no UNet of Stable Video Diffusion");
  const UnetSizes sizes = unet_sizes(file, *names);
  VideoBuilder(file, *names, sizes, graph).run();
  add_video_settings(sizes, graph);
}

}  // namespace heddle::denoisers
