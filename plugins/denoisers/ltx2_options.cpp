#include "ltx2_options.h"

#include <optional>
#include <string>

namespace heddle::denoisers {
namespace {

constexpr double kMostHeads = 65536;

// What the file's metadata tell of the transformer, or nothing.
Value ltx2_config_inside(const Checkpoint& file) {
  const std::optional<std::string> text = file.meta("config");
  if (!text) return {};
  heddle_value* out = nullptr;
  const std::string name = file.path() + ", metadata 'config'";
  check(service<heddle_json_service>().parse(services.host, {text->data(), text->size()},
                                             name.c_str(), &out));
  return Value::adopt(out).field("transformer");
}

// A number, or the first of a list.
double first_of(const Value& value, double otherwise) {
  if (value.is(HEDDLE_KIND_LIST)) return value.count() > 0 ? value.item(0).as<double>() : otherwise;
  return value && !value.is(HEDDLE_KIND_NONE) ? value.as<double>() : otherwise;
}

}  // namespace

Ltx2Options read_ltx2_options(const Checkpoint& file, const Value& config) {
  const Value inside = ltx2_config_inside(file);
  const auto field = [&](const char* original, const char* diffusers) {
    for (const Value* const from : {&config, &inside})
      for (const char* key : {original, diffusers})
        if (from->has(key)) return from->field(key);
    return Value();
  };
  const auto number = [&](double& to, const char* original, const char* diffusers) {
    to = first_of(field(original, diffusers), to);
    if (!(to > 0))
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": the model's config has '" + original +
                                               "' " + std::to_string(to) +
                                               ". It has to be above 0.");
  };
  const auto count = [&](std::int64_t& to, const char* key) {
    double told = double(to);
    number(told, key, key);
    if (!(told >= 1 && told <= kMostHeads))
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": the model's config has '" + key + "' " +
                                               std::to_string(told) +
                                               ". It has to be from 1 to 65536.");
    to = std::int64_t(told);
  };
  Ltx2Options o;
  count(o.heads, "num_attention_heads");
  count(o.audio_heads, "audio_num_attention_heads");
  number(o.eps, "norm_eps", "norm_eps");
  number(o.theta, "positional_embedding_theta", "rope_theta");
  number(o.most[0], "positional_embedding_max_pos", "pos_embed_max_pos");
  number(o.most[1], "base_height", "base_height");
  number(o.most[2], "base_width", "base_width");
  const Value sides = field("positional_embedding_max_pos", "positional_embedding_max_pos");
  for (std::uint32_t i = 1; sides.is(HEDDLE_KIND_LIST) && i < 3 && i < sides.count(); ++i)
    if (!((o.most[i] = sides.item(i).as<double>()) > 0))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": the model's config has positional_embedding_max_pos " +
                      std::to_string(o.most[i]) + ". All of its numbers have to be above 0.");
  number(o.audio_most, "audio_positional_embedding_max_pos", "audio_pos_embed_max_pos");
  number(o.gate_scale, "av_ca_timestep_scale_multiplier", "cross_attn_timestep_scale_multiplier");
  if (const Value type = field("rope_type", "rope_type")) {
    const auto told = type.as<std::string>();
    if (told != "split" && told != "interleaved")
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": the model's config has the rope_type '" +
                                          told + "'; split and interleaved are known.");
    o.is_split = told == "split";
  }
  Record both = inside.is(HEDDLE_KIND_RECORD) ? Record(inside) : Record();
  if (config.is(HEDDLE_KIND_RECORD))
    for (std::uint32_t i = 0; i < config.count(); ++i)
      both.set(config.key(i).c_str(), config.item(i));
  o.connectors = read_ltx2_connector_options(both.value());
  return o;
}

}  // namespace heddle::denoisers
