#include "attention_pairs.h"

#include <algorithm>
#include <array>

#include <heddle/ops.hpp>

namespace heddle::samplers {
namespace {

constexpr const char* kText = "context";
constexpr const char* kPooled = "y";
constexpr const char* kGuidance = "guidance";
constexpr std::size_t kPositive = 0, kNegative = 1;  // lists of a GuidePlan

bool is_beside(const std::string& name) { return name == kText || name == kPooled; }

const Infer::Named* named(const Constants& constants, const std::string& name) {
  const auto found = std::ranges::find(constants, name, &Infer::Named::name);
  return found == constants.end() ? nullptr : &*found;
}

// Texts serve all pictures where both have one row; what the timestep's vector is made of has a row
// for each.
std::int64_t rows_for(const std::string& name, std::int64_t positive, std::int64_t negative,
                      std::int64_t items) {
  return name == kText ? std::max(positive, negative) : items;
}

// (1|rows, k, ...) of each -> (rows, 2 k, ...).
Tensor beside(Context& ctx, const Tensor& positive, const Tensor& negative, std::int64_t rows) {
  Shape shape = positive.shape();
  shape[0] = rows;
  const std::int64_t part = shape[1];
  shape[1] *= 2;
  const Tensor both = ctx.make(shape, positive.dtype());
  for (const int side : {0, 1}) {
    const Tensor& from = side == 0 ? positive : negative;
    const Tensor to = both.slice(1, side * part, (side + 1) * part);
    for (std::int64_t row = 0; row < rows; row += from.size(0))
      ops::copy_into(ctx, from, to.slice(0, row, row + from.size(0)));
  }
  return both;
}

Tensor host_floats(Context& ctx, const Shape& shape, const std::vector<float>& values) {
  const Tensor tensor = ctx.make_host(shape, HEDDLE_F32);
  std::ranges::copy(values, tensor.data<float>());
  return tensor;
}

}  // namespace

std::string unlike(const Constants& positive, const Constants& negative) {
  if (positive.size() != negative.size()) return "only one of them is told a guidance";
  for (const Infer::Named& one : positive) {
    const Infer::Named* const other = named(negative, one.name);
    if (other == nullptr) return "only one of them is told a guidance";
    if (!is_beside(one.name)) continue;
    if (one.dtype != other->dtype || one.shape.size() != other->shape.size() ||
        one.shape.size() < 2)
      return "their tensors are not of one kind";
    if (!std::equal(one.shape.begin() + 1, one.shape.end(), other->shape.begin() + 1))
      return one.name == kText ? "their texts have " + std::to_string(one.shape[1]) + " and " +
                                     std::to_string(other->shape[1]) + " tokens"
                               : std::string("their pooled texts are not of one width");
  }
  return {};
}

PairedCalls in_pairs(std::vector<ModelCall> calls, const std::vector<ModelSet>& sets,
                     const std::function<std::string(std::size_t, std::size_t)>& unlike) {
  PairedCalls result;
  const bool has_negative = std::ranges::find(sets, kNegative, &ModelSet::list) != sets.end();
  for (ModelCall& call : calls) {
    ModelCall pairs{.model = call.model, .weights = call.weights, .sets = {}, .pairs = true};
    for (const std::size_t one : call.sets) {
      if (sets[one].list != kPositive) continue;
      std::string why = has_negative ? "they differ in model, hooks or area"
                                     : "there is no negative conditioning";
      for (const std::size_t other : call.sets) {
        if (sets[other].list != kNegative || sets[other].box != sets[one].box ||
            sets[other].window != sets[one].window)
          continue;
        why = unlike(one, other);
        if (!why.empty()) continue;
        pairs.sets.push_back(one);
        pairs.sets.push_back(other);
        break;
      }
      if (result.lacking.empty()) result.lacking = std::move(why);
    }
    std::erase_if(call.sets, [&](std::size_t set) {
      return std::ranges::find(pairs.sets, set) != pairs.sets.end();
    });
    if (!pairs.sets.empty()) result.calls.push_back(std::move(pairs));
    if (!call.sets.empty()) result.calls.push_back(std::move(call));
  }
  return result;
}

Constants paired_shapes(const Constants& positive, const Constants& negative, std::int64_t items) {
  Constants paired;
  for (Infer::Named one : positive) {
    if (one.name == kGuidance) {
      one.shape = {items, 2};
    } else if (is_beside(one.name)) {
      one.shape[0] = rows_for(one.name, one.shape[0], named(negative, one.name)->shape[0], items);
      one.shape[1] *= 2;
    }
    paired.push_back(std::move(one));
  }
  paired.push_back({kNagInput, HEDDLE_F32, {5}});
  return paired;
}

Constants shapes_of(const Value& constants) {
  Constants shapes;
  for (std::uint32_t i = 0; i < constants.count(); ++i) {
    const Tensor tensor = constants.item(i).as<Tensor>();
    shapes.push_back({constants.key(i), tensor.dtype(), tensor.shape()});
  }
  return shapes;
}

Value paired_constants(Context& ctx, const NagNumbers& numbers, const Value& positive,
                       const Value& negative, std::int64_t items) {
  Record paired;
  for (std::uint32_t i = 0; i < positive.count(); ++i) {
    const std::string name = positive.key(i);
    const Tensor one = positive.item(i).as<Tensor>();
    if (name == kGuidance) {
      const float both[] = {*one.data<float>(),
                            *negative.field(kGuidance).as<Tensor>().data<float>()};
      std::vector<float> values;
      for (std::int64_t item = 0; item < items; ++item)
        values.insert(values.end(), std::begin(both), std::end(both));
      paired.set(name, value_of(host_floats(ctx, {items, 2}, values)));
    } else if (is_beside(name)) {
      const Tensor other = negative.field(name.c_str()).as<Tensor>();
      const std::int64_t rows = rows_for(name, one.size(0), other.size(0), items);
      paired.set(name, value_of(beside(ctx, one, other, rows)));
    } else {
      paired.set(name, value_of(one));
    }
  }
  const auto& [scale, alpha, tau] = numbers;
  const std::vector<float> told = {float(scale), float(1.0 - scale), float(tau), float(alpha),
                                   float(1.0 - alpha)};
  return paired.set(kNagInput, value_of(host_floats(ctx, {5}, told))).value();
}

Tensor side_of_pair(Context& ctx, const Tensor& output, int side) {
  const std::int64_t channels = output.size(1) / 2;
  return ops::contiguous(ctx, output.slice(1, side * channels, (side + 1) * channels));
}

}  // namespace heddle::samplers
