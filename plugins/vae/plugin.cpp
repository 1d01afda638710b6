// plugins/vae/plugin.cpp - the plugin of the autoencoders: a list of families and their blocks.
#include "audio_vae.h"
#include "autoencoder_hunyuan.h"
#include "autoencoder_hunyuan15.h"
#include "autoencoder_kl.h"
#include "autoencoder_ltxv.h"
#include "autoencoder_seedvr.h"
#include "autoencoder_wan.h"
#include "h3_sound.h"
#include "h3_video.h"
#include "latent_upsampler.h"
#include "ltx25_decoder.h"
#include "packed_latents.h"
#include "plugins/vae/bernini_node.h"
#include "plugins/vae/hunyuan15_node.h"
#include "plugins/vae/hunyuan15_upsampler.h"
#include "plugins/vae/inpaint_node.h"
#include "plugins/vae/latent_upsampler_nodes.h"
#include "plugins/vae/ltxv_audio_nodes.h"
#include "plugins/vae/ltxv_freeze_node.h"
#include "plugins/vae/ltxv_guide_nodes.h"
#include "plugins/vae/ltxv_iclora_node.h"
#include "plugins/vae/ltxv_nodes.h"
#include "plugins/vae/ltxv_voice_node.h"
#include "plugins/vae/sound_nodes.h"
#include "plugins/vae/tiled_nodes.h"
#include "plugins/vae/vae_bench.h"
#include "plugins/vae/vae_modules.h"
#include "plugins/vae/vae_nodes.h"
#include "plugins/vae/wan22_node.h"
#include "plugins/vae/wan_animate2_node.h"
#include "plugins/vae/wan_animate_node.h"
#include "plugins/vae/wan_causal_node.h"
#include "plugins/vae/wan_dancer_node.h"
#include "plugins/vae/wan_fun_nodes.h"
#include "plugins/vae/wan_humo_node.h"
#include "plugins/vae/wan_nodes.h"
#include "plugins/vae/wan_scail_node.h"
#include "plugins/vae/wan_sound_nodes.h"
#include "plugins/vae/wan_talk_node.h"
#include "plugins/vae/wan_track_nodes.h"
#include "plugins/vae/wan_vace_node.h"
#include "taesd.h"
#include "vocoder.h"
#include "wan_video_blocks.h"

