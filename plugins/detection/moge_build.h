// plugins/detection/moge_build.h - what the builders of MoGe's parts have in common: names of a
// file, sizes read off its tensors, and blocks with what their slots hold. One call's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"

namespace heddle::detection {

inline constexpr std::uint32_t kMogeInput = HEDDLE_INPUT_LOOP_INVARIANT;

// How a file names DINOv2, and how large that is.
struct DinoNames {
  std::string at;                    // "encoder.backbone."
  bool is_published;                 // else by ComfyUI's names
  std::int64_t width, patch, table;  // table: cells of a side of the table of places
  int depth;

  std::string top(const char* published, const char* other) const {
    return at + (is_published ? published : other);
  }
  std::string layer(int index) const {
    return at + (is_published ? "blocks." : "encoder.layer.") + std::to_string(index) + ".";
  }
};
// Nothing where there is no DINOv2. Throws where its tensors do not fit each other.
std::optional<DinoNames> dino_names(const Checkpoint& file);

// The inputs of a model.
struct MogeInputs {
  Source picture, row_ids, row_shares, column_ids, column_shares, span;
};

// DINOv2 as a model's first part.
class DinoBuilder {
 public:
  // mean, deviation: tensors of a picture's channels. All outlive the builder.
  DinoBuilder(const Checkpoint& file, const DinoNames& names, const MogeInputs& inputs,
              Blocks& graph)
      : file_(file), d_(names), inputs_(inputs), graph_(graph) {}

  // What the layers that are named make, in their order; names are of tensors of the picture's
  // channels.
  std::vector<Source> run(const std::vector<int>& taps, const std::string& mean,
                          const std::string& deviation) const;
  // The sum of the taps' cells, each through a 1x1 convolution called "<projections><number>".
  Source cells(const std::vector<Source>& taps, const std::string& projections) const;
  std::string norm() const { return d_.top("norm", "layernorm"); }

 private:
  Source embed(const std::string& mean, const std::string& deviation) const;
  Source layer(int index, const Source& hidden) const;

  const Checkpoint& file_;
  const DinoNames& d_;
  const MogeInputs& inputs_;
  Blocks& graph_;
};

// A module's weight, and its bias of as many numbers as the weight has rows.
void fill_module(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                 const std::string& module, const Shape& shape);

// The parts of MoGe 2's convolutions.
class MogeStackBuilder {
 public:
  MogeStackBuilder(const Checkpoint& file, const Source& span, Blocks& graph)
      : file_(file), span_(span), graph_(graph) {}

  // Levels of the stack "<name>.": each doubles the one before. `cells`: of the first, which are
  // seen with their view; other levels see their view alone.
  std::vector<Source> neck(const std::string& name, const Source& cells) const;
  // What the last level makes of the neck's levels, of `channels` channels.
  Source head(const std::string& name, const std::vector<Source>& levels,
              std::int64_t channels) const;

  // x and what a residual block called "<at>" adds.
  Source residual(const std::string& path, const std::string& at, const Source& x,
                  std::int64_t channels) const;
  // "<up>" doubles and "<conv>" follows; with the view where `sees`.
  struct Growth {
    std::string up, conv;
    std::int64_t from;
    bool sees = false;
  };
  Source grow(const std::string& path, const Growth& how, const Source& x) const;

 private:
  Source finish_level(const std::string& name, int level, const Source& x) const;
  Source point(const std::string& path, const std::string& module, const Source& x,
               const Source& grid) const;

  const Checkpoint& file_;
  const Source span_;
  Blocks& graph_;
};

// Of a stack of the file: each level makes a picture twice as large. Throws where there are none,
// or too many.
void check_moge_levels(const Checkpoint& file, const std::string& name, int count);

}  // namespace heddle::detection
