#include "prompt_tokens.h"

#include <algorithm>
#include <heddle/checked.hpp>

#include "glyph_texts.h"
#include "pictures.h"
#include "token_sizes.h"

namespace heddle::encoders {
namespace {

EncoderUse use_of(const Value& clip, const char* family, const char* what) {
  const Value encoders = clip.field("encoders");
  for (std::uint32_t i = 0; i < encoders.count(); ++i) {
    const Value record = encoders.item(i);
    if (record.get<std::string>("family", "") == family)
      return {TextEncoder(record), false, false, clip.get<std::int64_t>("stop_at_layer", -1)};
  }
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("this CLIP has no ") + what +
                                           " encoder. Load it together with the other one, "
                                           "for instance with DualCLIPLoader.");
}

// CLIP's states are those before its last layer, not under the norm, unless a node says otherwise;
// T5 ends at the asked for layer already.
std::vector<EncoderUse> joined_encoders(const Value& clip, Joining joining) {
  std::vector<EncoderUse> uses;
  const Value encoders = clip.field("encoders");
  for (const char* name : {"clip_l", "clip_g", "t5xxl"})
    for (std::uint32_t i = 0; i < encoders.count(); ++i) {
      const TextEncoder encoder(encoders.item(i));
      if (encoder.name() != name) continue;
      const bool is_t5 = encoder.name() == "t5xxl";
      uses.push_back({encoder, true, !is_t5,
                      is_t5 ? -1 : clip.get<std::int64_t>("stop_at_layer", -2), joining});
    }
  return uses;
}

}  // namespace

const std::string& Prompt::of(const std::string& encoder) const {
  if (by_encoder.empty()) return text;
  const auto found = by_encoder.find(encoder);
  if (found != by_encoder.end()) return found->second;
  if (others_read_text) return text;
  std::string known;
  for (const auto& [name, given] : by_encoder) known += (known.empty() ? "" : " and ") + name;
  throw Error(HEDDLE_INVALID_ARGUMENT, "this node has texts for " + known +
                                           ", and the CLIP reads " + encoder +
                                           ". Encode the text with CLIPTextEncode.");
}

TextEncoder::TextEncoder(const Value& record)
    : record_(record),
      name_(record.get<std::string>("name", "")),
      is_clip_(record.get<std::string>("family", "") == "clip") {}

std::pair<const heddle_tokenizer*, void*> TextEncoder::tokenizer() const {
  if (!record_.has("tokenizer"))
    throw Error(HEDDLE_NOT_FOUND,
                record_.get<std::string>("tokenizer_missing",
                                         "the text encoder " + name_ + " has no tokenizer"));
  return record_.field("tokenizer").object<heddle_tokenizer>(HEDDLE_TOKENIZER);
}

heddle_token_windows TextEncoder::rules(std::int64_t least_length) const {
  return {
      .size = sizeof(heddle_token_windows),
      .style = std::uint32_t(is_clip_ ? HEDDLE_WINDOWS_CLIP : HEDDLE_WINDOWS_OPEN),
      .length = checked_cast<std::uint32_t>(record_.get<std::int64_t>("length", 0), "length"),
      .least_length = checked_cast<std::uint32_t>(least_length, "least_length"),
      .padding = checked_cast<std::int32_t>(record_.get<std::int64_t>("padding", -1), "padding"),
      .weights = record_.get<bool>("weights", true) ? 1 : 0,
      .cancelled = nullptr,
      .cancelled_of = nullptr,
      .embedding = nullptr,
      .embedding_of = nullptr};
}

std::shared_ptr<PromptEmbeddings> TextEncoder::embeddings() const {
  std::vector<std::string> places;
  const Value list = record_.field("embedding_places");
  for (std::uint32_t i = 0; i < list.count(); ++i) places.push_back(list.item(i).as<std::string>());
  const Value settings = model_settings(model());
  const bool takes_vectors = model_takes(model(), "vectors");
  return std::make_shared<PromptEmbeddings>(
      std::move(places),
      PromptEmbeddings::Reader{name_, takes_vectors ? settings.get<std::int64_t>("width", 0) : 0,
                               settings.get<std::int64_t>("vocabulary", 0)});
}

std::vector<Window> TextEncoder::pack(const std::string& prompt,
                                      const heddle_token_windows& wanted) const {
  struct Packed {
    const std::size_t length;  // of windows, where all are as long
    const bool only_first;     // the others are told, and empty
    std::vector<Window> windows = {};
  };
  Packed packed{is_clip_ ? wanted.length : 0, !is_clip_};
  const auto push = [](void* to, std::uint32_t number, std::int32_t id, double weight) {
    auto& [length, only_first, windows] = *static_cast<Packed*>(to);
    while (number >= windows.size()) windows.emplace_back().ids.reserve(length);
    if (number == 0 || !only_first) windows[number].push(id, weight);
  };
  const auto [table, self] = tokenizer();
  check(table->windows(self, {prompt.data(), prompt.size()}, &wanted, push, &packed));
  return std::move(packed.windows);
}

