// plugins/detection/rtdetr_build.h - what builds RT-DETR 4 (rtdetr.h): grids through convolutions
// by their names in the file. One call's thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "rtdetr_blocks.h"

namespace heddle::detection {

inline constexpr std::uint32_t kRtdetrInput = HEDDLE_INPUT_LOOP_INVARIANT;

// Where a grid comes from, and how many channels it has.
struct RtdetrSource {
  Source x;
  std::int64_t channels = 0;
};

class RtdetrBuilder {
 public:
  // at: what all names begin with. All outlive the builder.
  RtdetrBuilder(const Checkpoint& file, const std::string& at, Blocks& graph)
      : file_(file), at_(at), graph_(graph) {}

  const Checkpoint& file() const { return file_; }
  Blocks& graph() const { return graph_; }
  std::string named(const std::string& name) const { return at_ + name; }

  // The convolution "<module>.conv", with the statistics "<module>.bn" where there are some. read:
  // channels from `from` on, 0 being all of them.
  struct Conv {
    std::int64_t stride = 1;
    RtdetrConv::Kind kind = RtdetrConv::plain;
    bool depthwise = false;
    std::int64_t from = 0, read = 0;
    Source residual = {};
  };
  RtdetrSource conv(const std::string& module, const RtdetrSource& x, const Conv& how) const;
  RtdetrSource join(const std::string& path, const std::vector<RtdetrSource>& parts,
                    bool doubles = false) const;

  // HGNetV2: the grids of its last three stages.
  std::vector<RtdetrSource> backbone(const Source& picture) const;
  // The grids, of as many channels each, after each has seen the others.
  std::vector<RtdetrSource> encoder(const std::vector<RtdetrSource>& grids) const;
  // A transformer's self attention called "<at>self_attn", behind which "<at><norm>" normalises.
  Source attend(const std::string& at, const std::string& norm, const Source& x,
                const Source& places, std::int64_t width, std::int64_t heads) const;
  // "<at>linear1" and "<at>linear2" with the norm "<at><norm>" behind them.
  Source feed(const std::string& at, const std::string& norm, const Source& x, std::int64_t width,
              bool gelu) const;
  // A module's weight of this shape, and its bias of as many numbers as the weight has rows.
  void fill(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const std::string& module, const Shape& shape) const;

 private:
  RtdetrSource stem(const Source& picture) const;
  RtdetrSource stage(const std::string& at, const RtdetrSource& x) const;
  RtdetrSource block(const std::string& at, const RtdetrSource& x, bool adds) const;
  RtdetrSource elan(const std::string& at, const RtdetrSource& x) const;
  RtdetrSource csp(const std::string& at, const RtdetrSource& x, std::int64_t from,
                   std::int64_t read) const;
  Source mixed(const RtdetrSource& grid) const;
  void fill_attention(blocks::Slots& slots, const std::string& at, std::int64_t width) const;

  const Checkpoint& file_;
  const std::string& at_;
  Blocks& graph_;
};

// Sets the graph's outputs and returns how many classes there are.
std::int64_t add_rtdetr_decoder(const RtdetrBuilder& maker, const std::vector<RtdetrSource>& grids,
                                std::int64_t queries, std::int64_t heads);

}  // namespace heddle::detection
