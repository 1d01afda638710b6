#include "spiece.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "proto_wire.h"
#include "spiece_normalizer.h"
#include "text_error.h"

namespace heddle::text {
namespace {

constexpr std::size_t kMostPieces = std::size_t{1} << 22;  // the largest published models have 2^18

constexpr std::uint64_t kUnigramType = 1, kBpeType = 2;

// Field numbers and values are those of sentencepiece_model.proto.
struct Model {
  std::vector<UnigramPiece> pieces;
  std::uint64_t model_type = 1;
  bool byte_fallback = false;
  std::string begin_piece = "<s>", end_piece = "</s>";
  std::string charsmap;
  SpieceRules rules;
};

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw TextError(name + ": " + what);
}

PieceKind kind_of(std::uint64_t type, const std::string& name, std::size_t id) {
  switch (type) {
    case 1:
      return PieceKind::kNormal;
    case 2:
      return PieceKind::kUnknown;
    case 3:
      return PieceKind::kControl;
    case 4:
      return PieceKind::kUserDefined;
    case 5:
      return PieceKind::kUnused;
    case 6:
      return PieceKind::kByte;
    default:
      break;
  }
  fail(name, "piece " + std::to_string(id) + " has the unknown type " + std::to_string(type) +
                 ", known are 1 to 6. Download the file again.");
}

void read_piece(WireReader reader, const std::string& name, Model& model) {
  UnigramPiece piece;
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.number == 1 && field.type == WireType::kBytes) piece.text = field.bytes;
    if (field.number == 2 && field.type == WireType::kFixed32) {
      piece.score = static_cast<double>(field.as_float());
    }
    if (field.number == 3 && field.type == WireType::kVarint) {
      piece.kind = kind_of(field.value, name, model.pieces.size());
    }
  }
  if (piece.text.empty()) {
    fail(name,
         "piece " + std::to_string(model.pieces.size()) + " is empty. Download the file again.");
  }
  if (model.pieces.size() == kMostPieces) {
    fail(name, "has more than " + std::to_string(kMostPieces) +
                   " pieces. Check that it is a SentencePiece model.");
  }
  model.pieces.push_back(std::move(piece));
}

void read_trainer(WireReader reader, Model& model) {
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.number == 46 && field.type == WireType::kBytes) model.begin_piece = field.bytes;
    if (field.number == 47 && field.type == WireType::kBytes) model.end_piece = field.bytes;
    if (field.type != WireType::kVarint) continue;
    if (field.number == 3) model.model_type = field.value;
    if (field.number == 24) model.rules.whitespace_as_suffix = field.as_bool();
    if (field.number == 35) model.byte_fallback = field.as_bool();
  }
}

void read_normalizer(WireReader reader, Model& model) {
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.number == 2 && field.type == WireType::kBytes) model.charsmap = field.bytes;
    if (field.type != WireType::kVarint) continue;
    if (field.number == 3) model.rules.add_dummy_prefix = field.as_bool();
    if (field.number == 4) model.rules.remove_extra_whitespaces = field.as_bool();
    if (field.number == 5) model.rules.escape_whitespaces = field.as_bool();
  }
}

Model read_model(std::string_view bytes, const std::string& name) {
  Model model;
  WireReader reader(bytes, 0, name);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.type != WireType::kBytes) continue;
    if (field.number == 1) read_piece(reader.nested(field), name, model);
    if (field.number == 2) read_trainer(reader.nested(field), model);
    if (field.number == 3) read_normalizer(reader.nested(field), model);
  }
  return model;
}

void check_type(const Model& model, const std::string& name) {
  if (model.pieces.empty()) {
    fail(name, "has no pieces. It is not a SentencePiece model; download it again.");
  }
  if (model.model_type == kUnigramType || model.model_type == kBpeType) return;
  constexpr std::string_view kTypes[] = {"type 0", "unigram", "BPE", "word", "character"};
  const std::string type = model.model_type < std::size(kTypes)
                               ? std::string(kTypes[model.model_type])
                               : "type " + std::to_string(model.model_type);
  fail(name, "is a SentencePiece " + type +
                 " model, supported are unigram and BPE. Use the model's tokenizer.json.");
}

std::int32_t unknown_of(const Model& model, const std::string& name) {
  std::int32_t unknown = -1;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].kind != PieceKind::kUnknown) continue;
    if (unknown >= 0) {
      fail(name, "pieces " + std::to_string(unknown) + " and " + std::to_string(i) +
                     " are both the unknown piece. Download the file again.");
    }
    unknown = static_cast<std::int32_t>(i);
  }
  if (unknown < 0) fail(name, "has no unknown piece. Download the file again.");
  return unknown;
}

void check_pieces(const Model& model, const std::string& name) {
  Vocabulary seen;
  seen.reserve(model.pieces.size());
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const std::string& text = model.pieces[i].text;
    if (const auto first = seen.find(text)) {
      fail(name, "pieces " + std::to_string(*first) + " and " + std::to_string(i) +
                     " are the same. Download the file again.");
    }
    seen.add(text, static_cast<std::int32_t>(i));
  }
  for (int byte = 0; model.byte_fallback && byte < 256; ++byte) {
    const std::string piece = byte_piece(static_cast<unsigned char>(byte));
    if (!seen.find(piece)) {
      fail(name, "asks for byte fallback but has no piece '" + piece + "'. Download it again.");
    }
  }
}

