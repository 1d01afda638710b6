#include "json_parts.h"

#include <memory>
#include <utility>

namespace heddle::text {
namespace {

constexpr std::string_view kNormalizers =
    "NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend, Precompiled and Sequence";
constexpr std::string_view kPreTokenizers =
    "Split, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Digits and Sequence";
constexpr std::string_view kPostProcessors =
    "TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel and Sequence";

constexpr std::size_t kMostSteps = 64;  // of a pre-tokeniser: each calls the next

std::string_view type_of(const JsonAt& json) { return json.get("type").string(); }

void check_depth(const JsonAt& json, int depth) {
  if (depth > kDeepestSequence) {
    json.fail("sequences are nested more than " + std::to_string(kDeepestSequence) +
              " deep. Flatten them.");
  }
}

void add_normalizer(const JsonAt& json, int depth, std::vector<NormalizerStep>& out) {
  check_depth(json, depth);
  const std::string_view type = type_of(json);
  if (type == "Sequence") {
    const JsonAt parts = json.get("normalizers");
    for (std::size_t i = 0; i < parts.array().size(); ++i) {
      add_normalizer(parts.item(i), depth + 1, out);
    }
  } else if (type == "NFC") {
    out.emplace_back(NormalForm::kNfc);
  } else if (type == "NFD") {
    out.emplace_back(NormalForm::kNfd);
  } else if (type == "NFKC") {
    out.emplace_back(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    out.emplace_back(NormalForm::kNfkd);
  } else if (type == "Lowercase") {
    out.emplace_back(LowerCaseStep{});
  } else if (type == "Strip") {
    out.emplace_back(
        StripStep{json.boolean_or("strip_left", true), json.boolean_or("strip_right", true)});
  } else if (type == "Replace") {
    out.emplace_back(
        ReplaceStep{read_pattern(json.get("pattern")), std::string(json.get("content").string())});
  } else if (type == "Prepend") {
    out.emplace_back(PrependStep{std::string(json.get("prepend").string())});
  } else if (type == "Precompiled") {
    const auto map = json.find("precompiled_charsmap");
    if (!map || map->string().empty()) return;  // the identity
    const std::string blob = decode_base64(map->string(), map->where());
    out.emplace_back(
        CharsmapStep{std::make_shared<const Charsmap>(Charsmap::parse(blob, map->where()))});
  } else {
    fail_unsupported(json, type, kNormalizers);
  }
}

SplitBehavior read_behavior(const JsonAt& json) {
  const std::string_view name = json.string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  fail_unsupported(json, name,
                   "Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous");
}

// `add_prefix_space` is what files before version 0.19 of the package have.
PrependScheme read_scheme(const JsonAt& json) {
  const auto scheme = json.find("prepend_scheme");
  if (!scheme) {
    return json.boolean_or("add_prefix_space", true) ? PrependScheme::kAlways
                                                     : PrependScheme::kNever;
  }
  const std::string_view name = scheme->string();
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  fail_unsupported(*scheme, name, "always, first and never");
}

ByteLevelStep read_byte_level(const JsonAt& json) {
  ByteLevelStep step{.add_prefix_space = json.boolean_or("add_prefix_space", true), .pattern = {}};
  if (json.boolean_or("use_regex", true)) step.pattern.push_back(byte_level_pattern());
  return step;
}

void add_pre_tokenizer(const JsonAt& json, int depth, std::vector<PreTokenizerStep>& out) {
  check_depth(json, depth);
  const std::string_view type = type_of(json);
  if (type == "Sequence") {
    const JsonAt parts = json.get("pretokenizers");
    for (std::size_t i = 0; i < parts.array().size(); ++i) {
      add_pre_tokenizer(parts.item(i), depth + 1, out);
    }
  } else if (type == "Split") {
    const auto matches =
        json.boolean_or("invert", false) ? SplitMatches::kBetween : SplitMatches::kPattern;
    out.emplace_back(
        SplitStep{read_pattern(json.get("pattern")), read_behavior(json.get("behavior")), matches});
  } else if (type == "ByteLevel") {
    out.emplace_back(read_byte_level(json));
  } else if (type == "Metaspace") {
    out.emplace_back(MetaspaceStep{json.get("replacement").character(), read_scheme(json),
                                   json.boolean_or("split", true)});
  } else if (type == "Whitespace") {
    out.emplace_back(SplitStep{word_pattern(), SplitBehavior::kRemoved, SplitMatches::kBetween});
  } else if (type == "WhitespaceSplit") {
    out.emplace_back(WhiteSpaceSplitStep{});
  } else if (type == "Digits") {
    out.emplace_back(DigitsStep{json.boolean_or("individual_digits", false)});
  } else {
    fail_unsupported(json, type, kPreTokenizers);
  }
  if (out.size() > kMostSteps) {
    json.fail("there are more than " + std::to_string(kMostSteps) + " steps. Leave some out.");
  }
}

// ["<s>", 0]
std::int32_t read_pair_id(const JsonAt& json) {
  if (json.array().size() != 2) json.fail("expects a token and its id. Correct the field.");
  return json.item(1).id();
}

void append_ids(const JsonAt& special_tokens, std::string_view name,
                std::vector<std::int32_t>& out) {
  const JsonAt ids = special_tokens.get(name).get("ids");
  for (std::size_t i = 0; i < ids.array().size(); ++i) out.push_back(ids.item(i).id());
}

Affixes read_template(const JsonAt& json) {
  Affixes affixes;
  const JsonAt pieces = json.get("single");
  bool after_text = false;
  for (std::size_t i = 0; i < pieces.array().size(); ++i) {
    const JsonAt piece = pieces.item(i);
    if (const auto special = piece.find("SpecialToken")) {
      append_ids(json.get("special_tokens"), special->get("id").string(),
                 after_text ? affixes.suffix : affixes.prefix);
    } else if (piece.find("Sequence")) {
      if (after_text) piece.fail("the text is inserted twice. Remove one of the two.");
      after_text = true;
    } else {
      piece.fail("expects 'SpecialToken' or 'Sequence'. Correct the field.");
    }
  }
  return affixes;
}

Affixes read_post_processor_at(const JsonAt& json, int depth) {
  check_depth(json, depth);
  const std::string_view type = type_of(json);
  if (type == "TemplateProcessing") return read_template(json);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    return {{read_pair_id(json.get("cls"))}, {read_pair_id(json.get("sep"))}};
  }
  if (type == "ByteLevel") return {};
  if (type != "Sequence") fail_unsupported(json, type, kPostProcessors);
  Affixes all;
  const JsonAt parts = json.get("processors");
  for (std::size_t i = 0; i < parts.array().size(); ++i) {
    const Affixes outer = read_post_processor_at(parts.item(i), depth + 1);
    all.prefix.insert(all.prefix.begin(), outer.prefix.begin(), outer.prefix.end());
    all.suffix.insert(all.suffix.end(), outer.suffix.begin(), outer.suffix.end());
  }
  return all;
}

}  // namespace

void fail_unsupported(const JsonAt& json, std::string_view type, std::string_view supported) {
  json.fail("'" + std::string(type) + "' is not supported; supported are " +
            std::string(supported) + ". Use a tokenizer made of these.");
}

Regex read_pattern(const JsonAt& json) {
  if (const auto text = json.find("String")) return Regex::literal(text->string(), text->where());
  const JsonAt regex = json.get("Regex");
  return Regex::compile(regex.string(), regex.where());
}

std::vector<NormalizerStep> read_normalizer(const JsonAt& json) {
  std::vector<NormalizerStep> steps;
  add_normalizer(json, 0, steps);
  return steps;
}

std::vector<PreTokenizerStep> read_pre_tokenizer(const JsonAt& json) {
  std::vector<PreTokenizerStep> steps;
  add_pre_tokenizer(json, 0, steps);
  return steps;
}

Affixes read_post_processor(const JsonAt& json) { return read_post_processor_at(json, 0); }

}  // namespace heddle::text
