// What a CONDITIONING tells of guides (LTXVAddGuide): "keyframe_idxs" has [begin, end] for each of
// the latent's last frames, the pictures of the video that it is, counted from 0, or [begin, end,
// f] where a token of it is for f rows and f columns; "guide_attention_entries" a record for each
// guide: frames, strength, is_masked and mask. Any thread.
#pragma once

#include <functional>
#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/entry_shapes.h"

namespace heddle::vae {

struct GuideFields {
  std::vector<Value> keyframes, guides;
};

// Frames of guides that a CONDITIONING tells of.
std::int64_t keyframes_of(const Value& list);
// With more of them behind those that it has.
Value with_guides(const Value& list, const GuideFields& added);
Value without_guides(const Value& list);

// Frames of guides before a run.
std::int64_t told_keyframes(const Infer& question, const Input<Value>& in);
// Tells what `change` makes of them.
void infer_guides(Infer& question, const Input<Value>& in, const Output<Value>& out,
                  const std::function<void(GuideFields&)>& change);

}  // namespace heddle::vae
