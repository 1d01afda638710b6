// plugins/denoisers/plugin.cpp - the plugin of the diffusion transformers: a list of families and
// their blocks.
#include "bench_shape.h"
#include "chroma.h"
#include "control.h"
#include "flux.h"
#include "flux2.h"
#include "flux3.h"
#include "flux_style.h"
#include "hunyuan.h"
#include "kept_references.h"
#include "krea2.h"
#include "ltx2.h"
#include "ltx2_connectors.h"
#include "ltxv.h"
#include "minimax.h"
#include "minimax_patch.h"
#include "modules.h"
#include "qwen.h"
#include "qwen21.h"
#include "qwen_fun_control.h"
#include "qwen_patch.h"
#include "radiance_blocks.h"
#include "sd3.h"
#include "seedvr.h"
#include "unet.h"
#include "unet_adapter.h"
#include "unet_adapters.h"
#include "unet_fit.h"
#include "unet_free.h"
#include "unet_gligen.h"
#include "unet_heatmaps.h"
#include "unet_hyper.h"
#include "unet_lora_control.h"
#include "unet_self.h"
#include "unet_union.h"
#include "unet_video.h"
#include "unet_view.h"
#include "wan.h"
#include "wan_animate_blocks.h"
#include "wan_causal_blocks.h"
#include "wan_dancer_blocks.h"
#include "wan_fun_blocks.h"
#include "wan_humo_blocks.h"
#include "wan_motion_block.h"
#include "wan_pose_blocks.h"
#include "wan_scail_blocks.h"
#include "wan_sound_blocks.h"
#include "wan_sources_blocks.h"
#include "wan_talk.h"
#include "wan_talk_blocks.h"
#include "wan_vace_blocks.h"
#include "zimage.h"
#include "zimage_patch.h"

namespace heddle::denoisers {

HEDDLE_PLUGIN(
    "org.heddle.denoisers", "0.1.0", Flux, FluxVector, FluxRope, FluxTextIn, FluxImageIn, FluxWiden,
    FluxDoubleModulation, FluxModulation, FluxDouble, FluxJoin, FluxSingle, FluxKeptDouble,
    FluxKeptSingle, FluxFinal, Flux2, Flux2Vector, Flux2Rope, Flux3, Flux3Vector, Flux3Rope,
    Flux3ReferenceIn, Flux3Join, Flux3Layer, Qwen, QwenControl, FluxControl, Sd3Control, Sd3Single,
    ControlHintIn, ControlHintFilters, ControlAdd, ControlHintZeros, ControlBegin, QwenFunControl,
    ControlModes, ControlOut, QwenVector, QwenRope, QwenTextNorm, ZImage, Lumina2, Sd3, Sd3ImageIn,
    Sd3Joint, ZImageVector, ZImageRope, ZImageTextIn, ZImageImageIn, ZImageModulation, ZImageLayer,
    ZImageJoin, ZImageFinalModulation, ZImageFinal, Krea2, Krea2Vector, Krea2SharedModulation,
    Krea2Modulation, Krea2TextLayer, Krea2Layer, Krea2TextMix, Krea2TextIn, Krea2ImageIn, Krea2Rope,
    Krea2Final, Qwen21, Qwen21Vector, Qwen21Modulation, Qwen21Rope, Qwen21TextIn, Qwen21ImageIn,
    Qwen21Join, Qwen21Layer, Qwen21Final, Chroma, ChromaVector, ChromaLayer, ChromaVectors,
    ChromaModulation, RadianceImageIn, RadianceWaves, RadiancePixelsIn, RadianceNerf, RadianceLevel,
    RadianceFilterFinal, RadianceLinearFinal, ZImageFun, ZImagePictureRows, ZImageControlBegin,
    ZImageControlAdd, QwenDiffsynth, QwenPatchAdd, UsoProjector, FluxStyleTokens, FluxStyleJoin,
    Unet, UnetVector, UnetIn, UnetResnet, UnetTokensIn, UnetTokensOut, UnetContext, UnetSelf,
    UnetSelfIn, UnetFree, UnetShrink, UnetFit, UnetSelfAttended, UnetHyperLayer, UnetHyperAdd,
    UnetSelfNorm, UnetSelfPart, UnetTextPart, UnetAdapterKv, UnetAdapterAttention, UnetTransformer,
    UnetDown, UnetUp, UnetOut, UnetHeatmaps, UnetControl, UnetControlled, UnetHinted, UnetResidual,
    UnetAdapter, UnetAdapterIn, UnetAdapterFilter, UnetAdapterHalve, UnetAdapterResnet,
    UnetAdapterOut, UnetLoraControl, UnetGligenFile, UnetGligenObjects, UnetGligen, UnetUnionKinds,
    UnetUnionFeature, UnetUnionLayer, UnetUnionHint, UnetView, UnetVideo, VideoResnet, VideoPlaces,
    VideoContext, VideoTransformer, Wan, WanVector, WanSharedModulation, WanModulation, WanTextIn,
    WanVisionIn, WanKeys, WanLatentIn, WanRope, WanLayer, WanFinal, WanCameraIn, WanReferenceIn,
    WanFunJoin, WanVaceIn, WanVaceStart, WanVaceAdd, WanPoseAdd, WanPoseVector, WanPoseIn,
    WanPoseRope, WanPoseLayer, WanPosedLayer, WanMotion, WanFaceIn, WanFaceKeys, WanFaceAdd,
    WanSoundIn, WanSoundShift, WanSoundAdd, WanSoundTokens, WanSoundMotion, WanSoundJoin,
    WanSoundRope, WanSoundLayer, WanHumoIn, WanHumoReference, WanHumoJoin, WanHumoLayer, WanScailIn,
    WanScailMasks, WanScailJoin, WanScailRope, WanSourcesIn, WanSourcesJoin, WanSourcesRope,
    WanCausalRope, WanCausalLayer, WanTalkIn, WanTalkRegions, WanTalkLayer, WanMusicIn,
    WanMusicLayer, WanMusicSpread, WanMusicTold, WanMusicAdd, WanVisionJoin, WanDancerLatentIn,
    WanDancerRope, WanDancerFinal, InfiniteTalk, Ltxv, LtxvVector, LtxvModulation, LtxvLatentIn,
    LtxvRope, LtxvLayer, LtxvFinal, Ltx2, Ltx2TextPart, Ltx2AudioIn, Ltx2AudioFinal, Ltx2Rope,
    Ltx2CrossModulation, Ltx2Keys, Ltx2Attend, Ltx2Cross, Ltx2Mlp, Ltx2Connectors, Ltx2Registers,
    Ltx2TextRope, Ltx2TextLayer, Ltx2TextFinish, Minimax, MinimaxVector, MinimaxModulation,
    MinimaxTextIn, MinimaxTextLayer, MinimaxVideoIn, MinimaxSoundIn, MinimaxShownIn, MinimaxJoin,
    MinimaxRope, MinimaxCubes, MinimaxLayer, MinimaxVideoFinal, MinimaxSoundFinal, MinimaxFun,
    MinimaxControlBegin, MinimaxControlAdd, Hunyuan, HunyuanVector, HunyuanTextVector,
    HunyuanRefiner, HunyuanGlyphIn, HunyuanJoin, HunyuanReferenceIn, HunyuanReferenceJoin,
    HunyuanRope, Seedvr, SeedvrVector, SeedvrModulation, SeedvrVideoIn, SeedvrTextIn, SeedvrRope,
    SeedvrLayer, SeedvrVideoOut, SeedvrTexts, Modules, BenchShapes)

}  // namespace heddle::denoisers
