#include "autoencoder_ltxv_builder.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kCellSide = 4, kCellNumbers = 3 * kCellSide * kCellSide;

}  // namespace

std::int64_t LtxvVaeBuilder::downscale() const { return kCellSide * sides_; }

std::int64_t LtxvVaeBuilder::decode() {
  is_decoder_ = true;
  is_causal_ = o_.is_causal;
  const std::int64_t latent = size_of("conv_in", 1);
  if (is_here()) add_latent_in(latent);
  channels_ = size_of("conv_in", 0);
  for (int i = 0; add_step("up_blocks.", i, "conv_out"); ++i) continue;
  if (is_here()) add_image_out();
  return latent;
}

std::int64_t LtxvVaeBuilder::encode() {
  is_causal_ = true;
  if (is_here()) add_image_in();
  channels_ = size_of("conv_in", 0);
  for (int i = 0; add_step("down_blocks.", i, "conv_out"); ++i) continue;
  if (is_here()) add_latent_out();
  return size_of("conv_out", 0) - 1;
}

void LtxvVaeBuilder::add_latent_in(std::int64_t latent) {
  using B = LtxvVaeLatentIn;
  channels_ = latent;
  // No HEDDLE_INPUT_BATCH: what is made has a row for each frame, not for each video.
  const Source z =
      piece_ ? input("z", kLtxvFramesOfZ) : graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT);
  const Source seen = framed(z, kLtxvFramesOfZ);
  Block in = graph_.add<B>("in");
  in.link(B::z, seen).set(B::causal, is_causal_).set(B::mirrors, o_.mirrors);
  in.set(B::framed, piece_.has_value());
  // Of pieces, whoever calls mixes it in.
  if (o_.reads_level && !piece_)
    in.link(B::noise, noise_input("noise")).set(B::noise_share, o_.noise_share);
  blocks::Slots slots(file_, in, "in");
  statistics<B>(slots, latent);
  conv<B>(slots, "conv_in", size_of("conv_in", 0), latent);
  hidden_ = in[B::out];
}

void LtxvVaeBuilder::add_image_in() {
  using B = LtxvVaeImageIn;
  channels_ = kCellNumbers / (kCellSide * kCellSide);
  const Source image = piece_ ? input("image", kLtxvFramesOfImage)
                              : graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT);
  const Source seen = framed(image, kLtxvFramesOfImage);
  Block in = graph_.add<B>("in");
  in.link(B::image, seen).set(B::mirrors, o_.mirrors).set(B::framed, piece_.has_value());
  blocks::Slots slots(file_, in, "in");
  conv<B>(slots, "conv_in", size_of("conv_in", 0), kCellNumbers);
  hidden_ = in[B::out];
}

void LtxvVaeBuilder::add_image_out() {
  using O = LtxvVaeImageOut;
  const Source seen = framed(hidden_);
  Block out = graph_.add<O>("out");
  out.link(O::hidden, seen).set(O::causal, is_causal_).set(O::mirrors, o_.mirrors);
  out.set(O::framed, piece_.has_value());
  blocks::Slots slots(file_, out, "out");
  if (has("last_scale_shift_table")) {
    out.link(O::embedding, embed_level("out.level", "last_time_embedder", 2 * channels_));
    slots.fill(O::table, names_.one("last_scale_shift_table"), {2, channels_});
  }
  conv<O>(slots, "conv_out", kCellNumbers, channels_);
  graph_.output("image", out[O::image]);
}

void LtxvVaeBuilder::add_latent_out() {
  using O = LtxvVaeLatentOut;
  const std::int64_t moments = size_of("conv_out", 0);
  const Source seen = framed(hidden_);
  Block out = graph_.add<O>("out");
  out.link(O::hidden, seen).set(O::mirrors, o_.mirrors).set(O::framed, piece_.has_value());
  blocks::Slots slots(file_, out, "out");
  statistics<O>(slots, moments - 1);
  conv<O>(slots, "conv_out", moments, channels_);
  graph_.output("mean", out[O::out]);
  if (!piece_) graph_.output("logvar", out[O::logvar]);
}

