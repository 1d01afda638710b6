#include "property_nodes.h"

#include "plugins/blocks/weight_hooks.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// Behind the hooks that an entry has; `hooks` may be none.
void add_hooks(Record& entry, const Value& before, const Value& hooks) {
  if (!hooks.is(HEDDLE_KIND_LIST)) return;
  entry.set("hooks", blocks::joined_hooks({before.field("hooks"), hooks}));
}

Value hooks_given(Context& ctx, const Input<Value>& hooks) {
  return ctx.has(hooks) ? ctx[hooks] : Value();
}

// The entries with a mask and a part of the way, where these are given. As in ComfyUI the strength
// is the mask's.
template <class Node>
std::vector<Value> with_properties(Context& ctx, const Value& list) {
  const Value hooks = hooks_given(ctx, Node::hooks);
  const bool has_mask = ctx.has(Node::mask), has_range = ctx.has(Node::timesteps);
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record entry(list.item(i));
    add_hooks(entry, list.item(i), hooks);
    if (has_range) {
      const Value range = ctx[Node::timesteps];
      entry.set("start_percent", value_of(range.get<double>("start", 0.0)))
          .set("end_percent", value_of(range.get<double>("end", 1.0)));
    }
    if (has_mask)
      entry.set("mask", value_of(ctx[Node::mask]))
          .set("set_area_to_bounds", value_of(ctx[Node::set_cond_area] != "default"))
          .set("mask_strength", value_of(ctx[Node::strength]));
    entries.push_back(entry.value());
  }
  return entries;
}

std::vector<Value> items_of(const Value& list) {
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  return items;
}

Value joined_lists(std::vector<Value> first, const std::vector<Value>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return list_of(first);
}

std::vector<Value> defaults_of(const Value& list, const Value& hooks) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record entry(list.item(i));
    add_hooks(entry, list.item(i), hooks);
    entries.push_back(entry.set("default", value_of(true)).value());
  }
  return entries;
}

// The same before the run; none where something is not known.
template <class Node>
std::vector<EntryShapes> property_shapes(const Infer& question, const Input<Value>& list) {
  const auto by = question[Node::strength];
  const auto area = question[Node::set_cond_area];
  const auto mask = question.tensor(Node::mask);
  const auto range = question[Node::timesteps];
  const Value hooks = question[Node::hooks].value_or(Value());
  if (!by || !area) return {};
  std::vector<EntryShapes> entries = entry_shapes(question, list);
  for (EntryShapes& entry : entries) {
    Record scope(entry.scope);
    add_hooks(scope, entry.scope, hooks);
    if (range)
      scope.set("start_percent", value_of(range->template get<double>("start", 0.0)))
          .set("end_percent", value_of(range->template get<double>("end", 1.0)));
    if (mask)
      scope.set("set_area_to_bounds", value_of(*area != "default"))
          .set("mask_strength", value_of(*by));
    if (mask) entry.mask = mask;
    entry.scope = scope.value();
  }
  return entries;
}

std::vector<EntryShapes> default_shapes(const Infer& question, const Input<Value>& list,
                                        const Input<Value>& hooks) {
  std::vector<EntryShapes> entries = entry_shapes(question, list);
  for (EntryShapes& entry : entries) {
    Record scope(entry.scope);
    add_hooks(scope, entry.scope, question[hooks].value_or(Value()));
    entry.scope = scope.set("default", value_of(true)).value();
  }
  return entries;
}

void infer_joined(Infer& question, const Output<Value>& out, std::vector<EntryShapes> first,
                  const std::vector<EntryShapes>& second) {
  if (first.empty() || second.empty()) return;
  first.insert(first.end(), second.begin(), second.end());
  infer_entries(question, out, first);
}

}  // namespace

void ConditioningSetProperties::execute(Context& ctx) {
  ctx[out] = list_of(with_properties<ConditioningSetProperties>(ctx, ctx[cond_new]));
}

void ConditioningSetProperties::infer(Infer& question) {
  infer_entries(question, out, property_shapes<ConditioningSetProperties>(question, cond_new));
}

void ConditioningSetPropertiesAndCombine::execute(Context& ctx) {
  ctx[out] = joined_lists(items_of(ctx[cond]),
                          with_properties<ConditioningSetPropertiesAndCombine>(ctx, ctx[cond_new]));
}

void ConditioningSetPropertiesAndCombine::infer(Infer& question) {
  infer_joined(question, out, entry_shapes(question, cond),
               property_shapes<ConditioningSetPropertiesAndCombine>(question, cond_new));
}

void ConditioningSetDefaultCombine::execute(Context& ctx) {
  ctx[out] =
      joined_lists(items_of(ctx[cond]), defaults_of(ctx[cond_default], hooks_given(ctx, hooks)));
}

void ConditioningSetDefaultCombine::infer(Infer& question) {
  infer_joined(question, out, entry_shapes(question, cond),
               default_shapes(question, cond_default, hooks));
}

void PairConditioningSetProperties::execute(Context& ctx) {
  using Node = PairConditioningSetProperties;
  ctx[positive] = list_of(with_properties<Node>(ctx, ctx[positive_new]));
  ctx[negative] = list_of(with_properties<Node>(ctx, ctx[negative_new]));
}

void PairConditioningSetProperties::infer(Infer& question) {
  using Node = PairConditioningSetProperties;
  infer_entries(question, positive, property_shapes<Node>(question, positive_new));
  infer_entries(question, negative, property_shapes<Node>(question, negative_new));
}

void PairConditioningSetPropertiesAndCombine::execute(Context& ctx) {
  using Node = PairConditioningSetPropertiesAndCombine;
  ctx[positive] =
      joined_lists(items_of(ctx[positive_in]), with_properties<Node>(ctx, ctx[positive_new]));
  ctx[negative] =
      joined_lists(items_of(ctx[negative_in]), with_properties<Node>(ctx, ctx[negative_new]));
}

void PairConditioningSetPropertiesAndCombine::infer(Infer& question) {
  using Node = PairConditioningSetPropertiesAndCombine;
  infer_joined(question, positive, entry_shapes(question, positive_in),
               property_shapes<Node>(question, positive_new));
  infer_joined(question, negative, entry_shapes(question, negative_in),
               property_shapes<Node>(question, negative_new));
}

void PairConditioningSetDefaultCombine::execute(Context& ctx) {
  ctx[positive] = joined_lists(items_of(ctx[positive_in]),
                               defaults_of(ctx[positive_default], hooks_given(ctx, hooks)));
  ctx[negative] = joined_lists(items_of(ctx[negative_in]),
                               defaults_of(ctx[negative_default], hooks_given(ctx, hooks)));
}

void PairConditioningSetDefaultCombine::infer(Infer& question) {
  infer_joined(question, positive, entry_shapes(question, positive_in),
               default_shapes(question, positive_default, hooks));
  infer_joined(question, negative, entry_shapes(question, negative_in),
               default_shapes(question, negative_default, hooks));
}

void PairConditioningCombine::execute(Context& ctx) {
  ctx[positive] = joined_lists(items_of(ctx[positive_a]), items_of(ctx[positive_b]));
  ctx[negative] = joined_lists(items_of(ctx[negative_a]), items_of(ctx[negative_b]));
}

void PairConditioningCombine::infer(Infer& question) {
  infer_joined(question, positive, entry_shapes(question, positive_a),
               entry_shapes(question, positive_b));
  infer_joined(question, negative, entry_shapes(question, negative_a),
               entry_shapes(question, negative_b));
}

}  // namespace heddle::samplers
