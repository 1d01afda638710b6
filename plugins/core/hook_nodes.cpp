#include "hook_nodes.h"

#include "model_files.h"
#include "plugins/blocks/weight_hooks.h"
#include "weight_hooks.h"

namespace heddle::loaders {
namespace {

struct Strengths {
  double model = 0.0, clip = 0.0;
};

template <class Node>
Value hook_of_file(Context& ctx, const char* kind, const Input<std::string>& name,
                   const Strengths& strengths) {
  const Value before = ctx.has(Node::prev_hooks) ? ctx[Node::prev_hooks] : Value();
  // Without strengths there are the hooks before, even if these are none, as in ComfyUI.
  if (strengths.model == 0 && strengths.clip == 0)
    return before.is(HEDDLE_KIND_LIST) ? before : list_of({});
  return blocks::with_hook(before, {.kind = kind,
                                    .file = find_file(ctx, name.widget.source, ctx[name]).string(),
                                    .strength_model = strengths.model,
                                    .strength_clip = strengths.clip});
}

}  // namespace

void CreateHookLora::execute(Context& ctx) {
  ctx[out] = hook_of_file<CreateHookLora>(ctx, kLoraHook, lora_name,
                                          {ctx[strength_model], ctx[strength_clip]});
}
std::uint64_t CreateHookLora::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, lora_name);
}

void CreateHookLoraModelOnly::execute(Context& ctx) {
  ctx[out] =
      hook_of_file<CreateHookLoraModelOnly>(ctx, kLoraHook, lora_name, {ctx[strength_model], 0.0});
}
std::uint64_t CreateHookLoraModelOnly::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, lora_name);
}

void CreateHookModelAsLora::execute(Context& ctx) {
  ctx[out] = hook_of_file<CreateHookModelAsLora>(ctx, kModelHook, ckpt_name,
                                                 {ctx[strength_model], ctx[strength_clip]});
}
std::uint64_t CreateHookModelAsLora::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, ckpt_name);
}

void CreateHookModelAsLoraModelOnly::execute(Context& ctx) {
  ctx[out] = hook_of_file<CreateHookModelAsLoraModelOnly>(ctx, kModelHook, ckpt_name,
                                                          {ctx[strength_model], 0.0});
}
std::uint64_t CreateHookModelAsLoraModelOnly::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, ckpt_name);
}

}  // namespace heddle::loaders
