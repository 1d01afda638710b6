#include "tokenizer_kind.h"

#include <filesystem>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "gemma3_vision_model.h"
#include "plugins/blocks/slots.h"
#include "shipped_vocabularies.h"
#include "tokenizer/spiece.h"
#include "tokenizer/tekken.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_merges.h"
#include "tokenizer_object.h"
#include "value_json.h"

namespace heddle::encoders {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = 256 << 20;

Value read_file(const fs::path& path) {
  return heddle::read_file(path.string(), kMostBytes, "a tokenizer");
}

enum class Source { kNone, kTokenizerJson, kSpiece, kVocabMerges };

Source source_in(const fs::path& folder) {
  std::error_code error;
  const auto there = [&](const char* name) { return fs::is_regular_file(folder / name, error); };
  if (there("tokenizer.json")) return Source::kTokenizerJson;
  if (there("spiece.model")) return Source::kSpiece;
  if (there("vocab.json") && there("merges.txt")) return Source::kVocabMerges;
  return Source::kNone;
}

text::TokenizerConfig read_config(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  const Value json = parse_json(read_file(path).text(), path.string());
  return text::read_tokenizer_config(view_json(json), path.string());
}

text::Tokenizer read_tokenizer(const fs::path& folder, Source source,
                               const text::TokenizerConfig& config) {
  if (source == Source::kSpiece) {
    const fs::path path = folder / "spiece.model";
    return text::read_spiece(read_file(path).text(), path.string());
  }
  if (source == Source::kTokenizerJson) {
    const fs::path path = folder / "tokenizer.json";
    const Value json = parse_json(read_file(path).text(), path.string());
    return text::read_tokenizer_json(view_json(json), path.string());
  }
  const fs::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  const Value json = parse_json(read_file(vocabulary).text(), vocabulary.string());
  return text::read_clip_files(view_json(json), vocabulary.string(), read_file(merges).text(),
                               merges.string(), config.clip_tokens());
}

heddle_status* open(const heddle_host*, const char* folder, heddle_value** out) {
  return guard([&] {
    *out = nullptr;
    const fs::path path = folder;
    const Source source = source_in(path);
    if (source == Source::kNone) return;
    const text::TokenizerConfig config = with_user_errors([&] { return read_config(path); });
    *out = make_tokenizer([=] { return read_tokenizer(path, source, config); }, config);
  });
}

constexpr char kSpieceTensor[] = "spiece_model";

constexpr char kTokenTable[] = "embed_tokens.weight";

constexpr char kTekkenTensor[] = "tekken_model";

constexpr char kJsonTensor[] = "tokenizer_json";

// The bytes of a file that stands in a tensor; what: what it is called.
std::string file_in(const Checkpoint& file, const char* tensor, const std::string& name,
                    const char* what) {
  const heddle_tensor_info& info = file.info(tensor);
  const std::int64_t size = info.rank == 1 ? info.shape[0] : -1;
  if (info.dtype != HEDDLE_U8 || size < 0 || std::uint64_t(size) > kMostBytes)
    throw Error(HEDDLE_INVALID_ARGUMENT, name + " is to hold a " + what + ", at most " +
                                             std::to_string(kMostBytes) +
                                             " bytes in one axis. Download the file again.");
  std::vector<double> numbers(static_cast<std::size_t>(size));
  check(service<heddle_checkpoint_service>().numbers(file.raw(), tensor, std::uint32_t(size),
                                                     numbers.data()));
  std::string bytes;
  bytes.reserve(numbers.size());
  for (const double number : numbers)
    bytes += static_cast<char>(static_cast<unsigned char>(number));
  return bytes;
}

text::Tokenizer read_spiece_tensor(const Checkpoint& file) {
  const std::string name = file.path() + ": tensor '" + kSpieceTensor + "'";
  const std::string bytes = file_in(file, kSpieceTensor, name, "spiece.model");
  if (sees_as_gemma3(file)) {
    text::Tokenizer seeing = text::read_spiece(bytes, name, {kGemma3Picture});
    const std::string table = blocks::prefix_before(file, kTokenTable).value_or("") + kTokenTable;
    if (file.has(table) && seeing.id_count() <= std::size_t(file.size(table, 0))) return seeing;
  }
  return text::read_spiece(bytes, name);
}

text::Tokenizer read_tekken_tensor(const Checkpoint& file) {
  const std::string name = file.path() + ": tensor '" + kTekkenTensor + "'";
  const Value json = parse_json(file_in(file, kTekkenTensor, name, "tekken.json"), name);
  return text::read_tekken(view_json(json), name);
}

text::Tokenizer read_json_tensor(const Checkpoint& file) {
  const std::string name = file.path() + ": tensor '" + kJsonTensor + "'";
  const Value json = parse_json(file_in(file, kJsonTensor, name, "tokenizer.json"), name);
  return text::read_tokenizer_json(view_json(json), name);
}

heddle_status* open_inside(const heddle_host*, const heddle_checkpoint* file, heddle_value** out) {
  return guard([&] {
    *out = nullptr;
    const Checkpoint mine = Checkpoint::share(file);
    if (mine.has(kSpieceTensor))
      *out = make_tokenizer([mine] { return read_spiece_tensor(mine); }, {});
    else if (mine.has(kTekkenTensor))
      *out = make_tokenizer([mine] { return read_tekken_tensor(mine); }, {});
    else if (mine.has(kJsonTensor))
      *out = make_tokenizer([mine] { return read_json_tensor(mine); }, {});
  });
}

text::Tokenizer read_shipped(const ShippedVocabulary& vocabulary) {
  const std::string name = "the vocabulary " + std::string(vocabulary.name);
  const Value json = parse_json(vocabulary.rules, name);
  return text::read_tokenizer_json(view_json(json), name, vocabulary.packed);
}

heddle_status* open_published(const heddle_host*, const char* encoder, std::int64_t rows,
                              heddle_value** out) {
  return guard([&] {
    *out = nullptr;
    if (const ShippedVocabulary* found = find_shipped(encoder, rows))
      *out = make_tokenizer([found] { return read_shipped(*found); }, found->config());
  });
}

constexpr heddle_tokenizers_desc kFiles{
    sizeof(heddle_tokenizers_desc),
    "files",
    "tokenizer.json, spiece.model, or vocab.json with merges.txt; spiece_model, tekken_model or "
    "tokenizer_json in a model's file; "
    "the vocabularies of CLIP, T5, byT5, Qwen2.5 and Qwen3",
    &open,
    &open_inside,
    &open_published};

}  // namespace

const heddle_list* Tokenizers::list() { return descs<kFiles>(); }

}  // namespace heddle::encoders
