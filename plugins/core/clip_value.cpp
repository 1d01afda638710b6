#include "clip_value.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <heddle/diffusion/tokenizer.h>

#include "language_texts.h"
#include "model_files.h"
#include "model_roles.h"

namespace heddle::loaders {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kClipLength = 77;
constexpr std::int64_t kT5LeastLength = 256;
constexpr std::int64_t kSd3T5LeastLength = 77;
constexpr std::int64_t kUnpaddedT5LeastLength = 1;
constexpr std::int64_t kWanTextLength = 512;
constexpr std::int64_t kOpenClipPadding = 0;

struct Kind {
  std::string name, family;
};

// By the model that its family built. ComfyUI tells CLIP-L, H and G apart by their depth.
Kind kind_of(const Value& model, const std::string& where) {
  const Value settings = model_settings(model);
  const std::string family = settings.get<std::string>("family", "");
  if (family == "t5") {
    const auto kind = settings.get<std::string>("kind", "");
    return {kind == "umt5" ? "umt5xxl" : kind == "byt5" ? "byt5" : "t5xxl", family};
  }
  if (is_language_model(model)) return {language_name(model), family};
  if (family == "clip") {
    const std::int64_t layers = settings.get<std::int64_t>("layers", 0);
    return {layers > 30 ? "clip_g" : layers > 22 ? "clip_h" : "clip_l", family};
  }
  throw Error(HEDDLE_UNSUPPORTED,
              where + ": a text encoder of the family '" + family +
                  "', which the loaders do not know. Known: clip, t5, language_model.");
}

// What the first plugin makes that can: `open` takes a heddle_tokenizers_desc and gives a status.
// Empty when nobody can.
template <class Open>
Value first_tokenizer(Open&& open) {
  heddle_value* found = nullptr;
  find_provided<heddle_tokenizers_desc>(HEDDLE_TOKENIZERS, [&](const heddle_tokenizers_desc& desc) {
    heddle_tokenizers_desc known{};  // what the plugin does not know of it is zero
    std::memcpy(&known, &desc, std::min<std::size_t>(desc.size, sizeof known));
    check(open(known, &found));
    return found != nullptr;
  });
  return Value::adopt(found);
}

Value open_tokenizer(const fs::path& folder) {
  return first_tokenizer([&](const heddle_tokenizers_desc& desc, heddle_value** found) {
    return desc.open(services.host, folder.c_str(), found);
  });
}

Value tokenizer_inside(const Checkpoint& file) {
  return first_tokenizer(
      [&](const heddle_tokenizers_desc& desc, heddle_value** found) -> heddle_status* {
        if (desc.open_inside == nullptr) return nullptr;
        return desc.open_inside(services.host, file.raw(), found);
      });
}

std::int64_t rows_of(const Value& model) {
  return model_settings(model).get<std::int64_t>("vocabulary", 0);
}

Value published_tokenizer(const Kind& kind, const Value& model) {
  const std::int64_t rows = rows_of(model);
  return first_tokenizer(
      [&](const heddle_tokenizers_desc& desc, heddle_value** found) -> heddle_status* {
        if (desc.open_published == nullptr) return nullptr;
        return desc.open_published(services.host, kind.name.c_str(), rows, found);
      });
}

std::int64_t max_length_of(const Value& tokenizer) {
  const auto [table, self] = tokenizer.object<heddle_tokenizer>(HEDDLE_TOKENIZER);
  std::uint32_t length = 0;
  check(table->max_length(self, &length));
  return length;
}

// What to fetch: the public files that these encoders were trained with.
std::string advice(const std::string& name) {
  const std::string files =
      name == "t5xxl"     ? "spiece.model (or tokenizer.json) of google/t5-v1_1-xxl"
      : name == "umt5xxl" ? "spiece.model (or tokenizer.json) of google/umt5-xxl"
      : name == "clip_l"  ? "tokenizer.json (or vocab.json and merges.txt) of "
                            "openai/clip-vit-large-patch14"
      : name == "qwen3.5" ? "tokenizer.json of Qwen/Qwen3.5-9B"
      : name == "llama3"  ? "tokenizer.json of the text encoder of HunyuanVideo 1.0"
                          : "tokenizer.json of the model it was published with";
  return "Put " + files + " into the folder tokenizers/" + name + " of a models folder.";
}

std::string missing_text(const Kind& kind, const fs::path& file, const Value& model) {
  const std::int64_t rows = rows_of(model);
  return file.string() + ": the text encoder " + kind.name +
         " needs its tokenizer. None that ships with heddle is for its table of " +
         std::to_string(rows) + " tokens, and no tokenizer is in the file. Looked for: " +
         (file.parent_path() / kind.name).string() + " and tokenizers/" + kind.name +
         " in the models folders. " + advice(kind.name);
}

Record encoder_record(Context& ctx, const Kind& kind, const Value& model) {
  Record record;
  record.set("embedding_places", places_of(ctx, "embeddings"));
  record.set("name", value_of(kind.name)).set("family", value_of(kind.family)).set("model", model);
  if (kind.name == "clip_g" || kind.name == "clip_h")
    record.set("padding", value_of(kOpenClipPadding));
  return record;
}

// A language model's vision tower, where its file has one, or what to say when it is to see
// pictures.
void add_vision(Context& ctx, Record& record, const Checkpoint& file, const Value& config) {
  const std::string name = record.value().get<std::string>("name", "");
  if (name == "gemma2") {
    record.set("vision_missing",
               value_of(file.path() +
                        ": Gemma 2 sees no pictures. Leave the picture away, or load Gemma 3 or 4, "
                        "Qwen2.5-VL or Qwen3-VL."));
    return;
  }
  const bool is_gemma3 = name == "gemma3", is_gemma4 = name.starts_with("gemma4");
  const Value vision = build_if_there(ctx, "vision_encoder", file, config);
  // SigLIP's tower alone, without the projector, makes nothing that Gemma 3 reads.
  const bool is_whole = vision && (!is_gemma3 || model_settings(vision).get<std::string>(
                                                     "family", "") == "gemma3_vision");
  if (is_whole) {
    record.set("vision", vision);
    return;
  }
  const char* const file_with_both = name == "qwen3vl"   ? "qwen3vl_8b_bf16.safetensors"
                                     : name == "qwen3.5" ? "qwen3.5_9b_bf16.safetensors"
                                     : is_gemma3         ? "gemma_3_12B_it.safetensors"
                                     : is_gemma4         ? "gemma4_e2b_it_int8_convrot.safetensors"
                                                         : "qwen_2.5_vl_7b_fp8_scaled.safetensors";
  const char* const tensors = is_gemma3   ? "vision_model.*' and 'multi_modal_projector.*"
                              : is_gemma4 ? "vision_model.*"
                                          : "visual.*";
  record.set("vision_missing",
             value_of(file.path() + ": this text encoder has no vision tower (tensors '" + tensors +
                      "'), and is to see "
                      "a picture. Load a file with both, such as " +
                      file_with_both +
                      "; of gguf files the tower is a file apart (mmproj), which is not read."));
}

// OpenCLIP's H is read before its last layer, under the final norm; files without that layer, as
// those of diffusers, at their end.
constexpr std::int64_t kLayersOfH = 24;
Value read_as_trained(Context& ctx, const Kind& kind, const Value& model, const Value& config) {
  if (kind.name != "clip_h" || model_settings(model).get<std::int64_t>("layers", 0) < kLayersOfH)
    return model;
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("normed_layer", value_of(std::int64_t{-2}));
  return rebuilt_model(ctx, model, changed.value());
}

// Any of CLIP-L, CLIP-G and T5, each once. T5 reads shorter texts than FLUX's.
Value sd3_clip(const std::vector<Value>& encoders, const std::string& where) {
  std::vector<Value> kept;
  std::set<std::string> names;
  for (const Value& encoder : encoders) {
    const std::string name = encoder.get<std::string>("name", "");
    if (name != "clip_l" && name != "clip_g" && name != "t5xxl")
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  where + ": the text encoder " + name +
                      " is none of a CLIP of type 'sd3', which has clip_l, clip_g and t5xxl, or "
                      "some of them.");
    if (!names.insert(name).second)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  where + ": the text encoder " + name + " is there twice. Name another file.");
    kept.push_back(name == "t5xxl"
                       ? Record(encoder).set("least_length", value_of(kSd3T5LeastLength)).value()
                       : encoder);
  }
  return Record().set("type", value_of("sd3")).set("encoders", list_of(kept)).value();
}

