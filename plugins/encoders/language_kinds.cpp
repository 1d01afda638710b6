#include "language_kinds.h"

namespace heddle::encoders {
namespace {

// From the config.json of the published models: Qwen2.5-VL 7B, Qwen3 0.6B, 4B and 8B, Gemma 2 2B,
// Mistral Small 24B.
constexpr LanguageKind kQwen25{.name = "qwen2.5",
                               .types = {"qwen2_5_vl", "qwen2_5_vl_text"},
                               .head = 128,
                               .theta = 1e6,
                               .eps = 1e-6,
                               .sections = {16, 24, 24}};
constexpr LanguageKind kQwen3{"qwen3", {"qwen3", "qwen3"}, 0, 1e6, 1e-6};
constexpr LanguageKind kMistral{.name = "mistral3",
                                .types = {"mistral3", "mistral"},
                                .head = 128,
                                .theta = 1e9,
                                .eps = 1e-5,
                                .may_be_cut = true};
constexpr LanguageKind kGemma2{
    .name = "gemma2",
    .types = {"gemma2", "gemma2"},
    .head = 256,
    .theta = 1e4,
    .eps = 1e-6,
    .activation = HEDDLE_ACT_GELU_TANH,
    .norm_shift = 1,
    .scales_embedding = true,
    .cap = 50,
    .window = 4096,
    .window_every = 2,
};
constexpr const LanguageKind* kLanguageKinds[] = {&kQwen25, &kQwen3, &kMistral, &kGemma2};

constexpr std::int64_t kMistralWidth = 5120;

}  // namespace

const LanguageKind& language_kind(const Checkpoint& file, const LanguageNames& names,
                                  const Value& config) {
  const std::string type = config.get<std::string>("model_type", "");
  for (const LanguageKind* kind : kLanguageKinds)
    for (const std::string_view one : kind->types)
      if (one == type) return *kind;
  const bool normed_results = names.has("after2"), normed_queries = names.has("q_norm"),
             biased = file.has(names.in_layer(0, "k") + ".bias");
  if (!normed_results && normed_queries && !biased) return kQwen3;
  if (!normed_results && !normed_queries && biased) return kQwen25;
  if (normed_results && !normed_queries && !biased) return kGemma2;
  const std::int64_t width = file.size(names.tokens(), 1);
  if (!normed_results && !normed_queries && width == kMistralWidth) return kMistral;
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() + ": a language model of width " + std::to_string(width) +
                  (normed_results ? ", with norms behind its attentions" : "") +
                  (normed_queries ? ", with norms of queries" : "") +
                  (biased ? ", with biases" : "") +
                  ", which is no text encoder that is known. Known: Qwen2.5-VL, Qwen3, Gemma 2, "
                  "Mistral Small.");
}

}  // namespace heddle::encoders
