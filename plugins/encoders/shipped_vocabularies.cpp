#include "shipped_vocabularies.h"

#include <algorithm>
#include <string>

// The assembler puts the bytes of a file between two symbols of this name.
#define HEDDLE_EMBED(symbol, file)                                                        \
  asm(".pushsection .rodata\n" #symbol "_begin:\n.incbin \"" HEDDLE_VOCABULARIES "/" file \
      "\"\n" #symbol "_end:\n.byte 0\n.popsection\n");                                    \
  extern "C" [[gnu::visibility("hidden")]] const char symbol##_begin[], symbol##_end[];

HEDDLE_EMBED(heddle_clip_rules, "clip.json")
HEDDLE_EMBED(heddle_clip_packed, "clip.bin")
HEDDLE_EMBED(heddle_t5xxl_rules, "t5xxl.json")
HEDDLE_EMBED(heddle_t5xxl_packed, "t5xxl.bin")
HEDDLE_EMBED(heddle_qwen25_rules, "qwen2.5.json")
HEDDLE_EMBED(heddle_qwen25_packed, "qwen2.5.bin")
HEDDLE_EMBED(heddle_qwen3_rules, "qwen3.json")
HEDDLE_EMBED(heddle_byt5_rules, "byt5.json")

namespace heddle::encoders {
namespace {

constexpr std::string_view kClip[] = {"clip_l", "clip_h", "clip_g"};
constexpr std::string_view kT5[] = {"t5xxl"};
constexpr std::string_view kQwen25[] = {"qwen2.5"};
constexpr std::string_view kByt5[] = {"byt5"};
constexpr std::string_view kQwen3[] = {"qwen3", "qwen3vl"};

}  // namespace

std::span<const ShippedVocabulary> shipped_vocabularies() {
  const auto between = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<std::size_t>(end - begin));
  };
  // Tables are padded for the sake of matrix products: T5's to 32,128 rows, Qwen's to 151,936 or
  // 152,064. byT5's of glyphs has rows for colours and fonts behind those of bytes.
  static const ShippedVocabulary all[] = {
      {"clip", between(heddle_clip_rules_begin, heddle_clip_rules_end),
       between(heddle_clip_packed_begin, heddle_clip_packed_end), kClip, 49408, 49408,
       "<|endoftext|>", 77},
      {"t5xxl", between(heddle_t5xxl_rules_begin, heddle_t5xxl_rules_end),
       between(heddle_t5xxl_packed_begin, heddle_t5xxl_packed_end), kT5, 32100, 32128, "<pad>",
       512},
      {"qwen2.5", between(heddle_qwen25_rules_begin, heddle_qwen25_rules_end),
       between(heddle_qwen25_packed_begin, heddle_qwen25_packed_end), kQwen25, 151669, 152064,
       "<|endoftext|>", 131072},
      {"qwen3", between(heddle_qwen3_rules_begin, heddle_qwen3_rules_end),
       between(heddle_qwen25_packed_begin, heddle_qwen25_packed_end), kQwen3, 151669, 152064,
       "<|endoftext|>", 131072},
      {"byt5",
       between(heddle_byt5_rules_begin, heddle_byt5_rules_end),
       {},
       kByt5,
       384,
       4096,
       "<pad>",
       512}};
  return all;
}

const ShippedVocabulary* find_shipped(std::string_view encoder, std::int64_t rows) {
  for (const ShippedVocabulary& one : shipped_vocabularies())
    if (std::ranges::count(one.encoders, encoder) != 0 && rows >= one.least_rows &&
        rows <= one.most_rows)
      return &one;
  return nullptr;
}

text::TokenizerConfig ShippedVocabulary::config() const {
  text::TokenizerConfig config;
  config.padding = std::string(padding);
  config.model_max_length = model_max_length;
  return config;
}

}  // namespace heddle::encoders