// T5 without padding, for "chroma" and "ltxv". Chroma's texts are weighed against nothing but
// padding. LTX-Video's padding is masked, in the encoder and in the model, so nobody sees it.
Value unpadded_clip(const std::string& type, const std::vector<Value>& encoders,
                    const std::string& where) {
  const std::string name =
      encoders.size() == 1 ? encoders.front().get<std::string>("name", "") : "several at once";
  if (name != "t5xxl")
    throw Error(HEDDLE_INVALID_ARGUMENT, where + ": the text encoder " + name +
                                             " makes no CLIP of type '" + type +
                                             "', which has t5xxl "
                                             "alone. Change the type, or the file.");
  const Value t5 = Record(encoders.front())
                       .set("least_length", value_of(kUnpaddedT5LeastLength))
                       .set("empty_is_padding", value_of(type == "chroma"))
                       .value();
  return Record().set("type", value_of(type)).set("encoders", list_of({t5})).value();
}

// UMT5 alone. The model reads a fixed number of tokens; padding is masked, and its states are
// zeros.
Value wan_clip(const std::vector<Value>& encoders, const std::string& where) {
  const std::string name =
      encoders.size() == 1 ? encoders.front().get<std::string>("name", "") : "several at once";
  if (name != "umt5xxl")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                where + ": the text encoder " + name +
                    " makes no CLIP of type 'wan', which has UMT5-XXL alone, such as "
                    "umt5_xxl_fp8_e4m3fn_scaled.safetensors. Change the type, or the file.");
  const Value umt5 = Record(encoders.front())
                         .set("least_length", value_of(kWanTextLength))
                         .set("masks_padding", value_of(true))
                         .value();
  return Record().set("type", value_of("wan")).set("encoders", list_of({umt5})).value();
}

