// The published files that families are held against (true_files_test.cpp).
#pragma once

#include <vector>

#include "tests/support/true_files.h"

namespace heddle::test {

struct TrueFile {
  const char* name;
  std::vector<const char*> roles;
  const char* of_no_use;  // a pattern of names; empty: all are taken
};
// lm_head writes texts; tekken_model, spiece_model, tokenizer_json: tokenizers; a projection is for
// a text encoder, by a loader; convolutions between frames need several; filters are the same all
// over; a scale goes with its matrix; control_type tells hints' kind; mask_token is for training.
inline const TrueFile kTrueFiles[] = {
    {"diffusion_models/qwen_image_fp8_e4m3fn", {"diffusion_model"}, ""},
    {"diffusion_models/qwen_image_2512_fp8_e4m3fn", {"diffusion_model"}, ""},
    {"diffusion_models/qwen_image_layered_bf16", {"diffusion_model"}, ""},
    {"text_encoders/qwen_2.5_vl_7b_fp8_scaled",
     {"text_encoder", "vision_encoder"},
     R"(lm_head\.weight|scaled_fp8|.*\.scale_weight)"},
    {"vae/qwen_image_vae", {"vae.decoder", "vae.encoder"}, kBetweenFrames},
    {"vae/qwen_image_layered_vae", {"vae.decoder", "vae.encoder"}, kBetweenFrames},
    {"vae/wan_2.1_vae", {"vae.decoder", "vae.encoder"}, kBetweenFrames},
    {"diffusion_models/wan2.1_t2v_1.3B_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_t2v_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.1_i2v_480p_14B_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_i2v_720p_14B_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_flf2v_720p_14B_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_vace_1.3B_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_vace_14B_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_fun_control_1.3B_bf16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_fun_camera_v1.1_1.3B_bf16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_fun_camera_v1.1_14B_bf16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.1_14B_SCAIL_2_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/wan2.2_fun_control_high_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_fun_control_low_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_animate_14B_bf16", {"diffusion_model"}, R"(.*\.kernel)"},
    {"diffusion_models/wan2.2_s2v_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_dancer_14b_global_fp8_scaled", {"diffusion_model"}, kDance},
    {"diffusion_models/wan2.2_t2v_high_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_t2v_low_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_i2v_high_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_i2v_low_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_fun_inpaint_high_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_fun_inpaint_low_noise_14B_fp8_scaled", {"diffusion_model"}, kFp8},
    {"diffusion_models/wan2.2_ti2v_5B_fp16", {"diffusion_model"}, ""},
    {"vae/wan2.2_vae", {"vae.decoder", "vae.encoder"}, kBetweenFrames},
    {"diffusion_models/hunyuanvideo1.5_720p_t2v_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/hunyuanvideo1.5_720p_i2v_fp16", {"diffusion_model"}, ""},
    {"diffusion_models/hunyuan_video_t2v_720p_bf16", {"diffusion_model"}, ""},
    {"vae/hunyuanvideo15_vae_fp16", {"vae.decoder", "vae.encoder"}, ""},
    {"vae/hunyuan_video_vae_bf16", {"vae.decoder", "vae.encoder"}, ""},
    {"diffusion_models/seedvr2_3b_fp16", {"diffusion_model"}, kBesideSeedvr},
    {"diffusion_models/seedvr2_7b_fp16", {"diffusion_model"}, kBesideSeedvr},
    {"vae/seedvr2_ema_vae_fp16", {"vae.decoder", "vae.encoder"}, ""},
    {"text_encoders/byt5_small_glyphxl_fp16", {"text_encoder"}, ""},
    {"text_encoders/llava_llama3_fp8_scaled", {"text_encoder"}, kFp8},
    {"text_encoders/umt5_xxl_fp8_e4m3fn_scaled",
     {"text_encoder"},
     R"(spiece_model|scaled_fp8|.*\.scale_weight)"},
    {"text_encoders/umt5_xxl_fp16", {"text_encoder"}, "spiece_model"},
    {"diffusion_models/z_image_turbo_bf16", {"diffusion_model"}, ""},
    {"diffusion_models/z_image_bf16", {"diffusion_model"}, ""},
    {"text_encoders/qwen_3_4b", {"text_encoder"}, ""},
    {"diffusion_models/flux-2-klein-4b", {"diffusion_model"}, ""},
    {"diffusion_models/flux-2-klein-base-4b", {"diffusion_model"}, ""},
    {"diffusion_models/flux-2-klein-base-4b-fp8", {"diffusion_model"}, R"(.*\.weight_scale)"},
    {"diffusion_models/flux-2-klein-base-9b-fp8", {"diffusion_model"}, R"(.*\.weight_scale)"},
    {"diffusion_models/flux2_dev_fp8mixed", {"diffusion_model"}, R"(.*\.weight_scale)"},
    {"diffusion_models/flux3-image-klein", {"diffusion_model"}, ""},
    {"diffusion_models/flux3-image-klein-base", {"diffusion_model"}, ""},
    {"text_encoders/qwen_3_8b_fp8mixed", {"text_encoder"}, R"(lm_head\.weight|.*\.weight_scale)"},
    {"text_encoders/mistral_3_small_flux2_bf16", {"text_encoder"}, "tekken_model"},
    {"text_encoders/mistral_3_small_flux2_fp8",
     {"text_encoder"},
     R"(tekken_model|.*\.weight_scale)"},
    {"diffusion_models/lumina_2_model_bf16", {"diffusion_model"}, R"(norm_final\.weight)"},
    {"text_encoders/gemma_2_2b_fp16", {"text_encoder"}, "spiece_model"},
    {"text_encoders/gemma_3_12B_it", {"text_encoder", "vision_encoder"}, "spiece_model"},
    {"text_encoders/gemma4_e2b_it_bf16", {"text_encoder", "vision_encoder"}, kBesideGemma4},
    {"text_encoders/gemma4-12b-with-proj-ltx-2.5-bf16",
     {"text_encoder", "vision_encoder"},
     R"(tokenizer_json|hf_asset__.*|audio_projector\..*|text_embedding_projection\..*)"},
    {"diffusion_models/Chroma1-HD-fp8mixed", {"diffusion_model"}, R"(.*\.weight_scale)"},
    {"diffusion_models/chroma-radiance-x0", {"diffusion_model"}, "__x0__"},
    {"diffusion_models/krea2_turbo_fp8_scaled", {"diffusion_model"}, R"(.*\.weight_scale)"},
    {"text_encoders/qwen3vl_4b_fp8_scaled",
     {"text_encoder", "vision_encoder"},
     R"(.*\.weight_scale)"},
    {"diffusion_models/qwen_image_2.1_bf16", {"diffusion_model"}, ""},
    {"text_encoders/qwen3vl_8b_bf16", {"text_encoder", "vision_encoder"}, R"(lm_head\.weight)"},
    {"text_encoders/qwen3vl_32b_bf16", {"text_encoder", "vision_encoder"}, R"(lm_head\.weight)"},
    {"text_encoders/qwen3.5_9b_bf16", {"text_encoder", "vision_encoder"}, R"(lm_head\.weight)"},
    {"text_encoders/qwen3.5_4b_bf16", {"text_encoder", "vision_encoder"}, ""},
    {"vae/qwen_image_2.1_vae_bf16", {"vae.decoder", "vae.encoder"}, kBetweenFrames},
    {"diffusion_models/ltx-video-2b-v0.9", {"diffusion_model"}, ""},
    {"diffusion_models/ltxv-13b-0.9.7-dev", {"diffusion_model"}, ""},
    {"diffusion_models/ltx-2.5-22b-distilled-transformer-bf16", {"diffusion_model"}, ""},
    {"vae/ltx-2.5-video-vae-bf16", {"vae.decoder", "vae.encoder"}, R"(decoder\.type_emb)"},
    {"diffusion_models/minimax_h3_fl2va_bf16", {"diffusion_model"}, ""},
    {"diffusion_models/minimax_h3_fl2va_pruned_bf16", {"diffusion_model"}, ""},
    {"vae/flux2-vae", {"vae.decoder", "vae.encoder"}, ""},
    {"vae/full_encoder_small_decoder", {"vae.decoder", "vae.encoder"}, ""},
    {"vae/minimax_h3_video_vae_fp16",
     {"vae.decoder", "vae.encoder"},
     R"(decoder\.mask_token|latents_(mean|std))"},
    {"vae/minimax_h3_audio_vae_fp32",
     {"audio_vae.decoder", "audio_vae.encoder"},
     R"(logs_proj\..*|.*\.filter)"},
    {"controlnet/Qwen-Image-InstantX-ControlNet-Union", {"control_net"}, ""},
    {"controlnet/Qwen-Image-InstantX-ControlNet-Inpainting", {"control_net"}, ""},
    {"controlnet/instantx_flux_canny", {"control_net"}, ""},
    {"controlnet/flux_controlnet_union_pro", {"control_net"}, ""},
    {"controlnet/sd3_controlnet_canny", {"control_net"}, ""},
    {"controlnet/sd3.5_large_controlnet_blur", {"control_net"}, "control_type"},
    {"controlnet/sd3.5_large_controlnet_canny", {"control_net"}, "control_type"},
    {"controlnet/sd3.5_large_controlnet_depth", {"control_net"}, "control_type"},
    {"audio_encoders/wav2vec2_large_english_fp16",
     {"audio_encoder"},
     R"(lm_head\.(weight|bias)|.*masked_spec_embed)"},
    {"audio_encoders/wav2vec2-chinese-base_fp16",
     {"audio_encoder"},
     R"((quantizer|project_q|project_hid)\..*|.*masked_spec_embed)"},
    {"audio_encoders/whisper_large_v3_encoder_fp16", {"audio_encoder"}, ""},
    {"geometry_estimation/moge_1_vitl_fp16", {"geometry_estimator"}, R"(.*\.mask_token)"},
    {"geometry_estimation/moge_2_vitl_normal_fp16", {"geometry_estimator"}, R"(.*\.mask_token)"},
    {"diffusion_models/rt_detr_v4-x-hgnet_fp16", {"diffusion_model"}, kBesideRtdetr},
};
// Patches and ControlNets that begin with layers of their model, and a model that each is joined
// to.
struct TruePatch {
  const char *name, *model;
  const char
      *prefix = "model_patch.0.",
      *config =
          R"({"model_patches": [{"prefix": "model_patch.0.", "file": "patch", "strength": 1.0}]})";
};
inline constexpr const char
    *kFivePlaces =
        R"({"model_patches": [{"prefix": "model_patch.0.", "file": "patch", "strength": 1.0,
        "places": [0, 10, 20, 30, 40]}]})",
    *kTenPlaces =
        R"({"model_patches": [{"prefix": "model_patch.0.", "file": "patch", "strength": 1.0,
        "of_table": true, "places": [0, 5, 10, 15, 20, 25, 30, 35, 40, 45]}]})";
