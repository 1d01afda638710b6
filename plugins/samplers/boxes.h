// Boxes with phrases that entries of a CONDITIONING carry for GLIGEN (heddle/diffusion/values.h).
// A model that is asked with them has the GLIGEN model's attentions among its blocks
// (plugins/denoisers/unet_gligen.h): its file is joined to the model's once a run, and entries
// without boxes are asked of the same model, whose blocks then hand on what they get. As in ComfyUI
// boxes count in parts of what the entry sees, be it an area, and of several GLIGEN models the last
// one has all boxes of an entry. One call's thread.
#pragma once

#include <heddle/model.hpp>

#include "attention_pairs.h"
#include "guide.h"

namespace heddle::samplers {

inline constexpr const char* kGligen = "gligen";
inline bool has_gligen(const Value& entry) { return entry.field(kGligen).has("model"); }

// The model with what an entry, or what is known of one, needs of GLIGEN; the same where it has it.
// Throws where the model takes none, or the two do not fit.
Value with_gligen_of(const Value& model, const Value& entry);
// The guide with such models.
Guide with_boxes(Guide guide);

// What the model reads of an entry's boxes, in cells of a grid (height, width). Throws where the
// model has nothing of their GLIGEN model. ControlNets read nothing of it.
void add_boxes(Context& ctx, Record& constants, const Value& entry, const Value& model,
               const Shape& grid);
// By shapes.
void tell_boxes(Constants& constants, const Value& scope, const Value& model);

}  // namespace heddle::samplers
