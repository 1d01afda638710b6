#include <algorithm>
#include <utility>

#include "json_parts.h"
#include "packed_model.h"

namespace heddle::text {
namespace {

Vocabulary read_vocabulary(const JsonAt& json) {
  Vocabulary vocabulary;
  vocabulary.reserve(json.object().size());
  for (std::size_t i = 0; i < json.size(); ++i) vocabulary.add(json.key(i), json.item(i).id());
  return vocabulary;
}

// "left right" (files before version 0.20 of the package) or ["left", "right"].
std::pair<std::string, std::string> read_merge(const JsonAt& json) {
  if (json.kind() == JsonKind::kString) {
    const std::string_view text = json.string();
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      json.fail("expects two tokens with one space between, got '" + std::string(text) +
                "'. Download the file again.");
    }
    return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
  }
  if (json.array().size() != 2) {
    json.fail("expects two tokens, got " + std::to_string(json.size()) +
              ". Download the file again.");
  }
  return {std::string(json.item(0).string()), std::string(json.item(1).string())};
}

ByteLevelBpe read_bpe(const JsonAt& json, const std::string& name, std::string_view packed) {
  if (const auto dropout = json.find("dropout"); dropout && dropout->number() != 0) {
    dropout->fail("is " + std::to_string(dropout->number()) +
                  ", which makes the ids random. Set it to null.");
  }
  BpeOptions options{
      .vocabulary = {},
      .merges = {},
      .merged_ids = {},
      .continuing_prefix = json.string_or("continuing_subword_prefix", ""),
      .end_of_word_suffix = json.string_or("end_of_word_suffix", ""),
      .unknown = std::nullopt,
      .unknown_runs = json.boolean_or("fuse_unk", false) ? UnknownRuns::kFused : UnknownRuns::kEach,
      .byte_fallback = json.boolean_or("byte_fallback", false),
      .ignore_merges = json.boolean_or("ignore_merges", false)};
  if (const auto unknown = json.find("unk_token")) options.unknown = unknown->string();
  if (!packed.empty()) {
    read_packed_merges(packed, name, options);
    return ByteLevelBpe(std::move(options), name);
  }
  options.vocabulary = read_vocabulary(json.get("vocab"));
  const JsonAt merges = json.get("merges");
  options.merges.reserve(merges.array().size());
  for (std::size_t i = 0; i < merges.size(); ++i)
    options.merges.push_back(read_merge(merges.item(i)));
  return ByteLevelBpe(std::move(options), name);
}

std::vector<UnigramPiece> read_pieces(const JsonAt& json) {
  std::vector<UnigramPiece> pieces;
  pieces.reserve(json.array().size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonAt piece = json.item(i);
    if (piece.array().size() != 2) {
      piece.fail("expects a piece and its score. Download the file again.");
    }
    pieces.push_back({std::string(piece.item(0).string()), piece.item(1).number()});
  }
  return pieces;
}

Unigram read_unigram(const JsonAt& json, const std::string& name, std::string_view packed) {
  UnigramOptions options{
      .pieces = packed.empty() ? read_pieces(json.get("vocab")) : read_packed_pieces(packed, name),
      .unknown = std::nullopt,
      .byte_fallback = json.boolean_or("byte_fallback", false),
      .rules = UnigramRules::kTokenizers};
  if (const auto unknown = json.find("unk_id")) {
    options.unknown = unknown->id();
    if (static_cast<std::size_t>(*options.unknown) >= options.pieces.size()) {
      unknown->fail("is " + std::to_string(*options.unknown) + ", but there are " +
                    std::to_string(options.pieces.size()) + " pieces. Correct the field.");
    }
  }
  return Unigram(std::move(options), name);
}

// Old files leave out the type; what else is in the object then tells the models apart.
std::string model_type(const JsonAt& json) {
  if (const auto type = json.find("type")) return std::string(type->string());
  if (json.find("merges")) return "BPE";
  const auto vocabulary = json.find("vocab");
  return vocabulary && vocabulary->kind() == JsonKind::kArray ? "Unigram" : "without a type";
}

}  // namespace

Tokenizer::Model read_model(const JsonAt& json, const std::string& name, std::string_view packed) {
  const std::string type = model_type(json);
  if (type == "BPE") return read_bpe(json, name, packed);
  if (type == "Unigram") return read_unigram(json, name, packed);
  fail_unsupported(json, type, "BPE and Unigram");
}

}  // namespace heddle::text