PieceTrie user_defined_trie(const Model& model) {
  std::vector<PieceTrie::Entry> entries;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].kind != PieceKind::kUserDefined) continue;
    entries.push_back({model.pieces[i].text, static_cast<std::int32_t>(i)});
  }
  return PieceTrie(entries);
}

std::vector<std::int32_t> suffix_of(const Model& model) {
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const bool is_end =
        model.pieces[i].kind == PieceKind::kControl && model.pieces[i].text == model.end_piece;
    if (is_end) return {static_cast<std::int32_t>(i)};
  }
  return {};
}

// Every pair of pieces that together are a piece may be merged, the best score first.
std::vector<BpeOptions::Ids> merges_of(const std::vector<UnigramPiece>& pieces,
                                       const Vocabulary& ids) {
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].kind == PieceKind::kNormal) order.push_back(static_cast<std::int32_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return pieces[std::size_t(a)].score > pieces[std::size_t(b)].score;
  });
  std::vector<BpeOptions::Ids> merges;
  for (const std::int32_t id : order) {
    const std::string_view text = pieces[std::size_t(id)].text;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;  // inside a character
      const auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
      if (left && right) merges.push_back({*left, *right, id});
    }
  }
  return merges;
}

// Control pieces and the unknown one: transformers takes them for special tokens.
std::vector<std::int32_t> silent_of(const std::vector<UnigramPiece>& pieces) {
  std::vector<std::int32_t> silent;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].kind == PieceKind::kControl || pieces[i].kind == PieceKind::kUnknown)
      silent.push_back(static_cast<std::int32_t>(i));
  return silent;
}

// What Gemma ends a turn with; its files call it a control piece.
constexpr std::string_view kTurnEnd = "<end_of_turn>";
// A piece of Gemma's users, which transformers takes for a special token.
constexpr std::string_view kMask = "<mask>";

// Language models: nothing stands behind a text, and their begin piece and the end of a turn may be
// written into one.
Tokenizer bpe_tokenizer(Model model, std::int32_t unknown, const std::string& name,
                        const std::vector<std::string>& more) {
  BpeOptions options{.vocabulary = {},
                     .merges = {},
                     .merged_ids = {},
                     .continuing_prefix = {},
                     .end_of_word_suffix = {},
                     .unknown = model.pieces[std::size_t(unknown)].text,
                     .unknown_runs = UnknownRuns::kFused,
                     .byte_fallback = model.byte_fallback};
  options.vocabulary.reserve(model.pieces.size());
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const UnigramPiece& piece = model.pieces[i];
    options.vocabulary.add(piece.text, static_cast<std::int32_t>(i));
    if (piece.kind == PieceKind::kUserDefined)
      added.push_back({.content = piece.text, .normalized = true, .special = piece.text == kMask});
    if (piece.kind == PieceKind::kControl &&
        (piece.text == model.begin_piece || piece.text == kTurnEnd))
      added.push_back({.content = piece.text, .special = true});
  }
  for (const std::string& token : more) added.push_back({.content = token, .special = true});
  options.merged_ids = merges_of(model.pieces, options.vocabulary);
  auto rules = std::make_shared<const SpieceRules>(std::move(model.rules));
  Normalizer normalizer({SpieceStep{std::move(rules)}}, name);
  Tokenizer::Model bpe = ByteLevelBpe(std::move(options), name);
  AddedTokens found(std::move(added), std::get<ByteLevelBpe>(bpe).vocabulary(), normalizer, name);
  return Tokenizer({.added = std::move(found),
                    .normalizer = std::move(normalizer),
                    .pre_tokenizer = {},
                    .model = std::move(bpe),
                    .prefix = {},
                    .suffix = {},
                    .silent = silent_of(model.pieces)});
}

}  // namespace

Tokenizer read_spiece(std::string_view bytes, const std::string& name,
                      const std::vector<std::string>& more) {
  Model model = read_model(bytes, name);
  check_type(model, name);
  check_pieces(model, name);
  const std::int32_t unknown = unknown_of(model, name);
  if (!model.charsmap.empty()) {
    model.rules.map = std::make_shared<const Charsmap>(
        Charsmap::parse(model.charsmap, name + ": normalizer_spec.precompiled_charsmap"));
  }
  model.rules.user_defined = user_defined_trie(model);
  if (model.model_type == kBpeType) return bpe_tokenizer(std::move(model), unknown, name, more);
  std::vector<std::int32_t> suffix = suffix_of(model), silent = silent_of(model.pieces);
  Unigram unigram({.pieces = std::move(model.pieces),
                   .unknown = unknown,
                   .byte_fallback = model.byte_fallback,
                   .rules = UnigramRules::kSentencePiece},
                  name);
  auto rules = std::make_shared<const SpieceRules>(std::move(model.rules));
  return Tokenizer({.added = {},
                    .normalizer = Normalizer({SpieceStep{std::move(rules)}}, name),
                    .pre_tokenizer = {},
                    .model = std::move(unigram),
                    .prefix = {},
                    .suffix = std::move(suffix),
                    .silent = std::move(silent)});
}

}  // namespace heddle::text
