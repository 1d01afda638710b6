#include "control_nodes.h"

#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// What a node adds to each entry, but for what the entry had before.
Record control_record(const Control& told, const Value& control_net) {
  Record record;
  record.set("control_net", control_net)
      .set("hint", told.hint)
      .set("strength", value_of(told.strength))
      .set("start_percent", value_of(told.start_percent))
      .set("end_percent", value_of(told.end_percent));
  if (told.mask) record.set("mask", told.mask);
  if (told.vae) record.set("vae", told.vae);
  return record;
}

// An entry, or what is known of it, with one more ControlNet.
Value controlled(const Value& entry, Record record, bool controls_negative) {
  if (entry.has(kControl)) record.set("previous", entry.field(kControl));
  return Record(entry)
      .set(kControl, record.value())
      .set(kControlsNegative, value_of(controls_negative))
      .value();
}

// The inputs of these nodes; absent ones are null.
struct Ports {
  const Input<Value>& control_net;
  const Input<Tensor>& image;
  const Input<double>& strength;
  const Input<double>*start = nullptr, *end = nullptr;
  const Input<Value>* vae = nullptr;
  const Input<Tensor>* mask = nullptr;
};

Control control_in(Context& ctx, const Ports& ports) {
  Control control{.model = {},
                  .mode = {},
                  .hint = value_of(ctx[ports.image]),
                  .mask = {},
                  .vae = {},
                  .strength = ctx[ports.strength]};
  if (ports.start != nullptr) control.start_percent = ctx[*ports.start];
  if (ports.end != nullptr) control.end_percent = ctx[*ports.end];
  if (ports.vae != nullptr && ctx.has(*ports.vae)) control.vae = ctx[*ports.vae];
  if (ports.mask != nullptr) control.mask = value_of(ctx[*ports.mask]);
  return control;
}

void apply(Context& ctx, const Ports& ports, const Input<Value>& from, const Output<Value>& to,
           bool controls_negative) {
  const Value list = ctx[from];
  const Control control = control_in(ctx, ports);
  if (control.strength == 0) {
    ctx[to] = list;
    return;
  }
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(controlled(list.item(i), control_record(control, ctx[ports.control_net]),
                                 controls_negative));
  ctx[to] = list_of(entries);
}

// Nothing is told where something is not known.
void tell(Infer& question, const Ports& ports, const Input<Value>& from, const Output<Value>& to,
          bool controls_negative) {
  const auto net = question[ports.control_net];
  const auto picture = question.tensor(ports.image);
  const auto strength = question[ports.strength];
  if (!net || !picture || !strength) return;
  Control control{.model = {},
                  .mode = {},
                  .hint = told_info(*picture),
                  .mask = {},
                  .vae = {},
                  .strength = *strength};
  for (const auto& [port, percent] : {std::pair(ports.start, &control.start_percent),
                                      std::pair(ports.end, &control.end_percent)}) {
    if (port == nullptr) continue;
    const auto known = question[*port];
    if (!known) return;
    *percent = *known;
  }
  if (ports.vae != nullptr)
    if (const auto vae = question[*ports.vae]) control.vae = *vae;
  if (ports.mask != nullptr) {
    const auto mask = question.tensor(*ports.mask);
    if (!mask) return;
    control.mask = told_info(*mask);
  }
  std::vector<EntryShapes> entries = entry_shapes(question, from);
  if (*strength != 0)
    for (EntryShapes& entry : entries)
      entry.scope = controlled(entry.scope, control_record(control, *net), controls_negative);
  infer_entries(question, to, entries);
  question.shares(to);
}

template <class Node>
void apply_to_both(Context& ctx, const Ports& ports) {
  apply(ctx, ports, Node::positive_in, Node::positive, false);
  apply(ctx, ports, Node::negative_in, Node::negative, false);
}
template <class Node>
void tell_both(Infer& question, const Ports& ports) {
  tell(question, ports, Node::positive_in, Node::positive, false);
  tell(question, ports, Node::negative_in, Node::negative, false);
}

template <class Node>
constexpr Ports ranged_ports(const Input<Tensor>* mask = nullptr) {
  return {Node::control_net, Node::image, Node::strength, &Node::start_percent, &Node::end_percent,
          &Node::vae,        mask};
}

}  // namespace

void ControlNetApply::execute(Context& ctx) {
  apply(ctx, {control_net, image, strength}, conditioning, out, true);
}
void ControlNetApply::infer(Infer& question) {
  tell(question, {control_net, image, strength}, conditioning, out, true);
}

void ControlNetApplyAdvanced::execute(Context& ctx) {
  apply_to_both<ControlNetApplyAdvanced>(ctx, ranged_ports<ControlNetApplyAdvanced>());
}
void ControlNetApplyAdvanced::infer(Infer& question) {
  tell_both<ControlNetApplyAdvanced>(question, ranged_ports<ControlNetApplyAdvanced>());
}

void ControlNetApplySD3::execute(Context& ctx) {
  apply_to_both<ControlNetApplySD3>(ctx, ranged_ports<ControlNetApplySD3>());
}
void ControlNetApplySD3::infer(Infer& question) {
  tell_both<ControlNetApplySD3>(question, ranged_ports<ControlNetApplySD3>());
}

void ControlNetInpaintingAliMamaApply::execute(Context& ctx) {
  apply_to_both<ControlNetInpaintingAliMamaApply>(
      ctx, ranged_ports<ControlNetInpaintingAliMamaApply>(&mask));
}
void ControlNetInpaintingAliMamaApply::infer(Infer& question) {
  tell_both<ControlNetInpaintingAliMamaApply>(
      question, ranged_ports<ControlNetInpaintingAliMamaApply>(&mask));
}

void SetUnionControlNetType::execute(Context& ctx) {
  ctx[out] = with_union_type(ctx[control_net], ctx[type]);
}

}  // namespace heddle::samplers