Value TextEncoder::vision() const {
  const Value vision = record_.field("vision");
  if (vision.is(HEDDLE_KIND_MODEL)) {
    const auto makes = model_settings(vision).get<std::int64_t>("width", 0),
               reads = model_settings(model()).get<std::int64_t>("hidden_width", 0);
    if (makes == reads && model_takes(model(), "pictures")) return vision;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the vision tower of " + name_ + " makes tokens of width " + std::to_string(makes) +
                    ", the language model beside it reads " + std::to_string(reads) +
                    ", in heads that " + (model_takes(model(), "pictures") ? "" : "do not ") +
                    "turn with rows and columns. The file is damaged.");
  }
  throw Error(HEDDLE_INVALID_ARGUMENT,
              record_.get<std::string>("vision_missing",
                                       "the text encoder " + name_ +
                                           " is to see a picture, and sees none. Load Qwen2.5-VL "
                                           "or Qwen3-VL with its vision tower, such as "
                                           "qwen_2.5_vl_7b_fp8_scaled.safetensors or "
                                           "qwen3vl_8b_bf16.safetensors, with CLIPLoader, type "
                                           "qwen_image."));
}

Value TextEncoder::projection() const {
  if (record_.has("projection")) return record_.field("projection");
  if (record_.has("projection_missing"))
    throw Error(HEDDLE_NOT_FOUND, record_.get<std::string>("projection_missing", ""));
  return {};
}

std::string TextEncoder::in_template(const std::string& prompt, const Prompt& given) const {
  constexpr std::string_view kPlace = "{}";
  const char* const field = given.pictures.empty() ? "template" : "picture_template";
  std::string text =
      given.text_template.empty() ? record_.get<std::string>(field, "") : given.text_template;
  const std::string unless = record_.get<std::string>("template_unless", "");
  const std::size_t at = text.find(kPlace);
  if (at == text.npos || (!unless.empty() && prompt.starts_with(unless))) return prompt;
  return text.replace(at, kPlace.size(),
                      prompt.empty() ? record_.get<std::string>("empty_text", "") : prompt);
}

std::vector<std::int32_t> TextEncoder::ids_of(const std::string& text) const {
  std::vector<std::int32_t> ids;
  const auto [table, self] = tokenizer();
  const auto push = [](void* to, std::int32_t id) {
    static_cast<std::vector<std::int32_t>*>(to)->push_back(id);
  };
  check(table->encode(self, {text.data(), text.size()}, push, &ids));
  return ids;
}

std::string TextEncoder::text_of(const std::vector<std::int32_t>& ids) const {
  std::string text;
  const auto [table, self] = tokenizer();
  const auto push = [](void* to, heddle_str part) {
    static_cast<std::string*>(to)->append(part.data, part.size);
  };
  constexpr std::size_t kLeast = offsetof(heddle_tokenizer, decode) + sizeof table->decode;
  if (table->size < kLeast || table->decode == nullptr)
    throw Error(HEDDLE_UNSUPPORTED, "the tokenizer of " + name_ +
                                        " cannot make a text of tokens. Use one that ships with "
                                        "heddle, or a tokenizer.json.");
  check(table->decode(self, std::uint32_t(ids.size()), ids.data(), push, &text));
  return text;
}

// As ComfyUI: what precedes the second turn, or the only one, and the turn itself where it is the
// asked for role's; without any turn all but the last token. With `keeps_turn` the second turn
// stays.
std::int64_t TextEncoder::dropped(const std::vector<std::int32_t>& ids) const {
  const std::string turn = record_.get<std::string>("turn", "");
  if (turn.empty()) return 0;
  const std::vector<std::int32_t> mark = ids_of(turn),
                                  role = ids_of(record_.get<std::string>("turn_role", ""));
  auto first = ids.end() - 1;
  const auto found = std::search(ids.begin(), ids.end(), mark.begin(), mark.end());
  if (found != ids.end()) {
    const auto second = std::search(found + 1, ids.end(), mark.begin(), mark.end());
    first = second != ids.end() ? second : found;
  }
  if (record_.get<bool>("keeps_turn", false)) return first - ids.begin();
  const auto behind = std::ptrdiff_t(mark.size() + role.size());
  if (ids.end() - first > behind &&
      std::equal(role.begin(), role.end(), first + std::ptrdiff_t(mark.size())))
    first += behind;
  return first - ids.begin();
}

