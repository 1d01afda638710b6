#include "model_patch_nodes.h"

#include "model_patches.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

template <class Node>
constexpr const Input<Tensor>* inpainted() {
  if constexpr (requires { Node::inpaint_image; }) return &Node::inpaint_image;
  return nullptr;
}

double number_or(Context& ctx, const Input<double>& input, double otherwise) {
  return ctx.has(input) ? ctx[input] : otherwise;
}

template <class Node>
void apply(Context& ctx) {
  const Value model = ctx[Node::model];
  const double strength = ctx[Node::strength];
  const auto given = [&](const Input<Tensor>* input) {
    return input != nullptr && ctx.has(*input) ? value_of(ctx[*input]) : Value();
  };
  const AppliedPatch patch{.path = "",
                           .model = Value(ctx[Node::patch]).field("model"),
                           .image = given(&Node::image),
                           .inpainted = given(inpainted<Node>()),
                           .mask = given(&Node::mask),
                           .vae = ctx[Node::vae],
                           .start_percent = number_or(ctx, Node::start_percent, 0.0),
                           .end_percent = number_or(ctx, Node::end_percent, 1.0)};
  ctx[Node::out] = strength == 0 ? model : with_model_patch(model, patch, strength);
}

// Nothing is told where something is not known. Of a picture that is not known nobody can say
// whether it is given: one has to be.
template <class Node>
void tell(Infer& question) {
  const Value model = question.part(Node::model, "");
  const auto patch = question[Node::patch];
  const auto vae = question[Node::vae];
  const auto strength = question[Node::strength];
  if (!model.is(HEDDLE_KIND_MODEL) || !patch || !vae || !strength) return;
  if (*strength == 0) return question.known(Node::out, "", model);
  const auto shown = [&](const Input<Tensor>* input) {
    const auto info = input == nullptr ? std::nullopt : question.tensor(*input);
    return info ? told_info(*info) : Value();
  };
  const AppliedPatch told{.path = "",
                          .model = Value(*patch).field("model"),
                          .image = shown(&Node::image),
                          .inpainted = shown(inpainted<Node>()),
                          .mask = shown(&Node::mask),
                          .vae = *vae,
                          .start_percent = question[Node::start_percent].value_or(0.0),
                          .end_percent = question[Node::end_percent].value_or(1.0)};
  if (told.image || told.inpainted)
    question.known(Node::out, "", with_model_patch(model, told, *strength));
}

// A video behind the mask is seen by a mask alone.
AppliedPatch video_patch(const Value& patch, const Value& vae, const Value& video,
                         const Value& mask, const Value& source, double start, double end) {
  return {.path = "",
          .model = patch.field("model"),
          .image = video,
          .inpainted = mask ? source : Value(),
          .mask = mask,
          .vae = vae,
          .start_percent = start,
          .end_percent = end};
}

}  // namespace

void QwenImageDiffsynthControlnet::execute(Context& ctx) {
  apply<QwenImageDiffsynthControlnet>(ctx);
}
void QwenImageDiffsynthControlnet::infer(Infer& question) {
  tell<QwenImageDiffsynthControlnet>(question);
}

void ZImageFunControlnet::execute(Context& ctx) { apply<ZImageFunControlnet>(ctx); }
void ZImageFunControlnet::infer(Infer& question) { tell<ZImageFunControlnet>(question); }

void MiniMaxH3FunControlNetApply::execute(Context& ctx) {
  const auto given = [&](const Input<Tensor>& input) {
    return ctx.has(input) ? value_of(ctx[input]) : Value();
  };
  const Value from = ctx[model], video = given(control_video), marked = given(mask);
  const double times = ctx[strength];
  if (times == 0 || (!video && !marked)) {
    ctx[out] = from;
    return;
  }
  ctx[out] = with_model_patch(from,
                              video_patch(ctx[patch], ctx[vae], video, marked, given(source_video),
                                          ctx[start_percent], ctx[end_percent]),
                              times);
}

// As above: nothing is told where nobody can say whether something is given.
void MiniMaxH3FunControlNetApply::infer(Infer& question) {
  const Value from = question.part(model, "");
  const auto file = question[patch];
  const auto coded = question[vae];
  const auto times = question[strength], start = question[start_percent],
             end = question[end_percent];
  if (!from.is(HEDDLE_KIND_MODEL) || !file || !coded || !times || !start || !end) return;
  if (*times == 0) return question.known(out, "", from);
  const auto shown = [&](const Input<Tensor>& input) {
    const auto info = question.tensor(input);
    return info ? told_info(*info) : Value();
  };
  const AppliedPatch told = video_patch(*file, *coded, shown(control_video), shown(mask),
                                        shown(source_video), *start, *end);
  if (told.image || told.mask) question.known(out, "", with_model_patch(from, told, *times));
}

}  // namespace heddle::samplers
