#include "language_kinds.h"

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

// From the config.json of the published models: Qwen2.5-VL 7B, Qwen3 0.6B, 4B and 8B, Qwen3-VL 4B,
// 8B and 32B, Qwen3.5 0.8B to 27B, Gemma 2 2B, Mistral Small 24B, Llama 3 8B, Gemma 3 270M to 27B.
constexpr LanguageKind kQwen25{.name = "qwen2.5",
                               .types = {"qwen2_5_vl", "qwen2_5_vl_text"},
                               .head = 128,
                               .theta = 1e6,
                               .eps = 1e-6,
                               .sections = {16, 24, 24}};
constexpr LanguageKind kQwen3{"qwen3", {"qwen3", "qwen3"}, 0, 1e6, 1e-6};
constexpr LanguageKind kQwen3Vl{.name = "qwen3vl",
                                .types = {"qwen3_vl", "qwen3_vl_text"},
                                .head = 0,
                                .theta = 5e6,
                                .eps = 1e-6,
                                .sections = {24, 20, 20},
                                .interleaved = true,
                                .may_be_cut = true};
constexpr LanguageKind kQwen35{.name = "qwen3.5",
                               .types = {"qwen3_5", "qwen3_5_text"},
                               .head = 0,
                               .theta = 1e7,
                               .eps = 1e-6,
                               .norm_shift = 1,
                               .sections = {11, 11, 10},
                               .interleaved = true,
                               .turned_share = 0.25,
                               .gates_results = true};
constexpr LanguageKind kMistral{.name = "mistral3",
                                .types = {"mistral3", "mistral"},
                                .head = 128,
                                .theta = 1e9,
                                .eps = 1e-5,
                                .may_be_cut = true};
constexpr LanguageKind kLlama3{.name = "llama3",
                               .types = {"llama", "llava"},
                               .head = 128,
                               .theta = 5e5,
                               .eps = 1e-5,
                               .takes_states = true};
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
    .windows = {.size = 4096, .full_every = 2},
    .logit_cap = 30,
};
constexpr LanguageKind gemma3(std::int64_t window, double rope_factor, double query_size) {
  return {.name = "gemma3",
          .types = {"gemma3", "gemma3_text"},
          .head = 256,
          .theta = 1e6,
          .eps = 1e-6,
          .activation = HEDDLE_ACT_GELU_TANH,
          .norm_shift = 1,
          .scales_embedding = true,
          .windows = {window, 6, 1e4, rope_factor},
          .query_size = query_size,
          .takes_states = true};
}
// Of 4B and 12B, of the smaller ones, and of 27B. A config says which it is by its numbers.
constexpr LanguageKind kGemma3 = gemma3(1024, 8, 0), kSmallGemma3 = gemma3(512, 1, 0),
                       kLargeGemma3 = gemma3(1024, 8, 168);
constexpr std::int64_t kSmallGemma3Width = 1152, kLargeGemma3Width = 5376;
constexpr const LanguageKind* kLanguageKinds[] = {&kQwen25,  &kQwen3,  &kQwen3Vl, &kQwen35,
                                                  &kMistral, &kGemma2, &kGemma3,  &kLlama3};

constexpr std::int64_t kMistralWidth = 5120, kLlama3Width = 4096;
constexpr int kMistralLayers = 40, kLlama3Layers = 32;

// Llama 2 and Mistral 7B have the tensors and the widths of Mistral Small and Llama 3, and other
// rotations: what tells them apart is a vocabulary of 32,000 to 32,768 tokens, where these two have
// over 128,000. Models of tests have smaller ones.
bool has_older_vocabulary(std::int64_t tokens) { return tokens >= 32000 && tokens < 128000; }

// Its language model has the tensors of Qwen3: what it sees pictures with tells it apart, in a gguf
// file, which has not that, the architecture.
bool is_qwen3_vl(const Checkpoint& file, const LanguageNames& names) {
  if (names.is_gguf()) return file.meta("general.architecture").value_or("") == "qwen3vl";
  return blocks::prefix_before(file, "deepstack_merger_list.0.norm.weight").has_value();
}

}  // namespace

const LanguageKind& language_kind(const Checkpoint& file, const LanguageNames& names,
                                  const Value& config) {
  const std::string type = config.get<std::string>("model_type", "");
  if (names.is_hybrid()) return kQwen35;
  for (const LanguageKind* kind : kLanguageKinds)
    for (const std::string_view one : kind->types)
      if (one == type && kind != &kQwen35) return *kind;
  const bool normed_results = names.has("after2"), normed_queries = names.has("q_norm"),
             biased = file.has(names.in_layer(names.attention_layer(), "k") + ".bias");
  if (!normed_results && normed_queries && !biased)
    return is_qwen3_vl(file, names) ? kQwen3Vl : kQwen3;
  if (!normed_results && !normed_queries && biased) return kQwen25;
  if (normed_results && !normed_queries && !biased) return kGemma2;
  const std::int64_t tokens = file.size(names.tokens(), 0), width = file.size(names.tokens(), 1);
  if (normed_results && normed_queries && !biased)
    return width <= kSmallGemma3Width   ? kSmallGemma3
           : width == kLargeGemma3Width ? kLargeGemma3
                                        : kGemma3;
  if (!normed_results && !normed_queries && !biased && !has_older_vocabulary(tokens)) {
    if (width == kMistralWidth && names.layers() <= kMistralLayers) return kMistral;
    if (width == kLlama3Width && names.layers() <= kLlama3Layers) return kLlama3;
  }
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() + ": a language model of width " + std::to_string(width) + " with " +
                  std::to_string(names.layers()) + " layers and " + std::to_string(tokens) +
                  " tokens" + (normed_results ? ", with norms behind its attentions" : "") +
                  (normed_queries ? ", with norms of queries" : "") +
                  (biased ? ", with biases" : "") +
                  ", which is no text encoder that is known. Known: Qwen2.5-VL, Qwen3, Gemma 2, "
                  "Mistral Small, Qwen3-VL, Qwen3.5, Gemma 3, Gemma 4, Llama 3.");
}

}  // namespace heddle::encoders
