// What the sweep of links gives to inputs of each type that it does not sweep: links to nodes that
// make small values.
#pragma once

#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/gligen_model.h"
#include "tests/support/h3_files.h"
#include "tests/support/moge_model.h"
#include "tests/support/rtdetr_model.h"
#include "tests/support/sdpose_models.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

// Nodes that give a small value of a type, and the link to it.
struct SweepProvider {
  const char* type;
  const char* link;
};
inline constexpr SweepProvider kProviders[] = {
    {"MODEL", R"(["unet", 0])"},
    {"CLIP", R"(["pipe", 1])"},
    {"VAE", R"(["pipe", 2])"},
    {"CONDITIONING", R"(["one", 0])"},
    {"LATENT", R"(["latents", 0])"},
    {"IMAGE", R"(["pictures", 0])"},
    {"MASK", R"(["drawn", 0])"},
    {"SIGMAS", R"(["levels", 0])"},
    {"SAMPLER", R"(["euler", 0])"},
    {"GUIDER", R"(["guide", 0])"},
    {"NOISE", R"(["random", 0])"},
    {"VIDEO", R"(["film", 0])"},
    {"*", R"(["number", 0])"},
    {"TIMESTEPS_RANGE", R"(["when", 0])"},
    {"LATENT_OPERATION", R"(["tone", 0])"},
    {"STRING", R"(["words", 0])"},
    {"COMFY_MATCHTYPE_V3", R"(["pictures", 0])"},
    {"ARRAY", R"(["any", 0])"},
    {"DICT", R"(["any", 0])"},
    {"BOUNDING_BOX", R"(["box", 0])"},
    {"BOUNDING_BOX,ARRAY,STRING", R"(["box", 0])"},
    {"WEBCAM", R"("scene.png")"},
    {"AUDIO", R"(["sound", 0])"},
    {"IC_LORA_PARAMETERS", R"(["size", 0])"},
    {"AUDIO_ENCODER", R"(["hearing", 0])"},
    {"AUDIO_ENCODER_OUTPUT", R"(["heard", 0])"},
    {"CLIP_VISION", R"(["tower", 0])"},
    {"CLIP_VISION_OUTPUT", R"(["seen", 0])"},
    {"STYLE_MODEL", R"(["style", 0])"},
    {"CONTROL_NET", R"(["net", 0])"},
    {"SAM3_TRACK_DATA", R"(["followed", 0])"},
    {"SAM3_TRACK_DATA,MASK", R"(["followed", 0])"},
    {"UPSCALE_MODEL", R"(["larger", 0])"},
    {"LATENT_UPSCALE_MODEL", R"(["sharper", 0])"},
    {"MODEL_PATCH", R"(["patch", 0])"},
    {"POSE_KEYPOINT", R"(["people", 0])"},
    {"MOGE_MODEL", R"(["moge", 0])"},
    {"MOGE_GEOMETRY", R"(["where", 0])"},
    {"IPADAPTER", R"(["adapter", 0])"},
    {"EMBEDS", R"(["embeds", 0])"},
    {"GLIGEN", R"(["boxes", 0])"},
    {"TRACKS", R"(["ways", 0])"},
};

// Classes that take nothing but a UNet, or what a tower of CLIP saw; null: others, and other ports.
inline const char* clip_link(std::string_view type, std::string_view port) {
  const bool is_of_sdxl = type == "IPAdapterStyleComposition";
  if (!type.starts_with("IPAdapter") && type != "unCLIPConditioning" &&
      type != "SVD_img2vid_Conditioning" && type != "SV3D_Conditioning" &&
      !type.starts_with("StableZero123_"))
    return nullptr;
  if (port == "CLIP_VISION") return R"(["clip_tower", 0])";
  if (port == "CLIP_VISION_OUTPUT") return R"(["clip_seen", 0])";
  if (port == "MODEL") return is_of_sdxl ? R"(["unet_xl", 0])" : R"(["unet_1", 0])";
  // The one that brings its tower.
  if (port == "IPADAPTER" && type == "IPAdapter") return R"(["unified", 1])";
  return port == "IPADAPTER" && is_of_sdxl ? R"(["adapter_xl", 0])" : nullptr;
}

