// plugins/encoders/plugin.cpp - the plugin of the text encoders: families and their blocks, the
// tokenizers, and the nodes that encode texts.
#include "audio_encoder_nodes.h"
#include "clip.h"
#include "clip_hooks.h"
#include "clip_vision.h"
#include "control_text_node.h"
#include "deep_vision_model.h"
#include "delta_blocks.h"
#include "edit_nodes.h"
#include "gemma3_vision_model.h"
#include "gemma4_blocks.h"
#include "gemma4_vision_model.h"
#include "generate_nodes.h"
#include "gligen_nodes.h"
#include "hunyuan_nodes.h"
#include "ip_adapter.h"
#include "ip_adapter_embed_nodes.h"
#include "ip_adapter_nodes.h"
#include "language_model.h"
#include "language_writing_blocks.h"
#include "minimax_nodes.h"
#include "minimax_reference_node.h"
#include "modules.h"
#include "photo_maker.h"
#include "photo_maker_nodes.h"
#include "qwen21_nodes.h"
#include "reference_nodes.h"
#include "sdxl_nodes.h"
#include "siglip.h"
#include "sound_blocks.h"
#include "sound_encoders.h"
#include "style_nodes.h"
#include "svd_nodes.h"
#include "t5.h"
#include "text_nodes.h"
#include "text_projection.h"
#include "tokenizer_kind.h"
#include "vision_model.h"
#include "wan_dancer_node.h"
#include "zero123_nodes.h"

namespace heddle::encoders {

HEDDLE_PLUGIN("org.heddle.encoders", "0.1.0", Clip, ClipEmbed, ClipLayer, ClipFinish, ClipProject,
              ClipVision, ClipVisionEmbed, ClipVisionPool, ClipVisionTokens, PhotoMaker,
              PhotoMakerFuse, PhotoMakerEncode, IpAdapter, IpAdapterTokens, IpAdapterMlp,
              IpAdapterEnter, IpAdapterLayer, IpAdapterFinish, T5, T5Embed, T5Bias, T5Layer,
              T5Finish, LanguageModel, LanguageEmbed, LanguageRope, LanguageLayer, LanguageFinish,
              LanguageDeltaLayer, LanguageKeptDeltaLayer, LanguageJoin, LanguageKeptLayer,
              LanguageLogits, Gemma4Told, Gemma4Layer, Gemma4KeptLayer, Gemma4SharingLayer,
              TextProjection, ProjectionRows, ProjectionMatrix, SiglipVision, SiglipEmbed,
              SiglipFinish, Redux, ReduxTokens, VisionModel, VisionEmbed, VisionRope, VisionLayer,
              VisionMerge, Gemma3Vision, Gemma3Project, Gemma4Vision, Gemma4VisionEmbed,
              Gemma4VisionRope, Gemma4VisionLayer, Gemma4VisionPool, Gemma4PixelTokens,
              DeepVisionModel, DeepVisionEmbed, DeepVisionLayer, DeepVisionMerge, Wav2Vec2, Whisper,
              SoundFilter, SoundProject, SoundPlaces, SpectrumFilters, SoundLayer, SoundFinish,
              AudioEncoderEncode, WanDancerEncodeAudio, CLIPTextEncode, CLIPTextEncodeFlux,
              CLIPTextEncodeSD3, CLIPTextEncodeSDXL, CLIPTextEncodeSDXLRefiner,
              CLIPTextEncodeLumina2, CLIPTextEncodeControlnet, GLIGENTextBoxApply,
              TextEncodeQwenImageEdit, TextEncodeQwenImageEditPlus,
              TextEncodeHunyuanVideo_ImageToVideo, TextEncodeQwenImage21, ReferenceMultiLatent,
              MiniMaxH3ImageToVideo, MiniMaxH3AddGuide, MiniMaxH3ReferenceToVideo, TextGenerate,
              TextGenerateLTX2Prompt, CLIPVisionEncode, SVD_img2vid_Conditioning, SV3D_Conditioning,
              StableZero123_Conditioning, StableZero123_Conditioning_Batched, StyleModelApply,
              IPAdapter, IPAdapterAdvanced, IPAdapterBatch, IPAdapterStyleComposition,
              IPAdapterEncoder, IPAdapterCombineEmbeds, IPAdapterEmbeds, IPAdapterEmbedsBatch,
              CLIPSetLastLayer, T5TokenizerOptions, SetClipHooks, Modules, Tokenizers)

}  // namespace heddle::encoders
