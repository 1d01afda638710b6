// plugins/denoisers/unet_patches.h - patches of a UNet: what nodes change inside it, beside its
// weights. They are told in its configuration, "unet_patches", a list in the order of the nodes:
//
// {kind: "free_u", by_mean: bool, b1, b2, s1, s2: floats}                  (unet_free.h)
// {kind: "tiles", tile, swap, depth: ints, deepens: bool}                  (unet_tiles.h)
// {kind: "hypernetwork", prefix, file, function: texts, strength: float,
//  has_norms, ends_in_function: bools}                                     (unet_hyper.h)
// {kind: "merged", ratio: float}: token merging                           (unet_tome.h)
// {kind: "shrink", stage: int, factor, start_percent, end_percent: floats, is_behind: bool,
//  down, up: texts}                                                       (unet_fit.h)
// {kind: "attended"}: the output "attended" of the middle's first attention (unet_self.h)
//
// A UNet has its configuration in the setting "patched_config", so that a node can build it anew
// with one more. Used while a model is built; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::denoisers {

// Factors of the stages whose pictures have four times and twice the channels of the first one.
struct FreeUPatch {
  bool by_mean = false;
  double b1 = 1, b2 = 1, s1 = 1, s2 = 1;
};

// Self-attention of queries in tiles, and the keys beside them.
struct TilesPatch {
  std::int64_t tile = 0;  // least side in the latent's pixels; 0: there is none
  std::int64_t swap = 1, depth = 0;
  bool deepens = false;
};

// A hypernetwork whose file is joined to the UNet's under a prefix.
struct HyperPatch {
  std::string prefix, file;  // its path, for errors
  std::string function = "linear";
  double strength = 1;
  bool has_norms = false, ends_in_function = false;
};

// Stage `stage` of the way down gives a smaller picture. is_behind: what the way up gets of this
// stage is not. Where it is at work is the sampler's matter (plugins/samplers/model_patches.h):
// elsewhere the model is asked without the block "shrink.<n>".
struct ShrinkPatch {
  std::int64_t stage = 0;
  double factor = 1;
  bool is_behind = true;
  std::string down = "bicubic", up = "bicubic";  // methods
};

struct UnetPatches {
  std::vector<FreeUPatch> free_u;
  std::size_t free_u_before_fit = 0;  // that come before the first of `shrinks`
  std::vector<ShrinkPatch> shrinks;
  TilesPatch tiles;
  std::vector<HyperPatch> hypernetworks;
  double merged = 0;  // share of the tokens
  bool tells_attended = false;

  // Throws unsupported at a kind that is not known, and at two that do not go together.
  static UnetPatches of(const Value& config);
};

// A number that follows from a block's path, for what is drawn once for each block.
std::int64_t draw_of(const std::string& path);

}  // namespace heddle::denoisers
