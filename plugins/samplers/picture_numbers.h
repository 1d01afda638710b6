// Numbers about a picture or a video that models read beside the text: their input "sizes". One
// call's thread.
#pragma once

#include "concat_input.h"

namespace heddle::samplers {

// What SDXL (6), its refiner (5), Stable Video Diffusion (3) and SV3D (1) are told about the
// picture or the video, as ComfyUI does: where nothing says it, a picture is as large as the
// latent's, whole, and looks good (the negative one: bad). (1, n) f32 in host memory, n by the
// model's settings.
Tensor picture_numbers(Context& ctx, const Value& entry, const Value& settings,
                       const ConcatPlace& place);

}  // namespace heddle::samplers
