// plugins/detection/sam3_calls.h - SAM 3's parts (sam3.h) as nodes call them, with what they see
// and make in host memory, row by row. One call's thread.
#pragma once

#include <memory_resource>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>

#include "plugins/blocks/resample.h"
#include "sam3_mask_math.h"
#include "sam3_prompts.h"

namespace heddle::detection {

// The parts of a MODEL: as its loader made them, for what is told before a run, or, with a context,
// built of the model as it is, with what nodes have added to its weights. Throws where it is none
// of SAM 3.
struct Sam3Parts {
  explicit Sam3Parts(const Value& model, Context* ctx = nullptr);

  // The one that makes masks of prompts. Throws where the file has none.
  Value segmenter() const;
  // One by its name, of those that follow things in videos. Throws where the file has none.
  Value part(const char* name) const;
  std::int64_t mask_side() const { return 4 * grid; }

  // What the tracker of videos has: things of a call and masks of each, rows of its table of times,
  // numbers of a cell; 0 where the file has none.
  struct Tracker {
    std::int64_t slots, masks, memories, channels;
  };
  Value trunk, detector;
  Tracker tracker;
  std::int64_t side, grid, width, text_width, queries;  // side: of pictures, in pixels

 private:
  Value parts_;
};

// What the detector makes of one text, thing by thing.
struct Sam3Found {
  std::vector<float> boxes, scores;  // (Q, 4), parts of the picture; (Q), before a sigmoid
  Tensor masks;                      // (1, Q, M, M), logits
};

class Sam3Calls {
 public:
  Sam3Calls(Context& ctx, const Sam3Parts& parts) : ctx_(ctx), parts_(parts), memory_(ctx) {}

  std::pmr::memory_resource& memory() { return memory_; }
  // Numbers (height, width, inner) in another size.
  Floats resized(const float* from, const blocks::GridSize& size, const blocks::GridSize& to,
                 std::int64_t inner, blocks::Resampling method = blocks::Resampling::bilinear);
  // A part of a picture (height, width, 3), as the trunk sees it.
  Tensor seen(const float* pixels, const blocks::GridSize& size);
  Sam3Found find(const Tensor& hidden, const PromptText& text);
  // What the segmenter is told: what it sees and points in pixels of it.
  Record prompt(const Tensor& hidden, const std::vector<PromptPoint>& points);
  // The mask of a prompt, as logits of the trunk's pictures (side, side). Points are in pixels of
  // these; mask, of as many, or nullptr. ambiguous: the best of three. Where it sees no object all
  // are -1024.
  Floats segment(const Tensor& hidden, const std::vector<PromptPoint>& points, const float* mask,
                 bool ambiguous);

 private:
  Context& ctx_;
  const Sam3Parts& parts_;
  HostMemory memory_;
};

// The inputs of a call of the segmenter, by shapes.
std::vector<Infer::Named> segmenter_shapes(const Sam3Parts& parts, std::int64_t points,
                                           bool has_mask);

}  // namespace heddle::detection
