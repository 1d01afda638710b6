// plugins/detection/moge_calls.h - MoGe (moge.h) as a node calls it, with what it sees and makes in
// host memory. One call's thread.
#pragma once

#include <memory_resource>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::detection {

// What a MOGE_MODEL tells of itself. Throws where it is none.
struct MogeModel {
  explicit MogeModel(const Value& value);

  // Squares that a picture of this size is divided into at a level of 0 to 9, and the size of
  // version 1's last layers. Throws where a side is too short for one.
  struct Sizes {
    blocks::GridSize picture, squares, inner, made;
  };
  Sizes sizes(const blocks::GridSize& picture, std::int64_t level) const;
  // The inputs of a call for so many pictures, by shapes.
  std::vector<Infer::Named> shapes(const Sizes& sizes, std::int64_t count) const;

  Value model;
  std::int64_t version, table, patch, growth;
  bool has_normal;
};

// Numbers of a line as weighted sums of others: (T, N) each, tap after tap.
struct LineWeights {
  std::int64_t count;  // N
  std::vector<std::int32_t> ids;
  std::vector<float> shares;
};
// Cubic (a = -0.75) and linear interpolation as PyTorch's interpolate() has them; of DINOv2's table
// by a scale of a tenth of a cell more, as Meta's code has it, or its lines as they are.
LineWeights table_taps(std::int64_t table, std::int64_t count, bool as_it_is);
LineWeights linear_taps(std::int64_t lines, std::int64_t count);

using MogeNumbers = std::pmr::vector<float>;

// What MoGe makes of some pictures, in the sizes that it makes it in.
struct MogeMade {
  MogeNumbers points, mask, normal;  // (B, h, w, 3), (B, h, w), (B, h, w, 3) or empty
  std::vector<float> scale;          // (B), or empty
};

class MogeCalls {
 public:
  MogeCalls(Context& ctx, const MogeModel& model, const MogeModel::Sizes& sizes);

  std::pmr::memory_resource& memory() { return memory_; }
  // pictures (B, H, W, C), C being 3 or more.
  MogeMade look(const Tensor& pictures);
  // Numbers (h, w, inner) as they were made, in the picture's size.
  void enlarge(const float* from, std::int64_t inner, float* to);

 private:
  void put_taps(const std::string& name, const LineWeights& weights);
  void resized(const float* from, const blocks::GridSize& size, const blocks::GridSize& to,
               std::int64_t inner, blocks::Resampling method, float* out);

  Context& ctx_;
  const MogeModel& model_;
  const MogeModel::Sizes& sizes_;
  HostMemory memory_;
  std::vector<std::pair<std::string, Tensor>> lines_;  // inputs, the same for all pictures
};

}  // namespace heddle::detection
