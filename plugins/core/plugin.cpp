// plugins/core/plugin.cpp - the plugin of the loaders of model files, of literals, of what computes
// with them and of what shows a value.
#include "list_nodes.h"
#include "literal_nodes.h"
#include "loader_nodes.h"
#include "logic_nodes.h"
#include "loop_nodes.h"
#include "lora_nodes.h"
#include "preview_nodes.h"
#include "regex_nodes.h"
#include "string_nodes.h"
#include "text_list_nodes.h"

namespace heddle::loaders {

HEDDLE_PLUGIN("org.heddle.core", "0.1.0", DiffusersLoader, CheckpointLoaderSimple, UNETLoader,
              VAELoader, CLIPLoader, DualCLIPLoader, UnetLoaderGGUF, CLIPLoaderGGUF,
              DualCLIPLoaderGGUF, PrimitiveInt, PrimitiveFloat, PrimitiveString,
              PrimitiveStringMultiline, PrimitiveBoolean, LoraLoader, LoraLoaderModelOnly,
              PreviewAny, ComfySwitchNode, ComfyPassOrNoneNode, ComfyNotNode, ComfyAndNode,
              ComfyOrNode, ComfyMathExpression, ComfyNumberConvert, CustomCombo, SeedNode,
              ResolutionSelector, StringConcatenate, StringSubstring, StringLength, CaseConverter,
              StringTrim, StringReplace, StringContains, StringCompare, JsonExtractString,
              CreateList, GetItemFromList, ColorToRGBInt, PrimitiveBoundingBox, CurveEditor,
              ConvertArrayToString, ConvertDictionaryToString, AddTextPrefix, AddTextSuffix,
              ReplaceText, StripWhitespace, TextToLowercase, TextToUppercase, TruncateText,
              RegexMatch, RegexExtract, RegexReplace, StartLoop, EndLoop, LoopIteration,
              LoopProgress, LoopOutputs)

}  // namespace heddle::loaders
