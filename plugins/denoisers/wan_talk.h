// plugins/denoisers/wan_talk.h - InfiniteTalk and MultiTalk, a model patch of Wan 2.1
// (model_patches.h): one or two speakers' sound, at which each layer's tokens look behind the text.
// Source of the architecture: the publishers' multitalk_model, as ComfyUI runs it.
//
// "patch.<n>.hint" is (P, M, N): of P speakers M moments, four for each frame of the latent and
// one, of N numbers, the setting moment_numbers. Of two there is "patch.<n>.regions" (2, S + 1)
// beside it, where they are (wan_talk_blocks.h).
//
// Blocks of "patch.<n>": hint, regions. The layers are WanTalkLayers. Used while a graph is built;
// any thread.
#pragma once

#include <heddle/model.hpp>

#include "model_patches.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanTalk {
 public:
  // All arguments outlive this object. `file`: both joined. Throws what is wrong with the patch.
  WanTalk(const Checkpoint& file, const ModelPatch& patch, const WanSizes& sizes, Blocks& graph,
          const Source& x);
  // Fills what a WanTalkLayer has besides.
  void add_to(Block& block, const std::string& path, int layer) const;

 private:
  const Checkpoint& file_;
  const ModelPatch& patch_;
  const WanSizes& s_;
  const Source x_;
  Source heard_, marks_, shares_;
  std::int64_t context_ = 0;  // numbers of a token of the sound
};

// Throws where a model of these sizes takes no patches, or so many.
void check_wan_patches(const WanSizes& sizes, const std::vector<ModelPatch>& patches);

// A patch's file by itself: what of it turns moments into tokens, and settings for who applies it.
struct InfiniteTalk {
  static constexpr Family family{"wan-infinite-talk", kPatchRole, 1,
                                 "InfiniteTalk and MultiTalk: speakers for Wan 2.1, a model patch"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
