// plugins/samplers/plugin.cpp - the plugin of the samplers: nodes that draw, their parts, and the
// two kinds that other plugins can add to.
#include "area_nodes.h"
#include "conditioning_nodes.h"
#include "control_nodes.h"
#include "custom_nodes.h"
#include "edit_nodes.h"
#include "empty_latent_nodes.h"
#include "guider_nodes.h"
#include "hook_nodes.h"
#include "hunyuan_upscale_node.h"
#include "ksampler_nodes.h"
#include "kv_cache_node.h"
#include "latent_batch_nodes.h"
#include "latent_math_nodes.h"
#include "latent_nodes.h"
#include "latent_operation_nodes.h"
#include "latent_scale_nodes.h"
#include "latent_size_nodes.h"
#include "latent_transform_nodes.h"
#include "model_patch_nodes.h"
#include "model_sampling_nodes.h"
#include "nag_node.h"
#include "pair_latent_nodes.h"
#include "patch_nodes.h"
#include "prefix_cache_node.h"
#include "property_nodes.h"
#include "radiance_node.h"
#include "random_nodes.h"
#include "sampler_kind.h"
#include "sampler_nodes.h"
#include "schedule_kind.h"
#include "schedule_nodes.h"
#include "seedvr_conditioning.h"
#include "seedvr_nodes.h"
#include "sigma_nodes.h"
#include "skip_layer_nodes.h"
#include "sparse_attention_node.h"
#include "style_patch_node.h"
#include "unet_patch_nodes.h"
#include "upscale_nodes.h"
#include "video_latent_nodes.h"
#include "window_node.h"

namespace heddle::samplers {

HEDDLE_PLUGIN(
    "org.heddle.samplers", "0.1.0", KSampler, KSamplerAdvanced, SamplerCustom,
    SamplerCustomAdvanced, RandomNoise, DisableNoise, KSamplerSelect, SamplerEulerAncestral,
    SamplerEulerAncestralCFGPP, SamplerDPMPP_2S_Ancestral, SamplerLMS, SamplerDPMPP_3M_SDE,
    SamplerDPMPP_2M_SDE, SamplerDPMPP_SDE, SamplerDPMAdaptative, SamplerER_SDE, SamplerSASolver,
    SamplerSEEDS2, SamplerLCM, SamplerLCMUpscale, SamplerEulerCFGpp, SamplerARVideo, BasicGuider,
    CFGGuider, BasicScheduler, BetaSamplingScheduler, KarrasScheduler, ExponentialScheduler,
    PolyexponentialScheduler, LaplaceScheduler, VPScheduler, SDTurboScheduler,
    AlignYourStepsScheduler, OptimalStepsScheduler, GITSScheduler, SplitSigmas, SplitSigmasDenoise,
    FlipSigmas, SetFirstSigma, ModelSamplingFlux, ModelSamplingSD3, ModelSamplingAuraFlow,
    MiniMaxH3SigmaShift, ModelSamplingDiscrete, ModelSamplingContinuousEDM,
    ModelSamplingContinuousV, ModelSamplingLTXV, ModelSamplingStableCascade, ModelNoiseScale,
    LTXVScheduler, Flux2Scheduler, Ideogram4Scheduler, AddNoise, FluxDisableGuidance,
    ReferenceLatent, FluxKontextMultiReferenceLatentMethod, LTXVConditioning, EmptyLatentImage,
    EmptySD3LatentImage, RepeatLatentBatch, LatentFromBatch, SetLatentNoiseMask, LatentUpscale,
    LatentUpscaleBy, HunyuanVideo15LatentUpscaleWithModel, LatentAdd, LatentSubtract,
    LatentMultiply, LatentInterpolate, LatentBlend, LatentComposite, LatentCompositeMasked,
    LatentBatch, LatentConcat, LatentRotate, LatentFlip, LatentCrop, LatentCut, LatentCutToBatch,
    TrimVideoLatent, NormalizeVideoLatentStart, ReplaceVideoLatentFrames, LatentBatchSeedBehavior,
    EmptyFlux2LatentImage, EmptyHunyuanLatentVideo, EmptyARVideoLatent, EmptyHunyuanVideo15Latent,
    EmptyHunyuanImageLatent, EmptyLTXVLatentVideo, EmptyMochiLatentVideo, EmptyCosmosLatentVideo,
    EmptyMiniMaxH3LatentAV, LTXVEmptyLatentAudio, LTXVConcatAVLatent, LTXVSeparateAVLatent,
    GetLatentSize, GetAudioLatentSize, EmptyChromaRadianceLatentImage,
    EmptyQwenImageLayeredLatentImage, FluxGuidance, unCLIPConditioning, SD_4XUpscale_Conditioning,
    ConditioningZeroOut, ConditioningCombine, ConditioningConcat, ConditioningAverage,
    ConditioningSetAreaStrength, ConditioningMultiply, ConditioningSetArea,
    ConditioningSetAreaPercentage, ConditioningSetAreaPercentageVideo, ConditioningSetMask,
    ConditioningSetTimestepRange, ConditioningTimestepsRange, ConditioningSetProperties,
    ConditioningSetPropertiesAndCombine, ConditioningSetDefaultCombine,
    PairConditioningSetProperties, PairConditioningSetPropertiesAndCombine,
    PairConditioningSetDefaultCombine, PairConditioningCombine, DualCFGGuider, DualModelGuider,
    SkipLayerGuidanceDiT, SkipLayerGuidanceDiTSimple, SkipLayerGuidanceSD3,
    PerturbedAttentionGuidance, FreeU, FreeUV2, HyperTile, PatchModelAddDownscale, TomePatchModel,
    SelfAttentionGuidance, NAGuidance, ContextWindowsManual, WanContextWindowsManual,
    LtxvContextWindows, FluxKVCache, WanAnimate2Cache, BlockSparseAttention, ChromaRadianceOptions,
    PerpNegGuider, LTXVDualCFGGuider, RescaleCFG, RenormCFG, PerpNeg, APG, FreSca, ScaleROPE,
    CFGNorm, CFGZeroStar, TCFG, Mahiro, EpsilonScaling, TemporalScoreRescaling,
    VideoLinearCFGGuidance, VideoTriangleCFGGuidance, CFGOverride, DifferentialDiffusion, EasyCache,
    LazyCache, QwenImage21Cache, ExtendIntermediateSigmas, ManualSigmas, SamplingPercentToSigma,
    LatentApplyOperation, LatentApplyOperationCFG, LatentOperationTonemapReinhard,
    LatentOperationSharpen, LatentOperationBlend, BatchLatentsNode, RebatchLatents,
    ResolutionBucket, SeedVR2Conditioning, SeedVR2TemporalChunk, SeedVR2TemporalMerge,
    ImageAddNoise, RandomConditioning, RandomLatent, Discard, CombineHooks2, CombineHooks4,
    CombineHooks8, SetHookKeyframes, CreateHookKeyframe, CreateHookKeyframesInterpolated,
    CreateHookKeyframesFromFloats, ControlNetApply, ControlNetApplyAdvanced, ControlNetApplySD3,
    ControlNetInpaintingAliMamaApply, SetUnionControlNetType, ZImageFunControlnet,
    QwenImageDiffsynthControlnet, USOStyleReference, MiniMaxH3FunControlNetApply, Samplers,
    NoiseSchedules)

}  // namespace heddle::samplers