// Classes that take nothing but the latent of a video.
inline bool takes_video_latents(std::string_view type) {
  return type == "NormalizeVideoLatentStart" || type == "ReplaceVideoLatentFrames" ||
         type == "HunyuanVideo15LatentUpscaleWithModel" ||
         type == "HunyuanVideo15SuperResolution" || type == "WanSoundImageToVideoExtend" ||
         type == "SeedVR2TemporalChunk" || type == "SeedVR2TemporalMerge";
}
inline constexpr const char* kVideoLatents = R"(["frames", 0])";

// Classes that take nothing but a language model that sees pictures.
inline bool takes_language_models(std::string_view type) {
  return type == "TextGenerate" || type == "TextGenerateLTX2Prompt";
}
inline constexpr const char* kLanguageModel = R"(["talker", 0])";

// Classes that apply the patch of a file to the model that it was made for.
inline bool takes_patched_models(std::string_view type) {
  return type == "ZImageFunControlnet" || type == "QwenImageDiffsynthControlnet";
}
inline constexpr const char* kPatchedModel = R"(["patched", 0])";
inline constexpr const char* kPatchedVae = R"(["patched_vae", 0])";
inline bool takes_video_autoencoders(std::string_view type) {
  return type == "LTXVImgToVideo" || type == "LTXVAddGuide" || type == "LTXVAddLatentGuide" ||
         type == "LTXVImgToVideoInplace";
}
// Classes that take nothing but the autoencoder of Wan 2.1.
inline bool takes_wan_autoencoders(std::string_view type) {
  return type == "WanVaceToVideo" || type == "WanAnimateToVideo" ||
         type == "WanInfiniteTalkToVideo" || type == "WanTrackToVideo" ||
         type == "WanMoveTrackToVideo" || type == "WanHuMoImageToVideo" ||
         type == "WanDancerVideo" || type.starts_with("WanSoundImageToVideo");
}
inline constexpr const char* kWanVae = R"(["wan_vae", 0])";
// Classes that take nothing but an autoencoder of sound.
inline bool takes_sound_autoencoders(std::string_view type) { return type == "LTXVReferenceAudio"; }
inline constexpr const char* kSoundVae = R"(["sound_vae", 0])";
inline constexpr const char* kVideoVae = R"(["video_vae", 0])";
// Those of them that change a latent of this autoencoder.
inline constexpr const char* kOwnVideoLatents = R"(["begun", 2])";

// Classes that change nothing but MiniMax H3; and what takes pictures and sounds and refuses them.
inline bool takes_minimax(std::string_view type) { return type == "MiniMaxH3SigmaShift"; }
inline constexpr const char* kMinimaxModel = R"(["minimax", 0])";
inline bool refuses_what_is_shown(std::string_view type) {
  return type == "MiniMaxH3ImageToVideo" || type == "MiniMaxH3AddGuide" ||
         type == "MiniMaxH3ReferenceToVideo";
}

// Classes that ask nothing but SAM 3.
inline bool takes_sam3(std::string_view type) {
  return type == "SAM3_Detect" || type == "SAM3_VideoTrack";
}
inline constexpr const char *kSam3Model = R"(["sam3", 0])", *kFirstMask = R"(["drawn", 0])";

// Classes that ask nothing but RT-DETR.
inline bool takes_rtdetr(std::string_view type) { return type == "RTDETR_detect"; }
inline constexpr const char* kRtdetrModel = R"(["rtdetr", 0])";

// Classes that take what a large encoder heard of a sound alone.
inline bool refuses_small_sounds(std::string_view type) { return type == "WanHuMoImageToVideo"; }

