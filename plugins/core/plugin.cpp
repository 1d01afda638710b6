// plugins/core/plugin.cpp - the plugin of the loaders of model files, of literals, of what computes
// with them and of what shows a value.
#include "attention_nodes.h"
#include "audio_loader_nodes.h"
#include "block_merge_nodes.h"
#include "conditioning_file_nodes.h"
#include "hook_nodes.h"
#include "ip_adapter_loaders.h"
#include "list_nodes.h"
#include "literal_nodes.h"
#include "loader_nodes.h"
#include "logic_nodes.h"
#include "loop_nodes.h"
#include "lora_nodes.h"
#include "lora_save_nodes.h"
#include "merge_nodes.h"
#include "model_option_nodes.h"
#include "pose_nodes.h"
#include "preview_nodes.h"
#include "prompt_nodes.h"
#include "regex_nodes.h"
#include "save_nodes.h"
#include "select_device_nodes.h"
#include "string_nodes.h"
#include "text_file_nodes.h"
#include "text_list_nodes.h"
#include "training_nodes.h"
#include "vision_loader_nodes.h"
#include "weight_hooks.h"

namespace heddle::loaders {

static_assert(std::size(kBlockMerges) == 16, "each row is a node of the list below");

HEDDLE_PLUGIN("org.heddle.core", "0.1.0", DiffusersLoader, CheckpointLoaderSimple, CheckpointLoader,
              unCLIPCheckpointLoader, ImageOnlyCheckpointLoader, UNETLoader, VAELoader, CLIPLoader,
              DualCLIPLoader, UnetLoaderGGUF, CLIPLoaderGGUF, DualCLIPLoaderGGUF, PrimitiveInt,
              PrimitiveFloat, PrimitiveString, PrimitiveStringMultiline, PrimitiveBoolean,
              LoraLoader, LoraLoaderModelOnly, PreviewAny, ComfySwitchNode, ComfyPassOrNoneNode,
              ComfyNotNode, ComfyAndNode, ComfyOrNode, ComfyMathExpression, ComfyNumberConvert,
              CustomCombo, SeedNode, ResolutionSelector, StringConcatenate, StringSubstring,
              StringLength, CaseConverter, StringTrim, StringReplace, StringContains, StringCompare,
              JsonExtractString, CreateList, GetItemFromList, ColorToRGBInt, PrimitiveBoundingBox,
              CurveEditor, ConvertArrayToString, ConvertDictionaryToString, AddTextPrefix,
              AddTextSuffix, ReplaceText, StripWhitespace, TextToLowercase, TextToUppercase,
              TruncateText, RegexMatch, RegexExtract, RegexReplace, StartLoop, EndLoop,
              LoopIteration, LoopProgress, LoopResult, LoopOutputs, StringFormat, MergeTextLists,
              SaveText, CameraAngle, BuildJsonPromptIdeogram, Flux3LayoutPrompt, ModelMergeSimple,
              ModelMergeAdd, ModelMergeSubtract, ModelMergeBlocks, MergeByBlocks<0>,
              MergeByBlocks<1>, MergeByBlocks<2>, MergeByBlocks<3>, MergeByBlocks<4>,
              MergeByBlocks<5>, MergeByBlocks<6>, MergeByBlocks<7>, MergeByBlocks<8>,
              MergeByBlocks<9>, MergeByBlocks<10>, MergeByBlocks<11>, MergeByBlocks<12>,
              MergeByBlocks<13>, MergeByBlocks<14>, MergeByBlocks<15>, CLIPMergeSimple,
              CLIPMergeAdd, CLIPMergeSubtract, CLIPAttentionMultiply, UNetSelfAttentionMultiply,
              UNetCrossAttentionMultiply, UNetTemporalAttentionMultiply, ModelSave, CLIPSave,
              VAESave, CheckpointSave, ImageOnlyCheckpointSave, LoraLoaderBypass,
              LoraLoaderBypassModelOnly, LTXAVTextEncoderLoader, TripleCLIPLoader,
              QuadrupleCLIPLoader, CLIPVisionLoader, IPAdapterModelLoader, IPAdapterUnifiedLoader,
              StyleModelLoader, ControlNetLoader, DiffControlNetLoader, UpscaleModelLoader,
              LTXVAudioVAELoader, AudioEncoderLoader, LatentUpscaleModelLoader, HypernetworkLoader,
              GLIGENLoader, PhotoMakerLoader, LoadMoGeModel, ModelPatchLoader, TorchCompileModel,
              ModelAttentionBackend, ModelComputeDtype, wanBlockSwap, MultiGPU_WorkUnits,
              SelectModelDevice, SelectCLIPDevice, SelectVAEDevice, CreateHookLora,
              CreateHookLoraModelOnly, CreateHookModelAsLora, CreateHookModelAsLoraModelOnly,
              LoadLoraModel, LoadLoraTextEncoder, SaveConditioning, ConditioningLoader,
              LotusConditioning, SdPoseKeypointExtractor, MakeTrainingDataset, LoraSave,
              WeightHookKinds)

}  // namespace heddle::loaders
