#include "tokenizer_kind.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tokenizer/spiece.h"
#include "tokenizer/text_error.h"
#include "tokenizer/token_windows.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_merges.h"
#include "value_json.h"

namespace heddle::encoders {
namespace {

namespace fs = std::filesystem;

Value read_file(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = 256 << 20;
  return heddle::read_file(path.string(), kMostBytes, "a tokenizer");
}

// What the tokenizer library complains about is a file or a text of the user's.
template <class F>
auto with_user_errors(F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const text::TextError& error) {
    throw Error(HEDDLE_INVALID_ARGUMENT, error.what());
  } catch (const text::Cancelled& cancelled) {
    throw Error(HEDDLE_CANCELLED, cancelled.what());
  }
}

// What the caller knew of it; the rest is zero.
heddle_token_windows known_part(const heddle_token_windows* given) {
  heddle_token_windows known{};
  std::memcpy(&known, given, std::min<std::size_t>(given->size, sizeof known));
  return known;
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

// A folder's tokenizer, read once, when somebody asks.
class FolderTokenizer {
 public:
  FolderTokenizer(fs::path folder, Source source, text::TokenizerConfig config)
      : folder_(std::move(folder)), source_(source), config_(std::move(config)) {}

  text::Tokenizer get() {
    const std::lock_guard lock(reading_);
    if (!tokenizer_) tokenizer_ = read_tokenizer(folder_, source_, config_);
    return *tokenizer_;
  }
  const text::TokenizerConfig& config() const { return config_; }

  // The id that fills windows: the file's own, or else what CLIP-L (the end) and T5 (0) use.
  std::int32_t padding(const text::Tokenizer& tokenizer, std::uint32_t style) const {
    if (config_.padding)
      if (const std::optional<std::int32_t> id = tokenizer.find(*config_.padding)) return *id;
    const bool clip = style == HEDDLE_WINDOWS_CLIP;
    return clip && !tokenizer.suffix().empty() ? tokenizer.suffix().back() : 0;
  }

 private:
  const fs::path folder_;
  const Source source_;
  const text::TokenizerConfig config_;
  std::mutex reading_;
  std::optional<text::Tokenizer> tokenizer_;  // guarded by reading_
};

FolderTokenizer& at(void* self) { return *static_cast<FolderTokenizer*>(self); }

text::WindowRules rules_of(const text::Tokenizer& tokenizer, const heddle_token_windows& wanted,
                           std::int32_t padding) {
  if (wanted.style == HEDDLE_WINDOWS_CLIP) {
    text::WindowRules rules = text::clip_window_rules(
        tokenizer, padding, wanted.length > 0 ? wanted.length : text::kClipWindow);
    rules.least_length = wanted.least_length;
    return rules;
  }
  text::WindowRules rules = text::t5_window_rules(tokenizer, padding, wanted.least_length);
  if (wanted.length > 0) {
    rules.length = wanted.length;
    rules.long_segment = 1;
  }
  return rules;
}

heddle_status* encode(void* self, heddle_str utf8, void (*push)(void*, std::int32_t), void* to) {
  return guard([&] {
    with_user_errors([&] {
      text::Work work;
      at(self).get().encode({utf8.data, utf8.size}, work, [&](std::int32_t id) { push(to, id); });
    });
  });
}

heddle_status* windows(void* self, heddle_str prompt, const heddle_token_windows* given,
                       void (*push)(void*, std::uint32_t, std::int32_t, double), void* to) {
  return guard([&] {
    with_user_errors([&] {
      const heddle_token_windows wanted = known_part(given);
      const text::Tokenizer tokenizer = at(self).get();
      const std::int32_t padding =
          wanted.padding >= 0 ? wanted.padding : at(self).padding(tokenizer, wanted.style);
      const auto syntax =
          wanted.weights != 0 ? text::WeightSyntax::kParsed : text::WeightSyntax::kIgnored;
      text::Work work;
      if (wanted.cancelled != nullptr)
        work = text::Work([&] { return wanted.cancelled(wanted.cancelled_of) != 0; });
      text::token_windows(tokenizer, {prompt.data, prompt.size},
                          rules_of(tokenizer, wanted, padding), syntax, work,
                          [&](const text::WindowToken& token) {
                            push(to, std::uint32_t(token.window), token.id, token.weight);
                          });
    });
  });
}

heddle_status* end_id(void* self, std::int32_t* id) {
  return guard([&] {
    with_user_errors([&] {
      const text::Tokenizer tokenizer = at(self).get();
      *id = tokenizer.suffix().empty() ? -1 : tokenizer.suffix().back();
    });
  });
}

heddle_status* max_length(void* self, std::uint32_t* length) {
  *length = std::uint32_t(at(self).config().model_max_length.value_or(0));
  return nullptr;
}

constexpr heddle_tokenizer kTokenizer{sizeof(heddle_tokenizer), &encode, &windows, &end_id,
                                      &max_length};

heddle_status* open(const heddle_host*, const char* folder, heddle_value** out) {
  return guard([&] {
    *out = nullptr;
    const Source source = source_in(folder);
    if (source == Source::kNone) return;
    auto tokenizer = with_user_errors(
        [&] { return std::make_unique<FolderTokenizer>(folder, source, read_config(folder)); });
    const auto drop = [](void* self) { delete static_cast<FolderTokenizer*>(self); };
    *out = services.value->make_object(HEDDLE_TOKENIZER, &kTokenizer, tokenizer.get(), drop);
    if (*out == nullptr) throw std::bad_alloc();
    tokenizer.release();
  });
}

constexpr heddle_tokenizers_desc kFiles{
    sizeof(heddle_tokenizers_desc), "files",
    "tokenizer.json, spiece.model, or vocab.json with merges.txt", &open};

}  // namespace

const heddle_list* Tokenizers::list() { return descs<kFiles>(); }

}  // namespace heddle::encoders