void TextEncoder::place_labels(const Prompt& prompt, const std::string& text, Window& row) const {
  if (prompt.labels.empty()) return;
  std::vector<std::int32_t> ids;
  for (const std::string& label : prompt.labels) {
    const std::vector<std::int32_t> own = ids_of(label);
    ids.insert(ids.end(), own.begin(), own.end());
  }
  if (text.empty()) row = {};  // padding stands for a text where there is none
  if (!row.weights.empty()) row.weights.insert(row.weights.begin(), ids.size(), 1.0f);
  row.ids.insert(row.ids.begin(), ids.begin(), ids.end());
}

// A picture takes the place of the first token that is left for one, and has as many as its size
// makes; a token that no picture is left for is one as any other.
void TextEncoder::place_pictures(const Prompt& prompt, Windows& all) const {
  if (prompt.pictures.empty()) return;
  const Value settings = model_settings(vision());
  const bool is_video = prompt.pictures.front().is_of_video && record_.has("frame_token");
  const std::vector<std::int32_t> mark =
      ids_of(record_.get<std::string>(is_video ? "frame_token" : "picture_token", ""));
  if (mark.size() != 1)
    throw Error(HEDDLE_UNSUPPORTED, "the tokenizer of " + name_ +
                                        " has no token for pictures. Use the one that the model "
                                        "was published with.");
  Window& row = all.rows.front();
  const auto unit = settings.get<std::int64_t>("unit", 1),
             side = settings.get<std::int64_t>("side", 0),
             most = settings.get<std::int64_t>(is_video ? "frame_tokens" : "picture_tokens", 0);
  std::vector<std::int32_t> ids;
  for (const std::int32_t id : row.ids) {
    if (id != mark.front() || all.pictures.size() == prompt.pictures.size()) {
      ids.push_back(id);
      continue;
    }
    const std::size_t number = all.pictures.size();
    const blocks::GridSize from = prompt.pictures[number].size;
    const blocks::GridSize size = side > 0   ? blocks::GridSize{side, side}
                                  : most > 0 ? size_in_tokens(from, most, unit)
                                             : size_in_units(from, unit);
    all.pictures.push_back(
        {number, std::int64_t(ids.size()), size.height / unit, size.width / unit});
    ids.insert(ids.end(), std::size_t(all.pictures.back().end()) - ids.size(),
               std::int32_t(settings.get<std::int64_t>("token", id)));
  }
  row.ids = std::move(ids);
}

Window TextEncoder::empty_window() const {
  return pack("", rules(record_.get<std::int64_t>("least_length", 0))).front();
}

Windows TextEncoder::windows(const Prompt& given, const Context* ctx) const {
  const bool reads_quoted = record_.get<bool>("reads_quoted", false);
  const std::string own = reads_quoted ? glyph_text(given.of(name_)) : given.of(name_);
  if (reads_quoted && own.empty()) return {};
  const bool shows = given.shown.is_there() && !is_clip_;
  const std::string prompt = given.shown.is_there() && is_clip_ ? own : in_template(own, given);
  if (shows) return windows_with_states(*this, prompt, given.shown);
  const bool is_left_out = given.leaves_out_empty && prompt.empty();
  const bool is_masked = record_.get<bool>("masks_padding", false);
  const auto least_length = record_.get<std::int64_t>("least_length", 0);
  heddle_token_windows wanted = rules(is_left_out || is_masked ? 0 : least_length);
  if (ctx != nullptr) {
    wanted.cancelled = [](void* of) {
      return std::int32_t(static_cast<Context*>(of)->cancelled());
    };
    wanted.cancelled_of = const_cast<Context*>(ctx);
  }
  const std::shared_ptr<PromptEmbeddings> named = embeddings();
  wanted.embedding_of = named.get();
  wanted.embedding = [](void* of, heddle_str name, std::int32_t* first) {
    const text::EmbeddingIds ids = static_cast<PromptEmbeddings*>(of)->find({name.data, name.size});
    *first = ids.first;
    return ids.count;
  };
  Windows all{.rows = pack(prompt, wanted),
              .empty = {},
              .dropped = 0,
              .cut_at = 0,
              .unpadded = 0,
              .pictures = {}};
  const auto padding = record_.get<std::int64_t>("least_padding", 0),
             multiple = record_.get<std::int64_t>("length_multiple", 0);
  if (is_masked && !all.rows.empty()) {
    all.completed = std::max(least_length, all.length() + padding);
  } else if (padding > 0 || multiple > 0) {
    wanted.least_length = 0;
    const auto ids = std::int64_t(all.rows.empty() ? 0 : pack(prompt, wanted).front().ids.size());
    std::int64_t length = std::max(least_length, ids + padding);
    if (multiple > 0) length = (length + multiple - 1) / multiple * multiple;
    wanted.least_length = checked_cast<std::uint32_t>(length, "least_length");
    all.rows = pack(prompt, wanted);
  }
  if (all.rows.empty() || all.rows.front().ids.empty())
    throw Error(HEDDLE_INTERNAL, "the tokenizer of " + name_ + " gave no tokens");
  if (!is_clip_ && all.rows.size() > 1) {
    all.cut_at = wanted.length;
    all.rows.resize(1);
  }
  place_labels(given, prompt, all.rows.front());
  if (model_takes(model(), "unpadded")) {
    wanted.least_length = 0;
    all.unpadded = std::int64_t(pack(prompt, wanted).front().ids.size());
  }
  const auto empty_of = [&](std::int64_t length) {
    if (is_masked) return pack("", rules(0)).front();
    if (!record_.get<bool>("empty_is_padding", false))
      return pack(in_template("", given), rules(length)).front();
    Window window = pack("", rules(length + 1)).front();
    window.ids.erase(window.ids.begin());  // the end of a text without words
    return window;
  };
  const auto is_weighted = [](const Window& window) { return !window.weights.empty(); };
  if (std::any_of(all.rows.begin(), all.rows.end(), is_weighted))
    all.empty = empty_of(all.length());
  if (named->any() || !named->unfit().empty()) all.embeddings = named;
  place_pictures(given, all);
  all.drops_pictures = given.drops_pictures;
  all.tells_pictures = given.tells_pictures;
  all.dropped = dropped(all.rows.front().ids);
  return all;
}

