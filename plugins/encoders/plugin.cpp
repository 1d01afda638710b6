// plugins/encoders/plugin.cpp - the plugin of the text encoders: a list of families and their
// blocks.
#include "clip.h"
#include "t5.h"

namespace heddle::encoders {

HEDDLE_PLUGIN("org.heddle.encoders", "0.1.0", Clip, ClipEmbed, ClipLayer, ClipFinish, ClipProject,
              T5, T5Embed, T5Bias, T5Layer, T5Finish)

}  // namespace heddle::encoders
