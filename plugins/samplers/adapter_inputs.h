// What a model reads of an IP-Adapter that it carries (plugins/denoisers/unet_adapters.h): tokens
// of the positive or the negative side, and its mask in the size of each place. As
// ComfyUI_IPAdapter_plus: of too few rows the last one serves all other items of a batch. One
// call's thread.
#pragma once

#include <string>

#include <heddle/model.hpp>

#include "attention_pairs.h"

namespace heddle::samplers {

// `path`: of its blocks and inputs; `point` (B, C, h, w).
void add_adapter(Context& ctx, Record& constants, const std::string& path, const Value& adapter,
                 const Value& model, const Shape& point, bool is_negative);
// By shapes; false where something is not known.
bool tell_adapter(Constants& constants, const std::string& path, const Value& adapter,
                  const Value& model, const Shape& point);

}  // namespace heddle::samplers
