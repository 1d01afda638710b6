#include "lora_nodes.h"

#include "lora_application.h"
#include "model_files.h"

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
    const LoraPlace place = place_of_encoder(encoder.get<std::string>("family", ""));
    (place == LoraPlace::first_encoder ? first : second) = true;
    encoders.push_back(
        Record(encoder).set("model", lora.add_to(encoder.field("model"), place, strength)).value());
  }
  if (!first) lora.leave_out(LoraPlace::first_encoder);
  if (!second) lora.leave_out(LoraPlace::second_encoder);
  return Record(clip).set("encoders", list_of(encoders)).value();
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

}  // namespace heddle::loaders
