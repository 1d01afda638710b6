#include "autoencoder_wan_video.h"

#include <deque>

#include <heddle/abi/stages.h>

#include "autoencoder_kl_blocks.h"
#include "autoencoder_wan_blocks.h"
#include "autoencoder_wan_parts.h"
#include "plugins/blocks/slots.h"
#include "wan_video_blocks.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kFilterFrames = 3;

// Builds one stage: keeps the running output, its channels, its frames and how often its sides are
// halved; of the parts before the stage these alone.
class StageBuilder {
 public:
  StageBuilder(const Checkpoint& file, const WanNames& names, VaeSide side, bool is_first,
               Blocks& graph)
      : file_(file),
        names_(names),
        graph_(graph),
        is_decoder_(side == VaeSide::decoder),
        is_first_(is_first) {}

  void build(std::size_t stage) {
    const std::vector<SidePart> parts =
        parts_of(file_, names_, is_decoder_ ? VaeSide::decoder : VaeSide::encoder);
    if (stage > parts.back().stage)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": there is no stage " + std::to_string(stage) +
                      " of this autoencoder, it has " + std::to_string(parts.back().stage + 1));
    patch_ = wan_patch(file_, names_, is_decoder_ ? VaeSide::decoder : VaeSide::encoder);
    halvings_ = is_decoder_ ? resamples_of(parts) + (patch_ > 1 ? 1 : 0) : 0;
    frames_ = is_decoder_ || is_first_ ? 1 : latent_frames(parts);
    channels_ = is_decoder_ ? file_.size(names_.quant_conv() + ".weight", 1)
                            : file_.size(names_.conv_in() + ".weight", 1) / (patch_ * patch_);
    for (const SidePart& part : parts) {
      if (part.stage > stage) break;
      if (part.stage == stage && shapes_.empty()) begin(part.kind == PartKind::in);
      if (part.stage == stage)
        add(part);
      else
        pass(part);
    }
    if (parts.back().stage > stage) graph_.output("hidden", hidden_);
    graph_.setting("chunk_shapes", list_shapes());
    graph_.setting(HEDDLE_ROUND_STAGE, std::int64_t(stage));
    graph_.setting(HEDDLE_ROUND_INPUT, shapes_.front().name);
  }

 private:
  struct Shaped {
    std::string name;
    std::int64_t frames, halvings, channels;
  };

  // Frames of a video for one of the latent.
  static std::int64_t latent_frames(const std::vector<SidePart>& parts) {
    std::int64_t frames = 1;
    for (const SidePart& part : parts)
      if (!part.time_conv.empty()) frames *= 2;
    return frames;
  }

  Value list_shapes() const {
    Record record;
    for (const Shaped& one : shapes_)
      record.set(one.name,
                 list_of({value_of(one.frames), value_of(one.halvings), value_of(one.channels)}));
    return record.value();
  }

  Source input(const std::string& name, std::int64_t frames) {
    shapes_.push_back({name, frames, halvings_, channels_});
    return graph_.input(input_names_.emplace_back(name).c_str(), HEDDLE_INPUT_LOOP_INVARIANT);
  }
  void begin(bool is_side) {
    hidden_ = input(!is_side ? "hidden" : is_decoder_ ? "z" : "image", frames_);
  }

  // Of the convolution whose input has the running shape: the input that it is given, unless
  // nothing was before, and the output that it leaves.
  void keep(Block& block, const Input<Tensor>& kept, const Output<Tensor>& keeps,
            std::int64_t frames = kFilterFrames - 1) {
    const std::string name = "kept." + std::to_string(kept_++);
    if (!is_first_) block.link(kept, input(name, frames));
    graph_.output(input_names_.emplace_back(name).c_str(), block[keeps]);
  }

  // A causal convolution of `side` x `side` pixels.
  void causal(blocks::Slots& slots, const Weight& filter, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t side) {
    slots.fill(filter, module + ".weight", {out, channels_, kFilterFrames, side, side});
    slots.fill(bias, module + ".bias", {out});
  }
  // A filter of one pixel of one frame.
  void point(blocks::Slots& slots, const Weight& filter, const Weight& bias,
             const std::string& module, std::int64_t out, std::int64_t in) {
    Part part{module + ".weight"};
    part.frame = 1;
    slots.fill(filter, {part}, {out, in, 1, 1, 1});
    slots.fill(bias, module + ".bias", {out});
  }

  std::int64_t width_behind(const SidePart& part) const {
    const auto rows = [&](const std::string& module) {
      const std::string weight = module + ".weight";
      return file_.has(weight) ? file_.size(weight, 0) : channels_;
    };
    switch (part.kind) {
      case PartKind::in:
        return rows(names_.conv_in());
      case PartKind::resnet:
        return rows(names_.in_resnet(part.module).conv1);
      case PartKind::resample:
        return is_decoder_ && !names_.has_levels() ? channels_ / 2 : channels_;
      default:
        return channels_;
    }
  }
  // The shape behind a part.
  void pass(const SidePart& part) {
    channels_ = width_behind(part);
    if (part.kind == PartKind::in && !is_decoder_ && patch_ > 1) ++halvings_;
    if (part.kind != PartKind::resample) return;
    halvings_ += is_decoder_ ? -1 : 1;
    if (!part.time_conv.empty() && !is_first_) frames_ = is_decoder_ ? 2 * frames_ : frames_ / 2;
  }

  void add(const SidePart& part) {
    switch (part.kind) {
      case PartKind::in:
        is_decoder_ ? add_latent_in() : add_image_in();
        break;
      case PartKind::resnet:
        add_resnet(part);
        break;
      case PartKind::attention:
        add_attention(part);
        break;
      case PartKind::resample:
        is_decoder_ ? add_upsample(part) : add_downsample(part);
        break;
      case PartKind::level:
        before_ = hidden_, before_channels_ = channels_;
        break;
      case PartKind::shortcut:
        is_decoder_ ? add_shortcut<WanUpShortcut>(part) : add_shortcut<WanDownShortcut>(part);
        break;
      case PartKind::out:
        is_decoder_ ? add_image_out() : add_latent_out();
        break;
    }
    pass(part);
  }

  void add_latent_in() {
    using B = WanVideoLatentIn;
    Block block = graph_.add<B>("in");
    block.link(B::z, hidden_);
    blocks::Slots slots(file_, block, "in");
    point(slots, B::quant, B::quant_bias, names_.quant_conv(), channels_, channels_);
    causal(slots, B::conv, B::conv_bias, names_.conv_in(),
           file_.size(names_.conv_in() + ".weight", 0), 3);
    keep(block, B::kept, B::keeps);
    hidden_ = block[B::out];
  }

  void add_image_in() {
    using B = WanVideoImageIn;
    if (patch_ > 1) {
      Block patch = graph_.add<WanPatchIn>("in.patch");
      patch.link(WanPatchIn::image, hidden_);
      hidden_ = patch[WanPatchIn::out];
      channels_ *= patch_ * patch_;
      ++halvings_;
    }
    Block block = graph_.add<B>("in");
    block.link(B::image, hidden_);
    blocks::Slots slots(file_, block, "in");
    causal(slots, B::conv, B::conv_bias, names_.conv_in(),
           file_.size(names_.conv_in() + ".weight", 0), 3);
    keep(block, B::kept, B::keeps);
    hidden_ = block[B::out];
    if (patch_ > 1) --halvings_;  // pass() counts it
  }

  void add_resnet(const SidePart& part) {
    using B = WanVideoResnet;
    const WanNames::Resnet modules = names_.in_resnet(part.module);
    const std::int64_t in = channels_, out = width_behind(part);
    Block block = graph_.add<B>(part.path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, part.path);
    slots.fill(B::norm1, modules.norm1, {in, 1, 1, 1});
    causal(slots, B::conv1, B::conv1_bias, modules.conv1, out, 3);
    keep(block, B::kept1, B::keeps1);
    if (out != in) point(slots, B::shortcut, B::shortcut_bias, modules.shortcut, out, in);
    channels_ = out;
    slots.fill(B::norm2, modules.norm2, {out, 1, 1, 1});
    causal(slots, B::conv2, B::conv2_bias, modules.conv2, out, 3);
    keep(block, B::kept2, B::keeps2);
    hidden_ = block[B::out];
  }

  void add_attention(const SidePart& part) {
    using B = WanAttention;
    Block block = graph_.add<B>(part.path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, part.path);
    slots.fill(B::norm, part.module + ".norm.gamma", {channels_, 1, 1});
    slots.fill(B::qkv, part.module + ".to_qkv.weight", {3 * channels_, channels_, 1, 1});
    slots.fill(B::qkv_bias, part.module + ".to_qkv.bias", {3 * channels_});
    slots.fill(B::proj, part.module + ".proj.weight", {channels_, channels_, 1, 1});
    slots.fill(B::proj_bias, part.module + ".proj.bias", {channels_});
    hidden_ = block[B::out];
  }

  // Frames first, then sides.
  void add_upsample(const SidePart& part) {
    if (!part.time_conv.empty()) add_time<WanTimeUpsample>(part, true, 2 * channels_);
    using B = VaeUpsample;
    Block block = graph_.add<B>(part.path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, part.path);
    const std::int64_t out = width_behind(part);
    slots.fill(B::conv, part.module + ".weight", {out, channels_, 3, 3});
    slots.fill(B::conv_bias, part.module + ".bias", {out});
    hidden_ = block[B::out];
  }

  // Sides first, then frames.
  void add_downsample(const SidePart& part) {
    using B = VaeDownsample;
    Block block = graph_.add<B>(part.path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, part.path);
    slots.fill(B::conv, part.module + ".weight", {channels_, channels_, 3, 3});
    slots.fill(B::conv_bias, part.module + ".bias", {channels_});
    hidden_ = block[B::out];
    if (part.time_conv.empty()) return;
    ++halvings_;  // of what the convolution along time keeps
    add_time<WanTimeDownsample>(part, false, channels_);
    --halvings_;
  }

  template <class B>
  void add_time(const SidePart& part, bool doubles, std::int64_t out) {
    const std::string path = part.path + ".time";
    if (is_first_) {
      Block block = graph_.add<WanTimeBegin>(path);
      block.link(WanTimeBegin::hidden, hidden_).set(WanTimeBegin::doubles, doubles);
      graph_.output(input_names_.emplace_back("kept." + std::to_string(kept_++)).c_str(),
                    block[WanTimeBegin::keeps]);
      return;
    }
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    causal(slots, B::conv, B::conv_bias, part.time_conv, out, 1);
    keep(block, B::kept, B::keeps, doubles ? kFilterFrames - 1 : 1);
    hidden_ = block[B::out];
  }

  // Around the level that began with before_. The first chunk's frame is the last of those that a
  // level would make of it.
  template <class B>
  void add_shortcut(const SidePart& part) {
    const std::int64_t frames = part.changes_time ? 2 : 1;
    Block block = graph_.add<B>(part.path);
    block.link(B::hidden, hidden_).link(B::from, before_).set(B::frames, frames);
    block.set(B::whole, !is_first_);
    if constexpr (std::is_same_v<B, WanDownShortcut>)
      block.set(B::size, std::int64_t{part.changes_size ? 2 : 1});
    require_shortcut(file_, part.path, is_decoder_, {before_channels_, channels_, frames});
    hidden_ = block[B::out];
  }

  void add_image_out() {
    using B = WanVideoImageOut;
    Block block = graph_.add<B>("out");
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, "out");
    slots.fill(B::norm, names_.norm_out(), {channels_, 1, 1, 1});
    causal(slots, B::conv, B::conv_bias, names_.conv_out(),
           file_.size(names_.conv_out() + ".weight", 0), 3);
    keep(block, B::kept, B::keeps);
    Source image = block[B::image];
    if (patch_ > 1) {
      Block patch = graph_.add<WanPatchOut>("out.patch");
      patch.link(WanPatchOut::hidden, image);
      image = patch[WanPatchOut::image];
    }
    graph_.output("image", image);
  }

  void add_latent_out() {
    using B = WanVideoLatentOut;
    const std::int64_t moments = file_.size(names_.conv_out() + ".weight", 0);
    Block block = graph_.add<B>("out");
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, "out");
    slots.fill(B::norm, names_.norm_out(), {channels_, 1, 1, 1});
    causal(slots, B::conv, B::conv_bias, names_.conv_out(), moments, 3);
    point(slots, B::quant, B::quant_bias, names_.quant_conv(), moments, moments);
    keep(block, B::kept, B::keeps);
    graph_.output("mean", block[B::mean]);
  }

  const Checkpoint& file_;
  const WanNames& names_;
  Blocks& graph_;
  const bool is_decoder_, is_first_;
  std::int64_t channels_ = 0, frames_ = 1, halvings_ = 0, patch_ = 1, before_channels_ = 0;
  int kept_ = 0;
  Source hidden_, before_;
  std::vector<Shaped> shapes_;           // of inputs
  std::deque<std::string> input_names_;  // where ports' names stay
};

}  // namespace