std::vector<std::int32_t> TextEncoder::ends(const std::vector<const Window*>& windows) const {
  const auto [table, self] = tokenizer();
  std::int32_t end = -1;
  check(table->end_id(self, &end));
  std::vector<std::int32_t> ends;
  for (const Window* window : windows) {
    const auto found = std::find(window->ids.begin(), window->ids.end(), end);
    ends.push_back(std::int32_t(found == window->ids.end() ? window->ids.size() - 1
                                                           : found - window->ids.begin()));
  }
  return ends;
}

std::vector<EncoderUse> encoders_of(const Value& clip) {
  if (clip.has("missing")) throw Error(HEDDLE_NOT_FOUND, clip.get<std::string>("missing", ""));
  const std::string type = clip.get<std::string>("type", "");
  if (type == "flux") {
    EncoderUse t5 = use_of(clip, "t5", "T5"), l = use_of(clip, "clip", "CLIP");
    t5.cross_attn = l.pooled_output = true;
    // T5 ends at the asked for layer already. FLUX reads CLIP's pooled vector alone, which a layer
    // to stop at does not change.
    t5.stop_at_layer = l.stop_at_layer = -1;
    return {t5, l};
  }
  constexpr std::string_view kOfLanguageModels[] = {
      "qwen_image", "z_image", "flux2", "flux3", "lumina2", "krea2", "ltx2", "minimax", "qwen3.5"};
  if (std::ranges::count(kOfLanguageModels, type) > 0) {
    EncoderUse model = use_of(clip, "language_model", "language model");
    model.cross_attn = true;
    model.stop_at_layer = -1;  // it ends at the asked for layer already
    return {model};
  }
  if (type == "hunyuan_video_15") {
    EncoderUse language = use_of(clip, "language_model", "language model"),
               glyphs = use_of(clip, "t5", "byT5");
    language.cross_attn = glyphs.cross_attn = true;
    language.stop_at_layer = glyphs.stop_at_layer = -1;  // they end at the asked for layer already
    glyphs.states_as = "conditioning_byt5small";
    return {language, glyphs};
  }
  if (type == "hunyuan_video") {
    EncoderUse language = use_of(clip, "language_model", "language model"),
               l = use_of(clip, "clip", "CLIP");
    language.cross_attn = l.pooled_output = true;
    language.stop_at_layer = l.stop_at_layer = -1;  // as of flux
    return {language, l};
  }
  if (type == "sd3") return joined_encoders(clip, Joining::kSd3);
  if (type == "sdxl") return joined_encoders(clip, Joining::kSdxl);
  if (type == "chroma" || type == "wan" || type == "ltxv") {
    EncoderUse t5 = use_of(clip, "t5", "T5");
    t5.cross_attn = true;
    t5.stop_at_layer = -1;  // it ends at the asked for layer already
    return {t5};
  }
  if (type == "stable_diffusion" || type == "sam3") {
    EncoderUse l = use_of(clip, "clip", "CLIP");
    l.cross_attn = l.pooled_output = true;
    l.stop_at_layer = -1;  // its model is built for the asked for layer
    return {l};
  }
  throw Error(
      HEDDLE_UNSUPPORTED,
      "this CLIP is of type '" + type +
          "'; known are flux, stable_diffusion, sdxl, sd3, chroma, "
          "wan, ltxv, qwen_image, flux2, flux3, lumina2, krea2, ltx2, minimax, qwen3.5, z_image, "
          "hunyuan_video, hunyuan_video_15 and sam3. Load it as one of these.");
}

}  // namespace heddle::encoders
