// What models of LTX-Video and LTX 2 are told of guides (LTXVAddGuide): at which pictures of the
// video the latent's last frames stand, which places of the latent are tokens, and how much tokens
// of guides are attended to. One call's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conditioning.h"

namespace heddle::samplers {

inline constexpr const char* kTokenRows = "token_rows";
inline constexpr const char* kTokenPlaces = "token_places";
inline constexpr const char* kGuideWeights = "guide_weights";
// The field of an entry with a record for each guide: frames, of the latent; strength; is_masked,
// and where it is, mask (frames, height, width).
inline constexpr const char* kGuideEntries = "guide_attention_entries";

// Frames, rows and columns of the latent of a video, also of one with sound.
Shape video_grid(const ConcatPlace& place);

// The tokens of the latent of a video whose last frames are those of the guides that an entry tells
// of. A guide of a factor f has one for f rows and f columns, at the first of them. Immutable.
class GuideTokens {
 public:
  // grid: of video_grid(). Throws where the guides do not fit.
  GuideTokens(const Value& entry, const Shape& grid);

  std::int64_t frames() const { return std::int64_t(factors_.size()); }
  std::int64_t factor(std::int64_t frame) const { return factors_[std::size_t(frame)]; }
  bool is_token(std::int64_t frame, std::int64_t row, std::int64_t column) const {
    return row % factor(frame) == 0 && column % factor(frame) == 0;
  }
  std::int64_t in_frame(std::int64_t frame) const {
    return rows_ / factor(frame) * (columns_ / factor(frame));
  }
  std::int64_t count() const;      // of all frames
  std::int64_t of_guides() const;  // of these
  // Into parts of so many each frame can be divided: of those of the fewest, one.
  std::int64_t part() const;
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }

 private:
  std::vector<std::int64_t> factors_;  // of each frame
  std::int64_t guides_ = 0, rows_ = 0, columns_ = 0;
};

// The kind of such an input; none: it is another one.
std::optional<ConditioningInput::Kind> guide_input_kind(const std::string& name);
bool is_guide_input(ConditioningInput::Kind kind);
// Whether the model is given it for an entry.
bool is_guide_given(ConditioningInput::Kind kind, const Value& entry);
heddle_dtype guide_input_type(ConditioningInput::Kind kind);
Shape guide_input_shape(ConditioningInput::Kind kind, const Value& entry, const Shape& grid);
Tensor guide_input_of(Context& ctx, ConditioningInput::Kind kind, const Value& entry,
                      const ConcatPlace& place);

}  // namespace heddle::samplers
