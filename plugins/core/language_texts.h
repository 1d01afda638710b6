// How a decoder-only language model encodes texts for a family of images: the chat template around
// a prompt, which of its layers is read, and what of the result is left out. A table, by the
// encoder and by the type that a loader is asked for, as ComfyUI chooses. Any thread.
#pragma once

#include <heddle/model.hpp>

#include <string>

namespace heddle::loaders {

// Whether the loaders take this model, as its family built it, for a language model.
bool is_language_model(const Value& model);
// Its name: "qwen2.5", "qwen3", "qwen3vl", "qwen3.5", "mistral3", "gemma3", "gemma4", "gemma4_e",
// "llama3".
std::string language_name(const Value& model);

struct LanguageUse {
  std::string clip_type;  // "qwen_image", "z_image", "flux2", "krea2", "hunyuan_video" or another
  Record encoder;         // fields of the encoder's record besides those that all have
};

// For a loader's `type` ("qwen_image", "lumina2"); a type that belongs to another encoder means
// what this one is mostly used for. `config` is what the model was built from, or empty. Throws
// HEDDLE_UNSUPPORTED with `where`, the encoder and what it is the encoder of, where that is a
// family that is not supported.
LanguageUse language_use(Context& ctx, const Value& model, const Value& config,
                         const std::string& type, const std::string& where);

}  // namespace heddle::loaders
