// plugins/detection/sam3_build.h - what the builders of SAM 3's parts have in common: sizes, read
// off the file, and the ways its names tell layers. One call's thread.
#pragma once

#include <optional>
#include <string>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"

namespace heddle::detection {

inline constexpr std::uint32_t kSam3Input = HEDDLE_INPUT_LOOP_INVARIANT;
inline constexpr const char *kSam3Eyes = "detector.backbone.vision_backbone.",
                            *kSam3Words = "detector.backbone.language_backbone.";

struct Sam3Sizes {
  std::int64_t width, mlp, heads, patch, table;  // of the trunk; table: rows of the places' table
  std::int64_t image, window;                    // pixels of a side, cells of a window's side
  int depth;
  std::int64_t channels, text, queries, detector_heads;  // of the detector
  double eps;

  std::int64_t grid() const { return image / patch; }
};
// Throws where they do not fit each other.
Sam3Sizes sam3_sizes(const Checkpoint& file, const Value& config);

// Adds blocks with what their slots hold.
class Sam3Maker {
 public:
  Sam3Maker(const Checkpoint& file, const Sam3Sizes& sizes, Blocks& graph)
      : file_(file), d_(sizes), graph_(graph) {}

  const Checkpoint& file() const { return file_; }
  const Sam3Sizes& sizes() const { return d_; }
  Blocks& graph() const { return graph_; }

  // A module's weight, and its bias of as many numbers as the weight has rows.
  static void fill(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                   const std::string& module, const Shape& shape);
  // A grid of the pyramid named `convs` ("convs"), as often doubled as told, 0 to 2.
  Source level(const std::string& path, const std::string& convs, int doublings,
               const Source& hidden) const;

  // What an attention sees, and how (attention_blocks.h).
  struct Seen {
    Source places = {}, memory = {}, memory_places = {}, bias = {};
    std::int64_t heads;
    bool norm_first, keeps = true;
  };
  // `at`: the attention's name; its three matrices are one tensor, or three.
  Source attend(const std::string& path, const std::string& at, const std::string& norm,
                const Source& x, const Seen& seen) const;
  // The matrices are called up and down; between them there is a ReLU or a GELU.
  struct Fed {
    bool norm_first, gelu = false;
  };
  Source feed(const std::string& path, const std::string& up, const std::string& down,
              const std::string& norm, const Source& x, const Fed& how) const;
  // The head "<at>.layers.0" to 2 of tokens [begin, end) that makes `out` numbers; norm and base
  // may be empty.
  struct Tokens {
    std::int64_t begin, end;
    std::string norm = {};
    Source base = {};
    std::int64_t every = 1, pick = 0;  // of each so many tokens this one
  };
  Source head(const std::string& path, const std::string& at, const Source& x, const Tokens& tokens,
              std::int64_t out) const;

 private:
  const Checkpoint& file_;
  const Sam3Sizes& d_;
  Blocks& graph_;
};

// Sets the graph's outputs.
void add_sam3_detector(const Sam3Maker& maker, const Source& hidden);
// points: instead of masks what follows things in videos keeps of one.
void add_sam3_segmenter(const Sam3Maker& maker, const Source& hidden, bool points = false);
// Whether the file has what a segmenter is made of.
bool has_sam3_segmenter(const Checkpoint& file);

// What the tracker of SAM 3.1 follows and remembers, read off the file.
struct Sam3TrackerSizes {
  std::int64_t slots, masks, times;  // things at once, masks of each, rows of the table of times
};
// Nothing where the file has no tracker of several things at once, as SAM 3's.
std::optional<Sam3TrackerSizes> sam3_tracker_sizes(const Checkpoint& file);
// Set the graph's outputs (sam3.h). Throw where the file has no such tracker.
void add_sam3_tracker(const Sam3Maker& maker, const Source& hidden);
void add_sam3_memory(const Sam3Maker& maker, const Source& hidden);
void add_sam3_mask_logits(const Sam3Maker& maker);
// The outputs "pointers" and "absent" of mask tokens: what the head called `at` makes of them where
// there is a thing, and where there is none.
void add_sam3_pointers(const Sam3Maker& maker, const std::string& path, const std::string& at,
                       const Source& x, const Sam3Maker::Tokens& tokens);

}  // namespace heddle::detection
