// plugins/core/plugin.cpp - the plugin of the loaders of model files, of literals and of what shows
// a value.
#include "literal_nodes.h"
#include "loader_nodes.h"
#include "lora_nodes.h"
#include "preview_nodes.h"

namespace heddle::loaders {

HEDDLE_PLUGIN("org.heddle.core", "0.1.0", DiffusersLoader, CheckpointLoaderSimple, UNETLoader,
              VAELoader, CLIPLoader, DualCLIPLoader, UnetLoaderGGUF, CLIPLoaderGGUF,
              DualCLIPLoaderGGUF, PrimitiveInt, PrimitiveFloat, PrimitiveString,
              PrimitiveStringMultiline, PrimitiveBoolean, LoraLoader, LoraLoaderModelOnly,
              PreviewAny)

}  // namespace heddle::loaders