bool has_videos(const Checkpoint& file, const WanNames& names) {
  const std::string first = names.conv_in() + ".weight";
  return file.has(first) && file.info(first).rank == 5 && file.size(first, 2) == kFilterFrames;
}

void add_video_settings(const Checkpoint& file, const WanNames& names, VaeSide side,
                        Blocks& graph) {
  const std::vector<SidePart> parts = parts_of(file, names, side);
  Record chunks;
  for (const char* chunk : {"first", "next"}) {
    std::vector<Value> stages;
    for (std::size_t stage = 0; stage <= parts.back().stage; ++stage)
      stages.push_back(Record()
                           .set("chunk", value_of(std::string(chunk)))
                           .set("stage", value_of(std::int64_t(stage)))
                           .value());
    chunks.set(chunk, list_of(stages));
  }
  graph.setting("chunk_configs", chunks.value());
  std::int64_t frames = 1;
  for (const SidePart& part : parts)
    if (!part.time_conv.empty()) frames *= 2;
  graph.setting("frame_downscale", frames);
}

bool asks_for_stage(const Value& config) { return config.has("chunk"); }

void build_stage(const Checkpoint& file, const WanNames& names, const Value& config, VaeSide side,
                 Blocks& graph) {
  if (!has_videos(file, names))
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": this autoencoder codes single pictures, not chunks of videos");
  const auto stage = config.get<std::int64_t>("stage", 0);
  if (stage < 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "stage " + std::to_string(stage) + ": it is 0 or more");
  const bool is_first = config.get<std::string>("chunk", "first") == "first";
  StageBuilder(file, names, side, is_first, graph).build(std::size_t(stage));
  graph.setting("family", "autoencoder_wan");
}

}  // namespace heddle::vae