Value with_lengths(Record record, std::int64_t length, std::int64_t least_length) {
  return record.set("length", value_of(length)).set("least_length", value_of(least_length)).value();
}

// The tokenizer of an encoder out of a single file, or what to say where there is none.
void add_tokenizer(Context& ctx, Record& record, const Kind& kind, const Value& model,
                   const Checkpoint& file, const Checkpoint* beside) {
  const fs::path path = file.path();
  Value tokenizer = open_tokenizer(path.parent_path() / kind.name);
  if (!tokenizer)
    if (const auto folder = try_find(ctx, "tokenizers", kind.name))
      tokenizer = open_tokenizer(*folder);
  if (!tokenizer) tokenizer = tokenizer_inside(file);
  if (!tokenizer && beside != nullptr) tokenizer = tokenizer_inside(*beside);
  if (!tokenizer) tokenizer = published_tokenizer(kind, model);
  if (tokenizer)
    record.set("tokenizer", tokenizer);
  else
    record.set("tokenizer_missing", value_of(missing_text(kind, path, model)));
}

}  // namespace

Value single_file_encoder(Context& ctx, const Checkpoint& file, const Checkpoint* beside) {
  const Value plain = build_for(ctx, "text_encoder", file, Value());
  const Kind kind = kind_of(plain, file.path());
  const Value model = read_as_trained(ctx, kind, plain, Value());
  Record record = encoder_record(ctx, kind, model);
  add_tokenizer(ctx, record, kind, model, file, beside);
  if (is_language_model(model)) add_vision(ctx, record, file, Value());
  if (kind.family == "clip") return with_lengths(std::move(record), kClipLength, 0);
  return with_lengths(std::move(record), 0, is_language_model(model) ? 0 : kT5LeastLength);
}

Value folder_encoder(Context& ctx, const FolderPart& where) {
  const fs::path folder = where.folder / where.part;
  const Value config = read_json_if_there(folder / "config.json");
  const Checkpoint file = Checkpoint::open(folder.string());
  const Value plain = build_for(ctx, "text_encoder", file, config);
  const Kind kind = kind_of(plain, folder.string());
  const Value model = read_as_trained(ctx, kind, plain, config);
  const fs::path files = where.folder / where.tokenizer;
  const bool is_language = is_language_model(model);
  // vocab.json and merges.txt of a language model lack the rules that CLIP's go without.
  Value tokenizer;
  if (!is_language || fs::exists(files / "tokenizer.json")) tokenizer = open_tokenizer(files);
  if (!tokenizer && is_language) tokenizer = published_tokenizer(kind, model);
  if (!tokenizer)
    throw Error(HEDDLE_NOT_FOUND,
                files.string() +
                    ": there is neither tokenizer.json nor spiece.model nor vocab.json "
                    "with merges.txt. The download is probably incomplete.");
  Record record = encoder_record(ctx, kind, model);
  record.set("tokenizer", tokenizer).set("config", config);
  if (is_language) {
    add_vision(ctx, record, file, config);
    return with_lengths(std::move(record), 0, 0);
  }
  const std::int64_t length = max_length_of(tokenizer);
  // The folder's texts are cut and padded to one length, as the model was trained.
  if (kind.family == "clip")
    return with_lengths(std::move(record), length > 0 ? length : kClipLength, 0);
  return with_lengths(std::move(record), length, length > 0 ? length : kT5LeastLength);
}

