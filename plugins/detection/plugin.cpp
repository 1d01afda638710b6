// plugins/detection/plugin.cpp - the plugin of models that find things in pictures, and where
// these lie: a list of families and their blocks.
#include "attention_blocks.h"
#include "dino_blocks.h"
#include "moge.h"
#include "moge_nodes.h"
#include "moge_stack_blocks.h"
#include "rtdetr.h"
#include "rtdetr_blocks.h"
#include "rtdetr_decoder_blocks.h"
#include "rtdetr_nodes.h"
#include "sam3.h"
#include "sam3_detector_blocks.h"
#include "sam3_memory_blocks.h"
#include "sam3_nodes.h"
#include "sam3_segment_blocks.h"
#include "sam3_track_nodes.h"
#include "sam3_trunk_blocks.h"
#include "scail_mask_node.h"

namespace heddle::detection {

HEDDLE_PLUGIN("org.heddle.detection", "0.1.0", Sam3, Attend, FeedForward, TokenHead, MaskProduct,
              Sam3Embed, Sam3Rotation, Sam3Layer, Sam3Level, Sam3Cells, Sam3PromptToken, Sam3Prompt,
              Sam3Queries, Sam3Anchors, Sam3Boxes, Sam3Scores, Sam3Pixels, Sam3MaskPrompt,
              Sam3Points, Sam3Slots, Sam3MaskPixels, Sam3MaskStage, Sam3MaskOnGrid, Sam3Fuse,
              Sam3Memory, Sam3MemoryPlaces, Sam3TurnedAttend, Sam3MemoryAttend, Sam3Normed,
              Sam3Product, Sam3MaskLogits, Sam3Detect, Sam3VideoTrack, Sam3TrackToMask,
              Scail2ColoredMask, Moge, DinoEmbed, DinoLayer, DinoProject, MogeView, MogePoint,
              MogeResidual, MogeGrow, MogeResize, MogeHead, MogeInference, MogeRender,
              MogeGeometryToFov, Rtdetr, RtdetrConv, RtdetrPool, RtdetrJoin, RtdetrCells,
              RtdetrGrid, RtdetrBorder, RtdetrQueries, RtdetrPlaces, RtdetrSample, RtdetrGate,
              RtdetrFirstBoxes, RtdetrBoxes, RtdetrScores, RtdetrDetect)

}  // namespace heddle::detection
