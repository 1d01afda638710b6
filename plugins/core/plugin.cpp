// plugins/core/plugin.cpp - the plugin of the loaders of model files, of literals, of what computes
// with them and of what shows a value.
#include "literal_nodes.h"
#include "loader_nodes.h"
#include "logic_nodes.h"
#include "lora_nodes.h"
#include "preview_nodes.h"
#include "string_nodes.h"

namespace heddle::loaders {

HEDDLE_PLUGIN("org.heddle.core", "0.1.0", DiffusersLoader, CheckpointLoaderSimple, UNETLoader,
              VAELoader, CLIPLoader, DualCLIPLoader, UnetLoaderGGUF, CLIPLoaderGGUF,
              DualCLIPLoaderGGUF, PrimitiveInt, PrimitiveFloat, PrimitiveString,
              PrimitiveStringMultiline, PrimitiveBoolean, LoraLoader, LoraLoaderModelOnly,
              PreviewAny, ComfySwitchNode, ComfyPassOrNoneNode, ComfyNotNode, ComfyAndNode,
              ComfyOrNode, ComfyMathExpression, ComfyNumberConvert, CustomCombo, SeedNode,
              ResolutionSelector, StringConcatenate, StringSubstring, StringLength, CaseConverter,
              StringTrim, StringReplace, StringContains, StringCompare, JsonExtractString)

}  // namespace heddle::loaders