// What a class takes that hears speakers or a music; null: others, and other ports.
inline const char* talk_link(std::string_view type, std::string_view port) {
  if (type == "WanDancerVideo" && port == "AUDIO_ENCODER_OUTPUT") return R"(["danced", 0])";
  if (type != "WanInfiniteTalkToVideo") return nullptr;
  if (port == "MODEL") return R"(["talking", 0])";
  if (port == "MODEL_PATCH") return R"(["talk", 0])";
  return port == "AUDIO_ENCODER_OUTPUT" ? R"(["talk_heard", 0])" : nullptr;
}

// What a class takes that applies a ControlNet to MiniMax H3; null: others, and other ports.
inline const char* fun_link(std::string_view type, std::string_view port) {
  if (type != "MiniMaxH3FunControlNetApply") return nullptr;
  if (port == "MODEL") return kMinimaxModel;
  if (port == "MODEL_PATCH") return R"(["fun", 0])";
  return port == "VAE" ? R"(["h3_vae", 0])" : nullptr;
}

// What a class takes that reads a style off a picture; null: others, and other ports.
inline const char* style_link(std::string_view type, std::string_view port) {
  if (type != "USOStyleReference") return nullptr;
  if (port == "MODEL_PATCH") return R"(["style_patch", 0])";
  return port == "CLIP_VISION_OUTPUT" ? R"(["style_seen", 0])" : nullptr;
}

// What a class takes by which Llama 3 looks at a picture; null: others, and other ports.
inline const char* llava_link(std::string_view type, std::string_view port) {
  if (type != "TextEncodeHunyuanVideo_ImageToVideo") return nullptr;
  if (port == "CLIP") return R"(["llama", 0])";
  return port == "CLIP_VISION_OUTPUT" ? R"(["llava_seen", 0])" : nullptr;
}

// What a class takes that finds people by SDPose; null: others, and other ports.
inline const char* posed_link(std::string_view type, std::string_view port) {
  if (type != "SDPoseKeypointExtractor") return nullptr;
  if (port == "MODEL") return R"(["posed", 0])";
  if (port == "IMAGE") return R"(["style_picture", 0])";  // one alone, as it looks at it enlarged
  return port == "VAE" ? R"(["posed_vae", 0])" : nullptr;
}

// Classes that change nothing but a UNet.
inline bool takes_unets(std::string_view type) {
  return type == "FreeU" || type == "FreeU_V2" || type == "HyperTile" ||
         type == "SelfAttentionGuidance" || type == "HypernetworkLoader" ||
         type == "TomePatchModel" || type == "PatchModelAddDownscale";
}
inline constexpr const char* kUnetModel = R"(["unet_1", 0])";

