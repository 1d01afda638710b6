// plugins/upscalers/plugin.cpp - the plugin of models that make pictures larger: a list of
// families and their blocks.
#include "compact.h"
#include "dat.h"
#include "dat_blocks.h"
#include "esrgan.h"
#include "frame_blocks.h"
#include "plksr.h"
#include "plugins/upscalers/upscale_nodes.h"
#include "plugins/upscalers/upscaler_bench.h"
#include "span.h"
#include "swin_blocks.h"
#include "swinir.h"
#include "windows.h"

namespace heddle::upscalers {

HEDDLE_PLUGIN("org.heddle.upscalers", "0.1.0", Esrgan, EsrganIn, EsrganDense, EsrganTrunk,
              EsrganUpsample, EsrganOut, Compact, CompactLayer, CompactOut, Span, SpanIn, SpanConv,
              SpanJoinedConv, SpanOut, SwinIr, Hat, Dat, DatBias, DatIn, DatWindows, DatChannels,
              DatOut, Plksr, PlkIn, PlkLayer, FrameIn, FrameJoin, FrameConv, FrameOut, SwinLayer,
              OverlapLayer, RelativePlaces, ShiftMasks, ImageUpscaleWithModel, UpscalerBench)

}  // namespace heddle::upscalers
