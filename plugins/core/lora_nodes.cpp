#include "lora_nodes.h"

#include "clip_value.h"
#include "lora_application.h"
#include "model_files.h"
#include "plugins/blocks/dynamic_inputs.h"

namespace heddle::loaders {
namespace {

LoraApplication open_lora(Context& ctx, const Input<std::string>& name) {
  return LoraApplication(read_lora(find_file(ctx, name.widget.source, ctx[name]).string()));
}

Value patched_clip(LoraApplication& lora, const Value& clip, double strength) {
  std::vector<Value> encoders;
  bool first = false, second = false;
  const Value list = clip.field("encoders");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    const LoraPlace place = place_of_encoder(encoder.field("model"));
    (place == LoraPlace::first_encoder ? first : second) = true;
    encoders.push_back(with_models(
        encoder, [&](const Value& model) { return lora.add_to(model, place, strength); }));
  }
  if (!first) lora.leave_out(LoraPlace::first_encoder);
  if (!second) lora.leave_out(LoraPlace::second_encoder);
  return Record(clip).set("encoders", list_of(encoders)).value();
}

struct LoraRow {
  std::filesystem::path file;
  double strength;
};
// Those that count.
std::vector<LoraRow> enabled_rows(Context& ctx, const Input<blocks::Grouped>& loras) {
  std::vector<LoraRow> rows;
  for (const Value& row : blocks::grouped_rows(ctx, loras.port)) {
    const auto name = row.get<std::string>("lora_name", "");
    const double strength = row.get<double>("strength", 1.0);
    if (!name.empty() && strength != 0 && row.get<bool>("enabled", true))
      rows.push_back({find_file(ctx, "loras", name), strength});
  }
  return rows;
}
std::uint64_t fingerprint_of_rows(Context& ctx, const Input<blocks::Grouped>& loras) {
  std::vector<std::filesystem::path> files;
  for (const LoraRow& row : enabled_rows(ctx, loras)) files.push_back(row.file);
  return files.empty() ? 0 : fingerprint_of(ctx, files);
}

}  // namespace

void LoraLoader::execute(Context& ctx) {
  const double for_model = ctx[strength_model], for_clip = ctx[strength_clip];
  Value changed = ctx[model], changed_clip = ctx[clip];
  if (for_model != 0 || for_clip != 0) {
    LoraApplication lora = open_lora(ctx, lora_name);
    changed = lora.add_to(changed, LoraPlace::denoiser, for_model);
    changed_clip = patched_clip(lora, changed_clip, for_clip);
    lora.report();
  }
  ctx[model_out] = changed;
  ctx[clip_out] = changed_clip;
}
std::uint64_t LoraLoader::fingerprint(Context& ctx) { return fingerprint_of_file(ctx, lora_name); }

void LoraLoaderModelOnly::execute(Context& ctx) {
  const double strength = ctx[strength_model];
  Value changed = ctx[model];
  if (strength != 0) {
    LoraApplication lora = open_lora(ctx, lora_name);
    changed = lora.add_to(changed, LoraPlace::denoiser, strength);
    lora.report();
  }
  ctx[out] = changed;
}
std::uint64_t LoraLoaderModelOnly::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, lora_name);
}

void LoadLoraModel::execute(Context& ctx) {
  Value changed = ctx[model];
  for (const LoraRow& row : enabled_rows(ctx, loras)) {
    LoraApplication lora(read_lora(row.file.string()));
    changed = lora.add_to(changed, LoraPlace::denoiser, row.strength);
    lora.report();
  }
  ctx[out] = changed;
}
std::uint64_t LoadLoraModel::fingerprint(Context& ctx) { return fingerprint_of_rows(ctx, loras); }

void LoadLoraTextEncoder::execute(Context& ctx) {
  Value changed = ctx[clip];
  for (const LoraRow& row : enabled_rows(ctx, loras)) {
    LoraApplication lora(read_lora(row.file.string()));
    changed = patched_clip(lora, changed, row.strength);
    lora.report();
  }
  ctx[out] = changed;
}
std::uint64_t LoadLoraTextEncoder::fingerprint(Context& ctx) {
  return fingerprint_of_rows(ctx, loras);
}

}  // namespace heddle::loaders