std::string clip_type(const std::vector<Value>& encoders, const std::string& where) {
  std::vector<std::string> names;
  for (const Value& encoder : encoders) names.push_back(encoder.get<std::string>("name", ""));
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (names.size() == 3 && has("clip_l") && has("clip_g") && has("t5xxl")) return "sd3";
  if (names.size() == 2 && has("clip_l") && has("t5xxl")) return "flux";
  if (names.size() == 2 && has("clip_l") && has("clip_g")) return "sdxl";
  if (names.size() == 1 && has("clip_g")) return "sdxl";
  if (names.size() == 1 && has("umt5xxl")) return "wan";
  if (names.size() == 1 && (has("clip_l") || has("clip_h"))) return "stable_diffusion";
  std::string listed;
  for (const std::string& name : names) listed += (listed.empty() ? "" : ", ") + name;
  throw Error(HEDDLE_UNSUPPORTED,
              where + ": the text encoders " + (listed.empty() ? "(none)" : listed) +
                  " are no set that is known. Known: clip_l with t5xxl (flux), clip_l or "
                  "clip_h alone (stable_diffusion), clip_l with clip_g, or clip_g alone (sdxl), "
                  "clip_l, clip_g and t5xxl (sd3, also without some of them), "
                  "t5xxl alone (chroma, ltxv), umt5xxl alone (wan), "
                  "qwen2.5 alone (qwen_image), qwen3 alone (lumina2, flux2), "
                  "mistral3 alone (flux2), qwen3vl alone (krea2, flux3, qwen_image), gemma3 with a "
                  "projection (ltxv).");
}

Value clip_value(const std::string& type, const std::vector<Value>& encoders,
                 const std::string& where) {
  if (type == "sd3") return sd3_clip(encoders, where);
  if (type == "chroma" || type == "ltxv") return unpadded_clip(type, encoders, where);
  if (type == "wan") return wan_clip(encoders, where);
  const std::string found = clip_type(encoders, where);
  // SDXL's refiner has no type of its own in loaders.
  if (type == "stable_diffusion" && found == "sdxl" && encoders.size() == 1)
    return clip_value(found, encoders, where);
  if (found != type)
    throw Error(HEDDLE_INVALID_ARGUMENT, where + ": these encoders make a CLIP of type '" + found +
                                             "', asked for is '" + type +
                                             "'. Change the type, or the files.");
  return Record().set("type", value_of(type)).set("encoders", list_of(encoders)).value();
}

bool is_language_encoder(const Value& encoder) { return is_language_model(encoder.field("model")); }

Value language_clip(Context& ctx, const Value& encoder, const std::string& type,
                    const std::string& where) {
  const LanguageUse use =
      language_use(ctx, encoder.field("model"), encoder.field("config"), type, where);
  Record record(encoder);
  const Value fields = use.encoder.value();
  for (std::uint32_t i = 0; i < fields.count(); ++i) record.set(fields.key(i), fields.item(i));
  return Record()
      .set("type", value_of(use.clip_type))
      .set("encoders", list_of({record.value()}))
      .value();
}

Value detection_clip(Context& ctx, const Checkpoint& file) {
  const Value config = Record().set("hidden_act", value_of("quick_gelu")).value();
  const Value model = build_for(ctx, "text_encoder", file, config);
  const Kind kind{"clip_l", "clip"};  // whose tokenizer it has
  Record record = encoder_record(ctx, kind, model);
  add_tokenizer(ctx, record, kind, model, file, nullptr);
  record.set("name", value_of("sam3_clip"))
      .set("padding", value_of(kOpenClipPadding))
      .set("weights", value_of(false));
  const Value encoder = with_lengths(
      std::move(record), model_settings(model).get<std::int64_t>("positions", kClipLength), 0);
  return Record().set("type", value_of("sam3")).set("encoders", list_of({encoder})).value();
}

Value no_clip(const std::string& reason) {
  return Record()
      .set("type", value_of("none"))
      .set("encoders", list_of({}))
      .set("missing", value_of(reason))
      .value();
}

}  // namespace heddle::loaders