inline const TruePatch kTruePatches[] = {
    {"model_patches/Z-Image-Turbo-Fun-Controlnet-Union", "diffusion_models/z_image_turbo_bf16"},
    {"model_patches/Z-Image-Turbo-Fun-Controlnet-Union-2.1", "diffusion_models/z_image_bf16"},
    {"model_patches/Z-Image-Turbo-Fun-Controlnet-Union-2.1-lite-2602-8steps",
     "diffusion_models/z_image_turbo_bf16"},
    {"model_patches/qwen_image_canny_diffsynth_controlnet",
     "diffusion_models/qwen_image_fp8_e4m3fn"},
    {"model_patches/qwen_image_depth_diffsynth_controlnet",
     "diffusion_models/qwen_image_fp8_e4m3fn"},
    {"model_patches/qwen_image_inpaint_diffsynth_controlnet",
     "diffusion_models/qwen_image_2512_fp8_e4m3fn"},
    {"model_patches/wan2.1_infiniteTalk_single_fp16", "diffusion_models/wan2.1_i2v_480p_14B_fp16"},
    {"model_patches/wan2.1_infiniteTalk_multi_fp16",
     "diffusion_models/Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ"},
    {"controlnet/Qwen-Image-2512-Fun-Controlnet-Union-2602",
     "diffusion_models/qwen_image_2512_fp8_e4m3fn", "fun_control.",
     R"({"joined_control": "fun_control."})"},
    {"model_patches/MiniMax-H3-Fun-Controlnet-Union", "diffusion_models/minimax_h3_fl2va_bf16",
     "model_patch.0.", kFivePlaces},
    {"model_patches/minimax_h3_fun_controlnet_union_pruned_bf16",
     "diffusion_models/minimax_h3_fl2va_pruned_bf16", "model_patch.0.", kFivePlaces},
    {"model_patches/minimax_h3_fun_controlnet_union_2.0_pruned_bf16",
     "diffusion_models/minimax_h3_fl2va_pruned_bf16", "model_patch.0.", kTenPlaces},
};

}  // namespace heddle::test
