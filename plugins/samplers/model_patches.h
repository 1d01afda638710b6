// Model patches that a MODEL carries: blocks of another file that run among its own and read a hint
// (plugins/denoisers/model_patches.h), and IP-Adapters, which read tokens
// (plugins/denoisers/unet_adapters.h); pictures that are shrunk inside a UNet
// (plugins/denoisers/unet_fit.h) and sparse attention (sparse_attention_node.h), which read
// nothing. Each is at work between two levels; elsewhere the model is asked without its blocks. Any
// thread, but for PatchHints, which is one call's.
#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>

#include "noise_levels.h"
#include "told_constants.h"

namespace heddle::samplers {

struct AppliedPatch {
  std::string path;                        // of its blocks
  Value model;                             // the patch's own
  Value image, inpainted, mask, vae = {};  // IMAGE and MASK, or what is told of them; or empty
  double start_percent = 0.0, end_percent = 1.0;
  // Of an IP-Adapter: what the model carries of it (heddle/diffusion/values.h). It has no hint.
  Value adapter = {};
  // Of a patch that hears a sound or sees a style, which is always at work: what it reads as such,
  // and where two speakers are. Tensors in host memory, or what is told of them; or empty.
  Value heard = {}, regions = {};
  // Told as levels in the place of percents: of sparse attention, which reads nothing.
  std::optional<SigmaRange> levels_told = {};

  bool reads() const { return bool(model) || bool(adapter); }
  std::string input() const { return path + ".hint"; }  // of the model
  std::string regions_input() const { return path + ".regions"; }
  // Its blocks, and the values that its hint is made of, are the very same.
  bool has_hint_of(const AppliedPatch& other) const;
  SigmaRange range(const NoiseLevels& levels) const {
    return levels_told ? *levels_told : range_between(levels, start_percent, end_percent);
  }
  bool works_at(const NoiseLevels& levels, double sigma) const {
    return bool(heard) || range(levels).holds(sigma);
  }
};
// In the order in which they were applied.
std::vector<AppliedPatch> patches_applied_to(const Value& model);

// Whether one of them reads something.
bool reads_patches(const Value& model);

// The model with one more, `strength` times. Throws where the patch is not for this model, or lacks
// what it reads.
Value with_model_patch(const Value& model, const AppliedPatch& patch, double strength);

// Throws where a model has patches and the run sees it in a way that does not go together with
// them.
void refuse_with_patches(bool has_windows, bool has_pairs);

// What the model reads of a patch besides, for `cells` (height, width) of the latent and a batch of
// `items`; and the pictures (B, H, W, C) that the autoencoder is shown for it.
struct PatchShapes {
  Shape hint;
  std::vector<Shape> pictures;
  // Numbers that this takes besides, of a video.
  double in_host = 0, on_device = 0;
};
std::optional<PatchShapes> patch_shapes(const AppliedPatch& patch, const Shape& cells,
                                        std::int64_t items);

// The hints of a run.
class PatchHints {
 public:
  explicit PatchHints(Context& ctx) : ctx_(ctx), memory_(ctx) {}
  // `constants` of a model with the hints of its patches, and the tokens of its IP-Adapters, that
  // are at work at this level, for a point (B, C, h, w) of the negative conditioning or another.
  // Calls autoencoders, once for each size of a hint.
  Value added(const Value& constants, const Value& model, const NoiseLevels& levels, double sigma,
              const Shape& point, bool is_negative);

 private:
  Tensor hint(const AppliedPatch& patch, const Value& denoiser, const Shape& point);

  struct Made {
    AppliedPatch patch;
    Shape cells;
    Tensor tensor;
  };
  Context& ctx_;
  HostMemory memory_;
  std::vector<Made> made_;
};

// What an earlier call has been told to encode.
struct ToldPatch {
  AppliedPatch patch;
  Shape cells;
};
// By shapes: adds to the constants of a model, and to the calls those of autoencoders. False where
// something is not known. `told`: of the run.
bool tell_patches(Constants& constants, std::vector<ToldCall>& calls, const Value& model,
                  const NoiseLevels& levels, double sigma, const Shape& point,
                  std::vector<ToldPatch>& told);

}  // namespace heddle::samplers