inline std::string provider_nodes() {
  return R"in("unified": {"class_type": "IPAdapterUnifiedLoader", "inputs": {"model": ["unet_1", 0], "preset": "STANDARD (medium strength)"}}, )in"
         R"("talker": {"class_type": "CLIPLoader", "inputs": {"clip_name": "talker.safetensors", "type": "qwen_image", "device": "default"}},
    "unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "plain.safetensors", "weight_dtype": "default"}},
    "minimax": {"class_type": "UNETLoader", "inputs": {"unet_name": "minimax.safetensors", "weight_dtype": "default"}},
    "sam3": {"class_type": "UNETLoader", "inputs": {"unet_name": "sam3.safetensors", "weight_dtype": "default"}},
    "rtdetr": {"class_type": "UNETLoader", "inputs": {"unet_name": "rtdetr.safetensors", "weight_dtype": "default"}},
    "posed": {"class_type": "UNETLoader", "inputs": {"unet_name": "posed.safetensors", "weight_dtype": "default"}},
    "posed_vae": {"class_type": "VAELoader", "inputs": {"vae_name": "posed.safetensors"}},
    "people": {"class_type": "test.keypoints", "inputs": {"json": "[{\"canvas_width\": 24, \"canvas_height\": 16, \"people\": []}]"}},
    "followed": {"class_type": "SAM3_VideoTrack", "inputs": {"images": ["pictures", 0], "model": ["sam3", 0], "initial_mask": ["drawn", 0],
      "detection_threshold": 0.5, "max_objects": 1, "detect_interval": 1}},
    "patched": {"class_type": "UNETLoader", "inputs": {"unet_name": "patched.safetensors", "weight_dtype": "default"}},
    "patched_vae": {"class_type": "VAELoader", "inputs": {"vae_name": "patched.safetensors"}},
    "wan_vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan.safetensors"}},
    "sound_vae": {"class_type": "VAELoader", "inputs": {"vae_name": "sound.safetensors"}},
    "size": {"class_type": "GetICLoRAParameters", "inputs": {"iclora_model": ["unet", 0]}},
    "boxes": {"class_type": "GLIGENLoader", "inputs": {"gligen_name": "boxes.safetensors"}},
    "video_vae": {"class_type": "VAELoader", "inputs": {"vae_name": "video.safetensors"}},
    "begun": {"class_type": "LTXVImgToVideo", "inputs": {"positive": ["one", 0], "negative": ["one", 0], "vae": ["video_vae", 0],
      "image": ["pictures", 0], "width": 64, "height": 64, "length": 17, "batch_size": 1, "strength": 1}},
    "pipe": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
    "latents": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 2}},
    "frames": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 48, "length": 25, "batch_size": 2}},
    "pictures": {"class_type": "EmptyImage", "inputs": {"width": 24, "height": 16, "batch_size": 2, "color": 255}},
    "drawn": {"class_type": "SolidMask", "inputs": {"value": 0.5, "width": 24, "height": 16}},
    "levels": {"class_type": "KarrasScheduler", "inputs": {"steps": 2}},
    "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
    "guide": {"class_type": "BasicGuider", "inputs": {"model": ["unet", 0], "conditioning": ["one", 0]}},
    "random": {"class_type": "RandomNoise", "inputs": {"noise_seed": 1}},
    "tone": {"class_type": "LatentOperationTonemapReinhard", "inputs": {"multiplier": 1}},
    "when": {"class_type": "ConditioningTimestepsRange", "inputs": {"start_percent": 0, "end_percent": 1}},
    "number": {"class_type": "PrimitiveInt", "inputs": {"value": 1}},
    "box": {"class_type": "PrimitiveBoundingBox", "inputs": {"x": 1, "y": 2, "width": 8, "height": 6}},
    "words": {"class_type": "PrimitiveString", "inputs": {"value": "by night"}},
    "tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": "tower.safetensors"}},
    "seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["tower", 0], "image": ["pictures", 0], "crop": "none"}},
    "style": {"class_type": "StyleModelLoader", "inputs": {"style_model_name": "style.safetensors"}},
    "style_tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": "style.safetensors"}},
    "style_patch": {"class_type": "ModelPatchLoader", "inputs": {"name": "style.safetensors"}},
    "style_picture": {"class_type": "EmptyImage", "inputs": {"width": 24, "height": 16, "batch_size": 1, "color": 255}},
    "style_seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["style_tower", 0], "image": ["style_picture", 0], "crop": "none"}},
    "net": {"class_type": "ControlNetLoader", "inputs": {"control_net_name": "net.safetensors"}},
    "larger": {"class_type": "UpscaleModelLoader", "inputs": {"model_name": "larger.safetensors"}},
    "sharper": {"class_type": "LatentUpscaleModelLoader", "inputs": {"model_name": "sharper.safetensors"}},
    "unet_1": {"class_type": "UNETLoader", "inputs": {"unet_name": "unet_1.safetensors", "weight_dtype": "default"}},
    "unet_xl": {"class_type": "UNETLoader", "inputs": {"unet_name": "unet_xl.safetensors", "weight_dtype": "default"}},
    "clip_tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": "CLIP-ViT-H-14-s32B-b79K.safetensors"}},
    "clip_seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["clip_tower", 0], "image": ["pictures", 0], "crop": "none"}},
    "llama": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "llama_clip.safetensors", "clip_name2": "llama.safetensors",
      "type": "hunyuan_video", "device": "default"}},
    "llava": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": "llava.safetensors"}},
    "llava_seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["llava", 0], "image": ["pictures", 0], "crop": "none"}},
    "adapter": {"class_type": "IPAdapterModelLoader", "inputs": {"ipadapter_file": "ip-adapter_sd15.safetensors"}},
    "adapter_xl": {"class_type": "IPAdapterModelLoader", "inputs": {"ipadapter_file": "xl.safetensors"}},
    "embeds": {"class_type": "IPAdapterEncoder", "inputs": {"ipadapter": ["adapter", 0], "image": ["pictures", 0], "clip_vision": ["clip_tower", 0], "weight": 1.0}},
    "patch": {"class_type": "ModelPatchLoader", "inputs": {"name": "patch.safetensors"}},
    "moge": {"class_type": "LoadMoGeModel", "inputs": {"model_name": "moge.safetensors"}},
    "where": {"class_type": "MoGeInference", "inputs": {"moge_model": ["moge", 0], "image": ["pictures", 0], "resolution_level": 0,
      "fov_x_degrees": 0, "batch_size": 1, "force_projection": true, "apply_mask": true}},
    "talking": {"class_type": "UNETLoader", "inputs": {"unet_name": "talking.safetensors", "weight_dtype": "default"}},
    "talk": {"class_type": "ModelPatchLoader", "inputs": {"name": "talk.safetensors"}},
    "fun": {"class_type": "ModelPatchLoader", "inputs": {"name": "fun.safetensors"}},
    "h3_vae": {"class_type": "VAELoader", "inputs": {"vae_name": "h3.safetensors"}},
    "ways": {"class_type": "GenerateTracks", "inputs": {"width": 64, "height": 48, "start_x": 0, "start_y": 0, "mid_x": 0, "mid_y": 0,
      "end_x": 1, "end_y": 1, "num_frames": 5, "num_tracks": 2, "track_spread": 0.1, "bezier": false, "interpolation": "linear"}},
    "any": {"class_type": "GetItemFromList", "inputs": {"list": ["number", 0], "index": 0}},
    "one": )" +
         NodeFixture::conditioning("one");
}

