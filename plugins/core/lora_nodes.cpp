#include "lora_nodes.h"

#include "lora_file.h"
#include "lora_targets.h"
#include "model_files.h"

namespace heddle::loaders {
namespace {

constexpr const char* kSchemes =
    "diffusers ('transformer.<module>.lora_A.weight', 'text_encoder.'), PEFT "
    "('base_model.model.<module>.lora_A.default.weight') and kohya "
    "('lora_unet_<module>.lora_down.weight', 'lora_te1_', 'lora_te2_'), each with the names of "
    "modules that the original files and diffusers use";

// A LoRA on its way into the models of one node.
class Application {
 public:
  explicit Application(LoraFile lora) : lora_(std::move(lora)), unmatched_(lora_.unknown) {}

  // The model with what the file has for it. A strength of 0 changes nothing.
  Value add_to(const Value& model, LoraPlace place, double strength) {
    const LoraTargets targets(model);
    std::vector<Patch> patches;
    for (const auto& [name, module] : lora_.modules) {
      const LoraAddress address = lora_address(name);
      if (address.place != place) continue;
      const std::size_t before = patches.size();
      const bool whole = add_patches(module, targets, address.module, strength, patches);
      if (patches.size() > before) matched_ += module.keys.size();
      if (!whole) unmatched_.insert(unmatched_.end(), module.keys.begin(), module.keys.end());
    }
    return strength == 0 || patches.empty() ? model : with_patches(model, lora_.file, patches);
  }

  // Keys of a part that the node has no model for.
  void leave_out(LoraPlace place) {
    for (const auto& [name, module] : lora_.modules)
      if (lora_address(name).place == place)
        unmatched_.insert(unmatched_.end(), module.keys.begin(), module.keys.end());
  }

  void report() const {
    const std::string where = lora_.file.path() + ": ";
    const std::string all = std::to_string(lora_.file.size());
    if (matched_ == 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  where + "none of its " + all +
                      " keys names a module of this model: " + some_of(unmatched_) +
                      ". Tried: " + kSchemes + ". It was probably made for another kind of model.");
    if (!unmatched_.empty())
      log(HEDDLE_WARN,
          where + std::to_string(unmatched_.size()) + " of its " + all +
              " keys match nothing in this model and are left out: " + some_of(unmatched_));
  }

 private:
  // False: some of the module's tensors have no place in the model.
  bool add_patches(const LoraModule& module, const LoraTargets& targets, const std::string& name,
                   double strength, std::vector<Patch>& patches) const {
    bool whole = true;
    const auto add = [&](const std::string& up, const std::string& down, double scale,
                         const char* kind) {
      if (up.empty()) return;
      const std::vector<Part>* rows = targets.find(name, kind);
      if (rows != nullptr) patches.push_back({up, down, scale, *rows});
      whole = whole && rows != nullptr;
    };
    const double scale = strength * alpha_over_rank(module);
    add(module.up, module.down, scale, "weight");
    add(module.up_bias, "", scale, "bias");
    add(module.difference, "", strength, "weight");
    add(module.bias_difference, "", strength, "bias");
    return whole;
  }

  double alpha_over_rank(const LoraModule& module) const {
    if (module.alpha.empty() || module.down.empty()) return 1;
    return lora_.file.number(module.alpha) / double(lora_.file.size(module.down, 0));
  }

  LoraFile lora_;
  std::vector<std::string> unmatched_;
  std::size_t matched_ = 0;
};

Application open_lora(Context& ctx, const Input<std::string>& name) {
  return Application(read_lora(find_file(ctx, name.widget.source, ctx[name]).string()));
}

// A name that is linked is known by what it comes from.
std::uint64_t fingerprint_of_file(Context& ctx, const Input<std::string>& name) {
  if (!ctx.has(name)) return 0;
  return fingerprint_of(ctx, {find_file(ctx, name.widget.source, ctx[name])});
}

LoraPlace place_of(const Value& encoder) {
  return encoder.get<std::string>("family", "") == "t5" ? LoraPlace::second_encoder
                                                        : LoraPlace::first_encoder;
}

Value patched_clip(Application& lora, const Value& clip, double strength) {
  std::vector<Value> encoders;
  bool first = false, second = false;
  const Value list = clip.field("encoders");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    const LoraPlace place = place_of(encoder);
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
    Application lora = open_lora(ctx, lora_name);
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
    Application lora = open_lora(ctx, lora_name);
    changed = lora.add_to(changed, LoraPlace::denoiser, strength);
    lora.report();
  }
  ctx[out] = changed;
}
std::uint64_t LoraLoaderModelOnly::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, lora_name);
}

}  // namespace heddle::loaders