namespace heddle::vae {

HEDDLE_PLUGIN(
    "org.heddle.vae", "0.1.0", AutoencoderKlDecoder, AutoencoderKlEncoder, VaeLatentIn, VaeImageIn,
    VaeResnet, VaeFrames, VaeFramesOut, VaeAttention, VaeUpsample, VaeDownsample, VaeImageOut,
    VaeLatentOut, VaeUnpackLatent, VaePackLatent, AutoencoderWanDecoder, AutoencoderWanEncoder,
    WanResnet, WanAttention, WanUpShortcut, WanDownShortcut, WanPatchIn, WanPatchOut, WanImageOut,
    WanLatentOut, AutoencoderLtxvDecoder, AutoencoderLtxvEncoder, LtxvVaeLatentIn, LtxvVaeImageIn,
    LtxvVaeResnet, LtxvVaeFrames, LtxvVaeHalf, LtxvVaeTime, LtxvVaeUpsample, LtxvVaeDownsample,
    LtxvVaeGather, LtxvVaeImageOut, LtxvVaeLatentOut, Ltx25Decoder, Ltx25LatentIn, Ltx25VaeLayer,
    Ltx25PixelLayer, Ltx25VaeDelay, Ltx25VaeUpsample, Ltx25VaeLevel, Ltx25NoiseIn, Ltx25ImageOut,
    AudioVaeDecoder, AudioVaeEncoder, AudioLatentIn, AudioMelIn, AudioResnet, AudioUpsample,
    AudioDownsample, AudioMelOut, AudioLatentOut, Vocoder, VocoderIn, VocoderConv, VocoderUpsample,
    VocoderSum, VocoderOut, VocoderMel, VocoderWiden, LatentUpsampler, Hunyuan15Upsampler,
    Hunyuan15UpIn, Hunyuan15UpResidual, Hunyuan15UpResnet, Hunyuan15UpOut, LatentUpIn,
    LatentUpResnet, LatentUpGrow, LatentUpFrames, LatentUpOut, WanVideoLatentIn, WanVideoImageIn,
    WanVideoResnet, WanTimeBegin, WanTimeUpsample, WanTimeDownsample, WanVideoImageOut,
    WanVideoLatentOut, AutoencoderH3Decoder, AutoencoderH3Encoder, H3VaeLatentIn, H3VaeLayer,
    H3VaeImageOut, H3VaeImageIn, H3VaeResnet, H3VaeDownsample, H3VaeLatentOut, H3SoundDecoder,
    H3SoundEncoder, H3SoundIn, H3SoundFilters, H3SoundConv, H3SoundUp, H3SoundProject, H3SoundOut,
    AutoencoderHunyuan15Decoder, AutoencoderHunyuan15Encoder, Hunyuan15LatentIn, Hunyuan15ImageIn,
    Hunyuan15Resnet, Hunyuan15Attention, Hunyuan15Upsample, Hunyuan15Downsample, Hunyuan15ImageOut,
    Hunyuan15LatentOut, AutoencoderSeedvrDecoder, AutoencoderSeedvrEncoder, SeedvrVaeLatentIn,
    SeedvrVaeImageIn, SeedvrVaeResnet, SeedvrVaeAttention, SeedvrVaeUpsample, SeedvrVaeHalve,
    SeedvrVaeDownsample, SeedvrVaeImageOut, SeedvrVaeLatentOut, AutoencoderHunyuanDecoder,
    AutoencoderHunyuanEncoder, HunyuanVaeLatentIn, HunyuanVaeImageIn, HunyuanVaeResnet,
    HunyuanVaeAttention, HunyuanVaeUpsample, HunyuanVaeDownsample, HunyuanVaeImageOut,
    HunyuanVaeLatentOut, TaesdDecoder, TaesdEncoder, TaesdLatentIn, TaesdImageIn, TaesdResidual,
    TaesdUpsample, TaesdDownsample, TaesdImageOut, TaesdLatentOut, VaeDecode, VaeEncode,
    VaeDecodeTiled, VaeEncodeTiled, VaeEncodeForInpaint, InpaintModelConditioning,
    InstructPixToPixConditioning, LTXVImgToVideo, LTXVAddGuide, LTXVAddLatentGuide,
    LTXVFreezeLatent, LTXVCropGuides, LTXVImgToVideoInplace, GetICLoRAParameters,
    LTXVReferenceAudio, LTXVAudioVAEDecode, VAEDecodeAudio, VAEEncodeAudio, LTXVAudioVAEEncode,
    LTXVLatentUpsampler, WanImageToVideo, WanFirstLastFrameToVideo, WanFunInpaintToVideo,
    WanFunControlToVideo, WanTrackToVideo, WanMoveTrackToVideo, WanHuMoImageToVideo, ARVideoI2V,
    HunyuanImageToVideo, WanVaceToVideo, WanCameraEmbedding, WanCameraImageToVideo,
    Wan22FunControlToVideo, WanAnimateToVideo, WanAnimate2ToVideo, WanSCAILToVideo,
    BerniniConditioning, WanSoundImageToVideo, WanSoundImageToVideoExtend, WanDancerVideo,
    WanDancerPadKeyframes, WanDancerPadKeyframesList, WanInfiniteTalkToVideo,
    Wan22ImageToVideoLatent, HunyuanVideo15ImageToVideo, HunyuanVideo15SuperResolution, VaeBench,
    VaeModules)

}  // namespace heddle::vae