// Of a plugin that may be left out.
inline constexpr const char* kVideoNodes =
    R"(, "film": {"class_type": "CreateVideo", "inputs": {"images": ["pictures", 0], "fps": 8}},
    "sound": {"class_type": "EmptyAudio", "inputs": {"duration": 0.1, "sample_rate": 8000, "channels": 2}},
    "hearing": {"class_type": "AudioEncoderLoader", "inputs": {"audio_encoder_name": "ear.safetensors"}},
    "danced": {"class_type": "WanDancerEncodeAudio", "inputs": {"audio": ["sound", 0], "video_frames": 1, "audio_inject_scale": 1}},
    "heard": {"class_type": "AudioEncoderEncode", "inputs": {"audio_encoder": ["hearing", 0], "audio": ["sound", 0]}},
    "talk_ear": {"class_type": "AudioEncoderLoader", "inputs": {"audio_encoder_name": "talk.safetensors"}},
    "talk_heard": {"class_type": "AudioEncoderEncode", "inputs": {"audio_encoder": ["talk_ear", 0], "audio": ["sound", 0]}})";

// The files of the nodes above that read one, but for "unet" and "pipe".
inline void write_vision_models(const std::filesystem::path& models) {
  struct File {
    const char *goldens, *model, *name;
  };
  for (const File& file :
       {File{"redux", "siglip", "clip_vision/tower.safetensors"},
        File{"redux", "redux", "style_models/style.safetensors"},
        File{"uso", "siglip", "clip_vision/style.safetensors"},
        File{"uso", "projector", "model_patches/style.safetensors"},
        File{"control", "flux_plain", "controlnet/net.safetensors"},
        File{"upscalers", "compact_x2", "upscale_models/larger.safetensors"},
        File{"hunyuan15_upsamplers", "to_720", "latent_upscale_models/sharper.safetensors"},
        File{"patches", "alone", "model_patches/patch.safetensors"},
        File{"patches", "z_image", "diffusion_models/patched.safetensors"},
        File{"workflows", "z_image.vae", "vae/patched.safetensors"},
        File{"ltxv_vae", "vae", "vae/video.safetensors"},
        File{"workflows", "qwen_image.vae", "vae/wan.safetensors"},
        File{"minimax", "whole", "diffusion_models/minimax.safetensors"},
        File{"sam3_tracker", "sam31", "diffusion_models/sam3.safetensors"},
        File{"sound_encoders", "stable", "audio_encoders/ear.safetensors"},
        File{"sound_encoders", "plain", "audio_encoders/talk.safetensors"},
        File{"wan_talk_nodes", "flow", "diffusion_models/talking.safetensors"},
        File{"wan_talk_nodes", "patch", "model_patches/talk.safetensors"},
        File{"sdpose", "vae", "vae/posed.safetensors"},
        File{"unet", "sd1", "diffusion_models/unet_1.safetensors"},
        File{"unet", "sdxl", "diffusion_models/unet_xl.safetensors"},
        File{"unclip", "tower", "clip_vision/CLIP-ViT-H-14-s32B-b79K.safetensors"},
        File{"unclip", "tower", "clip_vision/CLIP-ViT-bigG-14-39B-b160k.safetensors"},
        File{"hunyuan_first", "clip", "text_encoders/llama_clip.safetensors"},
        File{"hunyuan_first", "llama", "text_encoders/llama.safetensors"},
        File{"hunyuan_llava", "tower", "clip_vision/llava.safetensors"},
        File{"ip_adapter", "plain", "ipadapter/ip-adapter_sd15_light.safetensors"},
        File{"ip_adapter", "plain", "ipadapter/ip-adapter_sd15.safetensors"},
        File{"ip_adapter", "plain", "ipadapter/ip-adapter_sd15_vit-G.safetensors"},
        File{"ip_adapter", "plus", "ipadapter/ip-adapter-plus_sd15.safetensors"},
        File{"ip_adapter", "plus", "ipadapter/ip-adapter-plus-face_sd15.safetensors"},
        File{"ip_adapter", "full", "ipadapter/ip-adapter-full-face_sd15.safetensors"},
        File{"ip_adapter", "plus_xl", "ipadapter/xl.safetensors"},
        File{"qwen21_pictures", "text", "text_encoders/talker.safetensors"}}) {
    std::filesystem::create_directories((models / file.name).parent_path());
    write_safetensors(models / file.name, seeded_model(file.model, false, file.goldens));
  }
  std::filesystem::create_directories(models / "tokenizers/llama3");
  std::filesystem::copy_file(tests_folder() / "plugins/goldens/hunyuan_first/tokenizer.json",
                             models / "tokenizers/llama3/tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  write_safetensors(models / "diffusion_models/rtdetr.safetensors", rtdetr_tensors());
  write_safetensors(models / "diffusion_models/posed.safetensors", sdpose_tensors());
  std::filesystem::create_directories(models / "embeddings");
  write_safetensors(models / "embeddings/lotus_conditioning.safetensors",
                    {seeded_tensor("conditioning", {1, 4, 64})});
  write_safetensors(models / "vae/sound.safetensors", h3_sound_tensors());
  std::filesystem::create_directories(models / "geometry_estimation");
  write_safetensors(models / "geometry_estimation/moge.safetensors", moge_tensors("second"));
  write_safetensors(models / "vae/h3.safetensors", h3_video_tensors(false));
  write_safetensors(models / "model_patches/fun.safetensors",
                    seeded_model("fun", false, "minimax_fun"),
                    {{"control_blocks_places", "[0, 1]"}});
  std::filesystem::create_directories(models / "gligen");
  write_safetensors(models / "gligen/boxes.safetensors", gligen_model(false, 32));
  std::filesystem::create_directories(models / "hypernetworks");
  std::filesystem::copy_file(tests_folder() / "plugins/goldens/unet/hypernetwork.pt",
                             models / "hypernetworks/net.pt",
                             std::filesystem::copy_options::overwrite_existing);
}

}  // namespace heddle::test
