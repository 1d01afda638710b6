// The parts of a tokenizer.json, each read from its object. Every function throws TextError with
// file and field when the object is damaged or its type is not supported. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json_at.h"
#include "normalizer.h"
#include "pre_tokenizer.h"
#include "tokenizer.h"

namespace heddle::text {

// NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend, Precompiled, Sequence.
std::vector<NormalizerStep> read_normalizer(const JsonAt& json);

// Split, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Digits, Sequence.
std::vector<PreTokenizerStep> read_pre_tokenizer(const JsonAt& json);

struct Affixes {
  std::vector<std::int32_t> prefix, suffix;
};

// TemplateProcessing (its "single" part), RobertaProcessing, BertProcessing, ByteLevel (adds
// nothing), Sequence.
Affixes read_post_processor(const JsonAt& json);

// BPE, Unigram. `name` is the file's; `packed` is the vocabulary of a model that has none in the
// file, as read_tokenizer_json() takes it.
Tokenizer::Model read_model(const JsonAt& json, const std::string& name, std::string_view packed);

// {"String": ..} or {"Regex": ..}.
Regex read_pattern(const JsonAt& json);

// Sequences inside sequences, at most.
constexpr int kDeepestSequence = 16;

[[noreturn]] void fail_unsupported(const JsonAt& json, std::string_view type,
                                   std::string_view supported);

}  // namespace heddle::text
