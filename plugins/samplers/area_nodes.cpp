#include "area_nodes.h"

#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

Value list_of_numbers(std::initializer_list<double> numbers) {
  std::vector<Value> items;
  for (const double number : numbers) items.push_back(value_of(number));
  return list_of(items);
}

// Fields of every entry of a list.
using Fields = std::vector<std::pair<const char*, Value>>;

Value with_fields(const Value& list, const Fields& fields) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record entry(list.item(i));
    for (const auto& [key, value] : fields) entry.set(key, value);
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

// The same, told before the run; nothing where a field is not known.
template <class Node>
void infer_fields(Infer& question, const std::optional<Fields>& fields) {
  if (!fields) return;
  std::vector<EntryShapes> entries = entry_shapes(question, Node::conditioning);
  for (EntryShapes& entry : entries) {
    Record scope(entry.scope);
    for (const auto& [key, value] : *fields) scope.set(key, value);
    entry.scope = scope.value();
  }
  infer_entries(question, Node::out, entries);
  question.shares(Node::out);
}

// Latent cells of 8 pixels, whatever the model, as in ComfyUI.
Fields area_in_pixels(std::int64_t width, std::int64_t height, std::int64_t x, std::int64_t y,
                      double strength) {
  return {{"area",
           list_of_numbers({double(height / 8), double(width / 8), double(y / 8), double(x / 8)})},
          {"strength", value_of(strength)},
          {"set_area_to_bounds", value_of(false)}};
}

Fields area_in_parts(std::initializer_list<double> fractions, double strength) {
  return {{"area_fractions", list_of_numbers(fractions)},
          {"strength", value_of(strength)},
          {"set_area_to_bounds", value_of(false)}};
}

Fields time_range(double start, double end) {
  return {{"start_percent", value_of(start)}, {"end_percent", value_of(end)}};
}

Value range_record(double start, double end) {
  return Record().set("start", value_of(start)).set("end", value_of(end)).value();
}

}  // namespace

void ConditioningSetArea::execute(Context& ctx) {
  ctx[out] = with_fields(ctx[conditioning],
                         area_in_pixels(ctx[width], ctx[height], ctx[x], ctx[y], ctx[strength]));
}

void ConditioningSetArea::infer(Infer& question) {
  const auto w = question[width], h = question[height], left = question[x], top = question[y];
  const auto by = question[strength];
  if (w && h && left && top && by)
    infer_fields<ConditioningSetArea>(question, area_in_pixels(*w, *h, *left, *top, *by));
}

void ConditioningSetAreaPercentage::execute(Context& ctx) {
  ctx[out] = with_fields(ctx[conditioning],
                         area_in_parts({ctx[height], ctx[width], ctx[y], ctx[x]}, ctx[strength]));
}

void ConditioningSetAreaPercentage::infer(Infer& question) {
  const auto w = question[width], h = question[height], left = question[x], top = question[y];
  const auto by = question[strength];
  if (w && h && left && top && by)
    infer_fields<ConditioningSetAreaPercentage>(question,
                                                area_in_parts({*h, *w, *top, *left}, *by));
}

void ConditioningSetAreaPercentageVideo::execute(Context& ctx) {
  ctx[out] =
      with_fields(ctx[conditioning],
                  area_in_parts({ctx[temporal], ctx[height], ctx[width], ctx[z], ctx[y], ctx[x]},
                                ctx[strength]));
}

void ConditioningSetAreaPercentageVideo::infer(Infer& question) {
  const auto w = question[width], h = question[height], t = question[temporal];
  const auto left = question[x], top = question[y], first = question[z], by = question[strength];
  if (w && h && t && left && top && first && by)
    infer_fields<ConditioningSetAreaPercentageVideo>(
        question, area_in_parts({*t, *h, *w, *first, *top, *left}, *by));
}

void ConditioningSetMask::execute(Context& ctx) {
  ctx[out] = with_fields(ctx[conditioning],
                         {{"mask", value_of(ctx[mask])},
                          {"set_area_to_bounds", value_of(ctx[set_cond_area] != "default")},
                          {"mask_strength", value_of(ctx[strength])}});
}

void ConditioningSetMask::infer(Infer& question) {
  const auto by = question[strength];
  const auto area = question[set_cond_area];
  const auto shape = question.tensor(mask);
  if (!by || !area || !shape) return;
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  for (EntryShapes& entry : entries) {
    entry.mask = shape;
    entry.scope = Record(entry.scope)
                      .set("set_area_to_bounds", value_of(*area != "default"))
                      .set("mask_strength", value_of(*by))
                      .value();
  }
  infer_entries(question, out, entries);
}

void ConditioningSetTimestepRange::execute(Context& ctx) {
  ctx[out] = with_fields(ctx[conditioning], time_range(ctx[start], ctx[end]));
}

void ConditioningSetTimestepRange::infer(Infer& question) {
  const auto from = question[start], to = question[end];
  if (from && to) infer_fields<ConditioningSetTimestepRange>(question, time_range(*from, *to));
}

void ConditioningTimestepsRange::execute(Context& ctx) {
  const double from = ctx[start_percent], to = ctx[end_percent];
  ctx[range] = range_record(from, to);
  ctx[before] = range_record(0.0, from);
  ctx[after] = range_record(to, 1.0);
}

}  // namespace heddle::samplers
