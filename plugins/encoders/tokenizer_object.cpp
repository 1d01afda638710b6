#include "tokenizer_object.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "tokenizer/token_texts.h"
#include "tokenizer/token_windows.h"

namespace heddle::encoders {
namespace {

// What the caller knew of it; the rest is zero.
heddle_token_windows known_part(const heddle_token_windows* given) {
  heddle_token_windows known{};
  std::memcpy(&known, given, std::min<std::size_t>(given->size, sizeof known));
  return known;
}

// Read once, when somebody asks.
class LazyTokenizer {
 public:
  LazyTokenizer(std::function<text::Tokenizer()> read, text::TokenizerConfig config)
      : read_(std::move(read)), config_(std::move(config)) {}

  text::Tokenizer get() {
    const std::lock_guard lock(reading_);
    if (!tokenizer_) tokenizer_ = read_();
    return *tokenizer_;
  }
  std::string text(std::span<const std::int32_t> ids) {
    const text::Tokenizer tokenizer = get();
    const std::lock_guard lock(reading_);
    if (!texts_) texts_.emplace(tokenizer);
    return texts_->text(ids);
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
  const std::function<text::Tokenizer()> read_;
  const text::TokenizerConfig config_;
  std::mutex reading_;
  std::optional<text::Tokenizer> tokenizer_;  // guarded by reading_
  std::optional<text::TokenTexts> texts_;     // guarded by reading_
};

LazyTokenizer& at(void* self) { return *static_cast<LazyTokenizer*>(self); }

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
      text::FindEmbedding find;
      if (wanted.embedding != nullptr)
        find = [&](std::string_view name) {
          text::EmbeddingIds ids;
          ids.count = wanted.embedding(wanted.embedding_of, {name.data(), name.size()}, &ids.first);
          return ids;
        };
      text::token_windows(
          tokenizer, {prompt.data, prompt.size}, rules_of(tokenizer, wanted, padding), syntax, work,
          [&](const text::WindowToken& token) {
            push(to, std::uint32_t(token.window), token.id, token.weight);
          },
          find);
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

heddle_status* decode(void* self, std::uint32_t count, const std::int32_t* ids,
                      void (*push)(void*, heddle_str), void* to) {
  return guard([&] {
    with_user_errors([&] {
      const std::string text = at(self).text({ids, count});
      push(to, {text.data(), text.size()});
    });
  });
}

constexpr heddle_tokenizer kTokenizer{
    sizeof(heddle_tokenizer), &encode, &windows, &end_id, &max_length, &decode};

}  // namespace

heddle_value* make_tokenizer(std::function<text::Tokenizer()> read, text::TokenizerConfig config) {
  auto tokenizer = std::make_unique<LazyTokenizer>(std::move(read), std::move(config));
  const auto drop = [](void* self) { delete static_cast<LazyTokenizer*>(self); };
  heddle_value* const made =
      services.value->make_object(HEDDLE_TOKENIZER, &kTokenizer, tokenizer.get(), drop);
  if (made == nullptr) throw std::bad_alloc();
  tokenizer.release();
  return made;
}

}  // namespace heddle::encoders
