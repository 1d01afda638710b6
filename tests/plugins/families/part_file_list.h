// The published files of parts that families are held against (part_files_test.cpp).
#pragma once

#include <vector>

namespace heddle::test {

// What a loader builds of the tensors behind a prefix.
struct PartReader {
  const char* prefix;
  std::vector<const char*> roles;
  const char* config = "";
};
struct PartFile {
  const char* name;
  std::vector<PartReader> readers;
  const char* of_no_use = "";  // a pattern of names; empty: all are taken
};
inline const PartReader kDenoiserPart{"model.diffusion_model.", {"diffusion_model"}},
    kAutoencoderPart{"first_stage_model.", {"vae.decoder", "vae.encoder"}},
    kVaePart{"vae.", {"vae.decoder", "vae.encoder"}},
    kClipLPart{"text_encoders.clip_l.transformer.", {"text_encoder"}},
    kClipGPart{"text_encoders.clip_g.transformer.", {"text_encoder"}},
    kT5Part{"text_encoders.t5xxl.transformer.", {"text_encoder"}};
inline const std::vector<PartReader> kDenoiserFile{{"", {"diffusion_model"}}},
    kTextFile{{"", {"text_encoder"}}}, kUpsamplerFile{{"", {"latent_upscaler"}}},
    kUpscalerFile{{"", {"upscaler"}}}, kTinyEncoder{{"", {"vae.encoder"}}},
    kTinyDecoder{{"", {"vae.decoder"}}},
    kLtx2Checkpoint{{"", {"diffusion_model"}},
                    {"", {"text_projection"}, R"({"states": 49})"},
                    {"", {"text_connector"}, R"({"least_length": 1024})"},
                    kVaePart,
                    {"audio_vae.", {"audio_vae.decoder", "audio_vae.encoder"}},
                    {"vocoder.", {"vocoder"}}};
inline constexpr const char
    // What upscalers with windows compute by themselves.
    *kDerivedOfWindows =
        R"(.*(relative_position_index.*|attn_mask(_\d)?|rpe_biases|num_batches_tracked))",
    *kDerivedOfSpan = R"(.*eval_conv\.(weight|bias))",
    // Filters that are the same all over, or follow from sizes.
        *kFiltersOfLtx =
            R"(upsampler\.blur_down\.kernel|vocoder\.(.*\.filter|mel_stft\.stft_fn\.inverse_basis))";

// The head of SigLIP's tower makes one vector of a picture, which nobody reads; T5's table of
// tokens stands in its file twice, and a scale is read as the autoencoder is built.
inline const PartFile kPartFiles[] = {
    {"diffusion_models/flux1-dev", kDenoiserFile},
    {"diffusion_models/flux1-schnell", kDenoiserFile},
    {"diffusion_models/flux1-dev-kontext_fp8_scaled", kDenoiserFile},
    {"diffusion_models/flux1-fill-dev", kDenoiserFile},
    {"diffusion_models/flux1-canny-dev", kDenoiserFile},
    {"checkpoints/flux1-dev-fp8", {kDenoiserPart, kVaePart, kClipLPart, kT5Part}},
    {"checkpoints/sd3_medium", {kDenoiserPart, kAutoencoderPart}},
    {"checkpoints/sd3.5_large", {kDenoiserPart, kAutoencoderPart}},
    {"checkpoints/sd3.5_medium", {kDenoiserPart, kAutoencoderPart}},
    {"checkpoints/sd3_medium_incl_clips_t5xxlfp8",
     {kDenoiserPart, kAutoencoderPart, kClipLPart, kClipGPart, kT5Part}},
    {"text_encoders/clip_l", kTextFile},
    {"text_encoders/clip_g", kTextFile},
    {"text_encoders/t5xxl_fp16", kTextFile, R"(shared\.weight)"},
    {"vae/ae", {{"", {"vae.decoder", "vae.encoder"}}}},
    {"clip_vision/sigclip_vision_patch14_384",
     {{"", {"vision_encoder"}}},
     R"(vision_model\.head\..*)"},
    {"style_models/flux1-redux-dev", {{"", {"style_model"}}}},
    {"diffusion_models/humo_17B_fp16", kDenoiserFile},
    {"diffusion_models/hunyuan_video_image_to_video_720p_bf16", kDenoiserFile},
    {"diffusion_models/hunyuan_video_v2_replace_image_to_video_720p_bf16", kDenoiserFile},
    {"diffusion_models/hunyuanvideo1.5_1080p_sr_distilled_fp16", kDenoiserFile},
    {"latent_upscale_models/hunyuanvideo15_latent_upsampler_720p", kUpsamplerFile},
    {"latent_upscale_models/hunyuanvideo15_latent_upsampler_1080p", kUpsamplerFile},
    {"vae_approx/taesd_encoder", kTinyEncoder},
    {"vae_approx/taesd_decoder", kTinyDecoder},
    {"vae_approx/taesdxl_encoder", kTinyEncoder},
    {"vae_approx/taesdxl_decoder", kTinyDecoder},
    {"vae_approx/taesd3_encoder", kTinyEncoder},
    {"vae_approx/taesd3_decoder", kTinyDecoder},
    {"vae_approx/taef1_encoder", kTinyEncoder},
    {"vae_approx/taef1_decoder", kTinyDecoder},
    {"upscale_models/RealESRGAN_x4plus", kUpscalerFile},
    {"upscale_models/RealESRGAN_x4plus_anime_6B", kUpscalerFile},
    {"upscale_models/RealESRGAN_x2plus", kUpscalerFile},
    {"upscale_models/4x-UltraSharp", kUpscalerFile},
    {"upscale_models/realesr-general-x4v3", kUpscalerFile},
    {"upscale_models/001_classicalSR_DF2K_s64w8_SwinIR-M_x4", kUpscalerFile, kDerivedOfWindows},
    {"upscale_models/003_realSR_BSRGAN_DFOWMFC_s64w8_SwinIR-L_x4_GAN", kUpscalerFile,
     kDerivedOfWindows},
    {"upscale_models/Real_HAT_GAN_SRx4", kUpscalerFile, kDerivedOfWindows},
    {"upscale_models/DAT_x4", kUpscalerFile, kDerivedOfWindows},
    {"upscale_models/PLKSR_X4", kUpscalerFile},
    {"upscale_models/4xRealPLKSR", kUpscalerFile},
    {"upscale_models/4xSPANkendata", kUpscalerFile, kDerivedOfSpan},
    {"checkpoints/ltx-video-2b-v0.9 (autoencoder)", {kVaePart}},
    {"checkpoints/ltx-video-2b-v0.9.5 (autoencoder)",
     {kVaePart},
     R"(.*\.timestep_scale_multiplier)"},
    {"checkpoints/ltx-2-19b-dev", kLtx2Checkpoint},
    {"checkpoints/ltx-2.3-22b-dev", kLtx2Checkpoint, kFiltersOfLtx},
    {"latent_upscale_models/ltx-2-spatial-upscaler-x2-1.0", kUpsamplerFile, kFiltersOfLtx},
    {"latent_upscale_models/ltx-2.3-spatial-upscaler-x2-1.1", kUpsamplerFile},
    {"vae/ltx-2.5-audio-vae-bf16",
     {{"audio_vae.", {"audio_vae.decoder", "audio_vae.encoder"}}, {"vocoder.", {"vocoder"}}},
     kFiltersOfLtx},
};

}  // namespace heddle::test