// In the original order: residual blocks, several or one that changes the number of channels, and
// between them what changes the size. False where there is no such step. behind: the convolution
// that follows the last one.
bool LtxvVaeBuilder::add_step(const std::string& side, int number, const std::string& behind) {
  const std::string module = side + std::to_string(number), first = module + ".res_blocks.0";
  if (has(first + ".conv1.conv.weight")) {
    Source embedding;
    const bool is_told = has(module + ".time_embedder.timestep_embedder.linear_1.weight");
    std::int64_t told = -1;  // the stage that has it
    for (int k = 0; has(module + ".res_blocks." + std::to_string(k) + ".conv1.conv.weight"); ++k) {
      split();
      if (is_told && is_here() && (told < 0 || (piece_ && told != stage_))) {
        embedding = embed_level(module + ".level", module + ".time_embedder", 4 * channels_);
        told = stage_;
      }
      add_resnet(module + ".res_blocks." + std::to_string(k), is_told ? &embedding : nullptr);
    }
  } else if (has(module + ".conv1.conv.weight")) {
    split();
    add_resnet(module, nullptr);
  } else if (has(module + ".conv.conv.weight")) {
    const LtxvResample change = resample_of(side, number, behind);
    is_decoder_ ? add_upsample(module, std::size_t(number), change) : add_gather(module, change);
  } else if (has(module + ".conv.weight")) {
    add_downsample(module);
  } else {
    return false;
  }
  return true;
}

Source LtxvVaeBuilder::embed_level(const std::string& path, const std::string& module,
                                   std::int64_t width) {
  using B = LtxvVaeTime;
  Block block = graph_.add<B>(path);
  block.set(B::level, o_.level).set(B::scale, o_.level_scale);
  blocks::Slots slots(file_, block, path);
  const std::string at = module + ".timestep_embedder.";
  const std::int64_t waves = file_.size(names_.one(at + "linear_1.weight"), 1);
  slots.fill(B::in, names_.one(at + "linear_1.weight"), {width, waves});
  slots.fill(B::in_bias, names_.one(at + "linear_1.bias"), {width});
  slots.fill(B::last, names_.one(at + "linear_2.weight"), {width, width});
  slots.fill(B::last_bias, names_.one(at + "linear_2.bias"), {width});
  return block[B::out];
}

void LtxvVaeBuilder::add_resnet(const std::string& module, const Source* embedding) {
  using B = LtxvVaeResnet;
  const std::int64_t out = size_of(module + ".conv1", 0);
  draw(module);
  if (is_here() && piece_) {
    add_halves(module, embedding, out);
  } else if (is_here()) {
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_).set(B::causal, is_causal_).set(B::mirrors, o_.mirrors);
    blocks::Slots slots(file_, block, module);
    if (embedding != nullptr) {
      block.link(B::embedding, *embedding);
      slots.fill(B::table, tensor(module, ".scale_shift_table"), {4, channels_});
    }
    if (has(module + ".per_channel_scale1")) {
      slots.fill(B::scale1, tensor(module, ".per_channel_scale1"), {out, 1, 1});
      slots.fill(B::scale2, tensor(module, ".per_channel_scale2"), {out, 1, 1});
      block.link(B::noise, noise_).set(B::plane, planes_.back() - 2);
    }
    filter(slots, module + ".conv1", B::conv1, B::bias1, out, channels_);
    filter(slots, module + ".conv2", B::conv2, B::bias2, out, out);
    if (out != channels_) add_shortcut<B>(module, slots, out);
    hidden_ = block[B::out];
  }
  channels_ = out;
}

// Each convolution with what it keeps; the input, too, stands still until the second one has gone
// through, and is read out of what the first one does.
void LtxvVaeBuilder::add_halves(const std::string& module, const Source* embedding,
                                std::int64_t out) {
  using B = LtxvVaeHalf;
  const std::int64_t in = channels_;
  const Source given = framed(hidden_);
  for (const int nth : {0, 1}) {
    const std::string number = std::to_string(nth + 1), path = module + ".half" + number;
    const Source seen = nth == 0 ? given : framed(hidden_);
    Block block = graph_.add<B>(path);
    block.link(B::hidden, seen).set(B::nth, std::int64_t{nth}).set(B::mirrors, o_.mirrors);
    blocks::Slots slots(file_, block, path);
    if (embedding != nullptr) {
      block.link(B::embedding, *embedding);
      slots.fill(B::table, tensor(module, ".scale_shift_table"), {4, in});
    }
    if (has(module + ".per_channel_scale1")) {
      slots.fill(B::scale, names_.one(module + ".per_channel_scale" + number), {out, 1, 1});
      block.link(B::noise, noise_).set(B::plane, planes_.back() - 2 + nth);
    }
    filter(slots, module + ".conv" + number, B::conv, B::bias, out, nth == 0 ? in : out);
    if (nth == 1) {
      block.link(B::base, given).set(B::from, own_from());
      channels_ = in;
      if (out != in) add_shortcut<B>(module, slots, out);
    }
    channels_ = out;
    hidden_ = block[B::out];
  }
}

// Two planes of noise for a residual block that draws.
void LtxvVaeBuilder::draw(const std::string& module) {
  if (!has(module + ".per_channel_scale1")) return;
  while ((std::int64_t{1} << planes_.size()) <= sides_) {
    planes_.push_back(0);
    has_noise_ = false;
  }
  if (is_here() && !has_noise_) {
    noise_ = noise_input("noise." + std::to_string(planes_.size() - 1));
    has_noise_ = true;
  }
  planes_.back() += 2;
}

