// plugins/vae/autoencoder_ltxv_builder.h - the graph of one side of LTX-Video's autoencoder, of
// whole videos or of one stage of pieces of them.
//
// Pieces: a side is cut into stages, behind each block that changes a size, and where pictures are
// large behind each residual block, so that devices may share them (heddle/abi/stages.h). A stage
// is a model of its own over the same weights. A convolution of a decoder that is not causal looks
// one frame ahead, so a stage makes its frames `lag` frames of its input late: of the first piece
// of T frames it makes those of T - lag, of the last one those of T + lag. What its convolutions
// read of earlier pieces goes from the outputs of one call to the inputs of the next, so memory
// does not grow with the number of frames.
//
// Configuration of a stage: piece ("first", "next", "last", "only": of a video of one piece),
// stage (int).
// Inputs   the first stage's: z (1, C, T, h, w) or image (T, H, W, 3); another's: hidden
//          (1, T, H, W, C'); noise.<n> as of the whole decoder
//          kept.<n>  of pieces behind others: what the stage gave as kept.<n> at the piece before
// Outputs  the last stage's: image (T, H, W, 3) f32 or mean (1, C, T, h, w) f32; another's: hidden;
//          kept.<n>  the last one or two frames, shaped as the input it belongs to
// Settings of a stage: piece, a record: lag; more, frames that it makes of one, the first but for
// the very first; fewer, of how many it makes one; axis, that of frames; shapes, a record: of each
// input but noise a list of frames (0: as many as there are), how many times a side of the latent
// is a side of it, and channels. noise_inputs, a list: their names. All inputs are loop-invariant.
#pragma once

#include <heddle/model.hpp>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "autoencoder_ltxv_blocks.h"
#include "autoencoder_ltxv_names.h"
#include "autoencoder_ltxv_options.h"
#include "piece_configs.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {

// The axes of frames.
inline constexpr std::int64_t kLtxvFramesOfZ = 2, kLtxvFramesOfHidden = 1, kLtxvFramesOfImage = 0;

// What a change of size does along each axis, and to how many channels.
struct LtxvResample {
  std::int64_t frames = 2, side = 2, channels = 0;
};

// Keeps the running output and its number of channels. One call's thread.
// Over 15 members: what a walk over a side has come to, and what is told of the stage on its way.
class LtxvVaeBuilder {
 public:
  // piece: none of whole videos.
  LtxvVaeBuilder(const Checkpoint& file, const LtxvVaeNames& names, const LtxvVaeOptions& options,
                 const std::optional<VaePiece>& piece, Blocks& graph)
      : file_(file), names_(names), o_(options), piece_(piece), graph_(graph) {}

  // Both return the number of latent channels. Throw for a stage that is not there.
  std::int64_t decode();
  std::int64_t encode();
  void add_piece_settings();

  std::int64_t downscale() const;
  std::int64_t frame_downscale() const { return frames_; }
  std::int64_t stages() const { return stage_ + 1; }
  // Of a decoder that is told a noise level: planes of noise of each size.
  const std::vector<std::int64_t>& noise_planes() const { return planes_; }

 private:
  struct Shaped {
    std::string name;
    std::int64_t frames, side, channels;
  };

  std::string tensor(const std::string& module, const char* kind) const {
    return names_.one(module + kind);
  }
  bool has(const std::string& name) const { return file_.has(names_.one(name)); }
  std::int64_t size_of(const std::string& module, std::uint32_t axis) const {
    return file_.size(names_.one(module + ".conv.weight"), axis);
  }
  // Whether what comes next is of the graph: all of it, or the stage's.
  bool is_here() const { return !piece_ || piece_->stage == stage_; }
  bool continues() const { return piece_ && !piece_->begins; }

  Source noise_input(const std::string& name);
  Source input(const std::string& name, std::int64_t axis, std::int64_t frames = 0);
  void begin_stage();
  Source framed(const Source& of, std::int64_t axis = 1, std::int64_t more = 0,
                std::int64_t keep = 2);
  std::int64_t own_from() const;

  template <class B>
  void statistics(blocks::Slots& slots, std::int64_t latent) {
    slots.fill(B::mean, names_.means(), {latent});
    slots.fill(B::deviation, names_.deviations(), {latent});
  }
  void filter(blocks::Slots& slots, const std::string& module, const Weight& conv,
              const Weight& bias, std::int64_t out, std::int64_t in) {
    const std::string at = names_.one(module + ".conv.");
    slots.fill(conv, at + "weight", {out, in, 3, 3, 3});
    slots.fill(bias, at + "bias", {out});
  }
  template <class B>
  void conv(blocks::Slots& slots, const std::string& module, std::int64_t out, std::int64_t in) {
    filter(slots, module, B::conv, B::bias, out, in);
  }

  void add_latent_in(std::int64_t latent);
  void add_image_in();
  void add_image_out();
  void add_latent_out();
  bool add_step(const std::string& side, int number, const std::string& behind);
  Source embed_level(const std::string& path, const std::string& module, std::int64_t width);
  void add_resnet(const std::string& module, const Source* embedding);
  void add_halves(const std::string& module, const Source* embedding, std::int64_t out);
  void draw(const std::string& module);
  template <class B>
  void add_shortcut(const std::string& module, blocks::Slots& slots, std::int64_t out);
  LtxvResample resample_of(const std::string& side, int number, const std::string& behind) const;
  void add_upsample(const std::string& module, std::size_t number, const LtxvResample& change);
  void add_gather(const std::string& module, const LtxvResample& change);
  void add_downsample(const std::string& module);
  void finish(const LtxvResample& change);
  void split();
  void end_stage();

  const Checkpoint& file_;
  const LtxvVaeNames& names_;
  const LtxvVaeOptions& o_;
  const std::optional<VaePiece> piece_;
  Blocks& graph_;
  std::int64_t channels_ = 0, frames_ = 1, sides_ = 1, stage_ = 0, changes_ = 0;
  bool is_causal_ = false, is_decoder_ = false;
  Source hidden_, noise_;
  std::vector<std::int64_t> planes_;
  bool has_resnet_ = false;              // the stage, so far
  bool has_noise_ = false;               // of the running size, and the stage
  std::deque<std::string> input_names_;  // which links point into
  // Of the stage.
  std::int64_t lag_ = 0, more_ = 1, fewer_ = 1, kept_ = 0;
  std::vector<Shaped> shapes_;
  std::vector<Value> drawn_;  // names of inputs of noise
};

}  // namespace heddle::vae