// The norm and the filter are called differently in the versions' files.
template <class B>
void LtxvVaeBuilder::add_shortcut(const std::string& module, blocks::Slots& slots,
                                  std::int64_t out) {
  slots.fill(B::norm, tensor(module, ".norm3.norm.weight"), {channels_});
  slots.fill(B::norm_bias, tensor(module, ".norm3.norm.bias"), {channels_});
  Part point{tensor(module, ".conv_shortcut.weight")};
  point.frame = 1;
  slots.fill(B::shortcut, {point}, {out, channels_, 1, 1, 1});
  slots.fill(B::shortcut_bias, tensor(module, ".conv_shortcut.bias"), {out});
}

// From the channels that follow: those of the next filter.
LtxvResample LtxvVaeBuilder::resample_of(const std::string& side, int number,
                                         const std::string& behind) const {
  const std::string module = side + std::to_string(number),
                    next = side + std::to_string(number + 1);
  const std::int64_t made = size_of(module + ".conv", 0);
  LtxvResample change;
  change.channels =
      size_of(has(next + ".res_blocks.0.conv1.conv.weight") ? next + ".res_blocks.0.conv1"
              : has(next + ".conv1.conv.weight")            ? next + ".conv1"
                                                            : behind,
              1);
  const std::int64_t whole = is_decoder_ ? made : change.channels,
                     part = is_decoder_ ? change.channels : made;
  const std::int64_t count = part > 0 && whole % part == 0 ? whole / part : 0;
  if (count == 2)
    change.side = 1;
  else if (count == 4)
    change.frames = 1;
  else if (count != 8)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": '" + names_.one(module + ".conv.conv.weight") + "' makes " +
                    std::to_string(made) + " channels where " + std::to_string(change.channels) +
                    " follow. One has to be 2, 4 or 8 times the other. The file is damaged or of "
                    "another model.");
  if (channels_ * count % change.channels != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": '" + names_.one(module + ".conv.conv.weight") + "' reads " +
                    std::to_string(channels_) + " channels, which do not divide into " +
                    std::to_string(change.channels) + ". The file is damaged or of another model.");
  return change;
}

void LtxvVaeBuilder::add_upsample(const std::string& module, std::size_t number,
                                  const LtxvResample& change) {
  using B = LtxvVaeUpsample;
  if (!is_here()) return finish(change);
  const std::int64_t count = change.frames * change.side * change.side;
  const Source seen = framed(hidden_);
  Block block = graph_.add<B>(module);
  block.link(B::hidden, seen).set(B::causal, is_causal_).set(B::mirrors, o_.mirrors);
  block.set(B::frames, change.frames).set(B::side, change.side);
  block.set(B::framed, piece_.has_value()).set(B::continues, continues());
  // Where nothing is told: decoders that halve the channels do.
  const bool adds = o_.residual(number).value_or(change.channels < channels_);
  if (adds && (channels_ % count != 0 || change.channels % (channels_ / count) != 0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": " + module + " shall add " + std::to_string(channels_) +
                    " channels of its input to " + std::to_string(change.channels) +
                    " of twice the size, which do not divide. Check the config in the file's "
                    "metadata.");
  block.set(B::residual, adds);
  blocks::Slots slots(file_, block, module);
  conv<B>(slots, module + ".conv", count * change.channels, channels_);
  hidden_ = block[B::out];
  finish(change);
}

void LtxvVaeBuilder::add_gather(const std::string& module, const LtxvResample& change) {
  using B = LtxvVaeGather;
  if (!is_here()) return finish(change);
  const Source seen = framed(hidden_, kLtxvFramesOfHidden, change.frames - 1);
  Block block = graph_.add<B>(module);
  block.link(B::hidden, seen).set(B::mirrors, o_.mirrors);
  block.set(B::frames, change.frames).set(B::side, change.side);
  block.set(B::framed, piece_.has_value());
  blocks::Slots slots(file_, block, module);
  conv<B>(slots, module + ".conv", change.channels / (change.frames * change.side * change.side),
          channels_);
  hidden_ = block[B::out];
  finish(change);
}

void LtxvVaeBuilder::add_downsample(const std::string& module) {
  using B = LtxvVaeDownsample;
  const LtxvResample change{2, 2, channels_};
  if (!is_here()) return finish(change);
  const Source seen = framed(hidden_, kLtxvFramesOfHidden, 0, 1);
  Block block = graph_.add<B>(module);
  block.link(B::hidden, seen).set(B::mirrors, o_.mirrors).set(B::framed, piece_.has_value());
  blocks::Slots slots(file_, block, module);
  conv<B>(slots, module, channels_, channels_);
  hidden_ = block[B::out];
  finish(change);
}

}  // namespace heddle::vae
