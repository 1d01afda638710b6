#include "control_nets.h"

#include <algorithm>
#include <array>
#include <utility>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"

namespace heddle::samplers {
namespace {

struct ControlStream {
  const char *input, *count, *depth;  // of the denoiser; settings of ControlNet and denoiser
};
constexpr std::array kStreams = {
    ControlStream{"control.double", "control_doubles", "controlled_doubles"},
    ControlStream{"control.single", "control_singles", "controlled_singles"},
    ControlStream{"control.first", "control_firsts", "controlled_firsts"}};

std::int64_t number_in(const Value& model, const char* setting) {
  return model_settings(model).get<std::int64_t>(setting, 0);
}

// How many residuals of a stream stand beside each other: as many as all ControlNets have, or where
// they differ or one's go round, one for each block.
std::int64_t residual_count(const ControlStream& stream, const std::vector<std::int64_t>& counts,
                            bool cycles, std::int64_t depth) {
  const bool is_same = std::ranges::all_of(counts, [&](auto n) { return n == counts.front(); });
  if (!is_same && std::string_view(stream.input) == "control.first")
    throw Error(
        HEDDLE_UNSUPPORTED,
        "these ControlNets add residuals at different numbers of blocks, and cannot be used "
        "together. Leave out one of the two.");
  return is_same && !cycles ? counts.front() : depth;
}

// Of `count` residuals that which stands at place `at` of `places`.
std::size_t residual_at(std::int64_t at, std::int64_t places, std::int64_t count, bool cycles) {
  if (cycles) return std::size_t(at % count);
  if (places == count) return std::size_t(at);
  return std::size_t(std::min(at / ((places + count - 1) / count), count - 1));
}

std::vector<float> kinds_of(const Control& control) {
  std::vector<float> kinds(std::size_t(number_in(control.model, "control_modes")), 0.0f);
  if (control.mode) kinds.at(std::size_t(*control.mode)) = 1.0f;
  return kinds;
}

// Of terms of one shape, as many at once as the op takes.
Tensor total_of(Context& ctx, std::vector<ops::Term> terms) {
  constexpr std::size_t kMost = 4;
  while (terms.size() > kMost) {
    const auto end = terms.begin() + kMost;
    const Tensor first = ops::combine(ctx, {terms.begin(), end});
    terms.erase(terms.begin(), end);
    terms.insert(terms.begin(), {1.0, first});
  }
  return ops::combine(ctx, terms);
}

bool goes_round(const Value& model) {
  return model_settings(model).get<bool>("control_cycles", false);
}

}  // namespace

Shape ControlPlace::shape(const Shape& point) const {
  Shape shape{point[0], point[2], point[3], channels};
  for (std::int64_t k = 0; k < halvings; ++k)
    for (const std::size_t side : {1, 2}) shape[side] = (shape[side] + 1) / 2;
  return shape;
}

std::vector<ControlPlace> control_places(const Value& model) {
  std::vector<ControlPlace> places;
  const Value told = model_settings(model).field("control_places");
  for (std::uint32_t i = 0; i < told.count(); ++i) {
    const Value place = told.item(i);
    places.push_back(
        {told.key(i), place.item(0).as<std::int64_t>(), place.item(1).as<std::int64_t>()});
  }
  return places;
}

std::vector<ControlCall> control_calls(const std::vector<ControlledEntry>& entries,
                                       const NoiseLevels& levels, double sigma,
                                       ControlModels& models) {
  std::vector<ControlCall> calls;
  for (std::size_t set = 0; set < entries.size(); ++set)
    for (Control& control : controls_of(entries[set].entry)) {
      if (!range_between(levels, control.start_percent, control.end_percent).holds(sigma)) continue;
      control.model = models.asked(control.model, entries[set].denoiser);
      auto call = std::ranges::find_if(
          calls, [&](const ControlCall& one) { return one.model.raw() == control.model.raw(); });
      if (call == calls.end()) call = calls.insert(calls.end(), {control.model, {}});
      call->members.push_back({set, std::move(control)});
    }
  return calls;
}

Shape token_shape(const Value& denoiser, const Shape& point) {
  const auto patch = std::max<std::int64_t>(number_in(denoiser, "patch"), 1);
  const std::int64_t rows = (point[2] + patch - 1) / patch,
                     columns = (point[3] + patch - 1) / patch;
  return {point[0], checked_product({rows, columns}, "the latent's tokens"),
          number_in(denoiser, "control_width")};
}

std::vector<Infer::Named> residual_shapes(const std::vector<ControlCall>& calls, std::size_t set,
                                          const Value& denoiser, const Shape& point) {
  std::vector<Infer::Named> shapes;
  for (const ControlStream& stream : kStreams) {
    std::vector<std::int64_t> counts;
    bool cycles = false;
    for (const ControlCall& call : calls)
      for (const ControlCall::Member& member : call.members)
        if (const std::int64_t count = number_in(call.model, stream.count);
            member.set == set && count > 0) {
          counts.push_back(count);
          cycles = cycles || goes_round(call.model);
        }
    if (counts.empty()) continue;
    Shape shape = token_shape(denoiser, point);
    shape[2] = checked_product(
        {residual_count(stream, counts, cycles, number_in(denoiser, stream.depth)), shape[2]},
        "the residuals");
    shapes.push_back({stream.input, HEDDLE_F32, shape});
  }
  for (const ControlPlace& place : control_places(denoiser))
    if (std::ranges::any_of(calls, [&](const ControlCall& call) {
          return std::ranges::find(call.members, set, &ControlCall::Member::set) !=
                     call.members.end() &&
                 std::ranges::count(control_places(call.model), place) > 0;
        }))
      shapes.push_back({place.input, HEDDLE_F32, place.shape(point)});
  return shapes;
}

void refuse_with_controls(bool has_windows, bool has_pairs) {
  if (!has_windows && !has_pairs) return;
  throw Error(HEDDLE_UNSUPPORTED,
              std::string("a ControlNet sees the whole picture by one conditioning, which does not "
                          "go together with ") +
                  (has_windows ? "context windows" : "NAGuidance") + ". Leave out one of the two.");
}

void ControlNets::close() {
  calls_.clear();
  sets_.clear();
}

Tensor ControlNets::hint_for(const Control& control, const Shape& point) {
  const Shape cells(point.begin() + 2, point.end());
  Hint hint = read_hint(ctx_, control, cells, memory_);
  for (const Encoded& known : hints_)
    if (known.model.raw() == control.model.raw() && known.place == control.place &&
        known.vae.raw() == control.vae.raw() && known.cells == cells && known.hint == hint)
      return known.tensor;
  const Tensor tensor = encoded_hint(ctx_, control, hint, point.front(), memory_);
  hints_.push_back({control.model, control.vae, control.place, cells, std::move(hint), tensor});
  return tensor;
}

Value ControlNets::constants_of(const Asked& asked, const Control& control) {
  check_controls(asked.entry, asked.denoiser);
  const ConcatPlace place{
      .items = asked.point.front(), .grid = asked.grid, .box = {}, .seed = asked.seed};
  const Value text = asked.entry.field(kControlText);
  const Value entry = text ? Record(asked.entry).set("cross_attn", text).value() : asked.entry;
  const Value read = samplers::constants_of(ctx_, entry, control.model, place);
  Record constants(read);
  if (model_settings(control.model).get<bool>("zero_pooled", false) && read.has("y")) {
    const Tensor zeros = ctx_.make_like(read.field("y").as<Tensor>());
    ops::fill(ctx_, zeros, 0);
    constants.set("y", value_of(zeros));
  }
  constants.set(kHint, value_of(hint_for(control, asked.point)));
  if (model_takes(control.model, kKinds)) {
    const std::vector<float> kinds = kinds_of(control);
    constants.set(kKinds,
                  value_of(ctx_.upload({std::int64_t(kinds.size())}, HEDDLE_F32, kinds.data())));
  }
  if (control.mode && number_in(control.model, "control_modes") > 0) {
    const auto mode = checked_cast<std::int32_t>(*control.mode, "the kind of hint");
    constants.set(kMode, value_of(ctx_.upload({1}, HEDDLE_I32, &mode)));
  }
  return constants.value();
}

void ControlNets::open(const std::vector<Asked>& sets, const NoiseLevels& levels,
                       std::span<const double> sigmas) {
  close();
  sets_ = sets;
  std::vector<ControlledEntry> entries;
  for (const Asked& asked : sets) entries.push_back({asked.entry, asked.denoiser});
  const Tensor schedule = ctx_.make_host({std::int64_t(sigmas.size())}, HEDDLE_F32);
  for (std::size_t k = 0; k < sigmas.size(); ++k)
    schedule.data<float>()[k] = levels.timestep(float(sigmas[k]));
  schedule_ = Record().set("timestep", value_of(schedule)).value();
  steps_ = checked_cast<std::uint32_t>(sigmas.size(), "steps");
  for (ControlCall& call : control_calls(entries, levels, sigmas.front(), models_)) {
    std::vector<Value> constants;
    for (const ControlCall::Member& member : call.members)
      constants.push_back(constants_of(sets[member.set], member.control));
    Call& opened = calls_.emplace_back();
    opened.asked = std::move(call);
    opened.constants = std::move(constants);
    if (!one_at_a_time_) open_sessions(opened);
  }
}

bool ControlNets::take_turns() {
  if (std::exchange(one_at_a_time_, true)) return false;
  for (Call& call : calls_) call.close();
  return !calls_.empty();
}

void ControlNets::open_sessions(Call& call) {
  call.session = std::make_unique<Session>(
      ctx_, call.asked.model, call.constants,
      model_takes(call.asked.model, "timestep") ? schedule_ : Value(), steps_);
}

// What the denoiser makes of the points before its first block. It is opened behind all others, as
// no plan tells of it. Its weights are the denoiser's, with all that changes them.
std::vector<Value> ControlNets::with_tokens(Call& call, std::uint32_t index,
                                            std::vector<Value> points) {
  if (call.tokens == nullptr) {
    const Value& denoiser = sets_[call.asked.members.front().set].denoiser;
    const Value beginning =
        rebuilt_model(ctx_, denoiser, model_settings(denoiser).field("tokens_model"));
    const std::vector<Value> nothing(points.size(), Record().value());
    call.tokens = std::make_unique<Session>(ctx_, beginning, nothing, Value(), steps_);
  }
  const std::vector<Value> made = call.tokens->step(index, points);
  for (std::size_t m = 0; m < points.size(); ++m)
    points[m] = Record(points[m]).set(kTokens, made[m].field(kTokens)).value();
  return points;
}

std::vector<Value> ControlNets::results_of(Call& call, std::uint32_t index,
                                           const std::vector<Value>& inputs) {
  std::vector<Value> seen;
  for (const ControlCall::Member& member : call.asked.members)
    seen.push_back(model_takes(call.asked.model, "x")
                       ? Record().set("x", inputs[member.set].field("x")).value()
                       : Record().value());
  if (model_takes(call.asked.model, kTokens)) seen = with_tokens(call, index, std::move(seen));
  return call.session->step(index, seen);
}

void ControlNets::keep_placed(const Control& control, const Value& results,
                              std::vector<Sum>& sums) {
  for (const ControlPlace& place : control_places(control.model)) {
    auto sum = std::ranges::find(sums, place.input, &Sum::input);
    if (sum == sums.end()) sum = sums.insert(sums.end(), {place.input, {}});
    sum->terms.push_back({control.strength, held(results.field(place.input.c_str()).as<Tensor>())});
  }
}

// What an adapter makes of one picture has one row, which is added to all rows of the others.
Tensor ControlNets::total(const Sum& sum) {
  std::vector<ops::Term> single, whole;
  for (const ops::Term& term : sum.terms) (term.x.size(0) == 1 ? single : whole).push_back(term);
  if (single.empty() || whole.empty()) return total_of(ctx_, sum.terms);
  return ops::add(ctx_, total_of(ctx_, std::move(whole)), total_of(ctx_, std::move(single)));
}

Tensor ControlNets::side_by_side(const std::vector<Made>& made, std::size_t stream,
                                 const Value& denoiser) {
  std::vector<std::int64_t> counts;
  for (const Made& one : made) counts.push_back(std::int64_t(one.parts.size()));
  const bool cycles = std::ranges::any_of(made, &Made::cycles);
  const std::int64_t count =
      residual_count(kStreams[stream], counts, cycles, number_in(denoiser, kStreams[stream].depth));
  Shape shape = made.front().parts.front().shape();
  const std::int64_t width = shape[2];
  shape[2] = checked_product({count, width}, "the residuals");
  const Tensor all = ctx_.make(shape, HEDDLE_F32);
  for (std::int64_t at = 0; at < count; ++at) {
    std::vector<ops::Term> terms;
    for (const Made& one : made)
      terms.push_back(
          {one.strength,
           one.parts[residual_at(at, count, std::int64_t(one.parts.size()), one.cycles)]});
    ops::combine_into(ctx_, terms, all.slice(2, at * width, (at + 1) * width));
  }
  return all;
}

void ControlNets::add_residuals(std::uint32_t index, std::vector<Value>& inputs,
                                const std::function<void()>& others) {
  if (one_at_a_time_) return add_now(index, inputs);
  try {
    return add_now(index, inputs);
  } catch (const Failed& failed) {
    if (services.host->status_code(failed.status) != HEDDLE_OUT_OF_MEMORY) throw;
    services.host->status_free(failed.status);
  }
  take_turns();
  others();
  add_now(index, inputs);
}

// What a session gives lies in its own memory, which is to go with it where they take turns.
Tensor ControlNets::held(const Tensor& part) {
  if (!one_at_a_time_) return part;
  const Tensor copy = ctx_.make_like(part);
  ops::copy_into(ctx_, part, copy);
  return copy;
}

void ControlNets::add_now(std::uint32_t index, std::vector<Value>& inputs) {
  // By stream, then by set.
  std::array<std::vector<std::vector<Made>>, kStreams.size()> made;
  for (auto& of_sets : made) of_sets.resize(inputs.size());
  std::vector<std::vector<Sum>> placed(inputs.size());
  for (Call& call : calls_) {
    if (call.session == nullptr) open_sessions(call);
    const std::vector<Value> results = results_of(call, index, inputs);
    for (std::size_t m = 0; m < results.size(); ++m)
      keep_placed(call.asked.members[m].control, results[m], placed[call.asked.members[m].set]);
    for (std::size_t m = 0; m < results.size(); ++m)
      for (std::size_t s = 0; s < kStreams.size(); ++s) {
        const ControlCall::Member& member = call.asked.members[m];
        Made one{.parts = {},
                 .strength = member.control.strength,
                 .cycles = goes_round(call.asked.model)};
        for (std::int64_t k = 0; k < number_in(call.asked.model, kStreams[s].count); ++k)
          one.parts.push_back(
              held(results[m]
                       .field((std::string(kStreams[s].input) + "." + std::to_string(k)).c_str())
                       .as<Tensor>()));
        if (!one.parts.empty()) made[s][member.set].push_back(std::move(one));
      }
    if (one_at_a_time_) call.close();
  }
  for (std::size_t set = 0; set < inputs.size(); ++set) {
    if (placed[set].empty()) continue;
    Record with(inputs[set]);
    for (const Sum& sum : placed[set]) with.set(sum.input, value_of(total(sum)));
    inputs[set] = with.value();
  }
  for (std::size_t s = 0; s < kStreams.size(); ++s)
    for (std::size_t set = 0; set < inputs.size(); ++set)
      if (!made[s][set].empty())
        inputs[set] = Record(inputs[set])
                          .set(kStreams[s].input,
                               value_of(side_by_side(made[s][set], s, sets_[set].denoiser)))
                          .value();
}

}  // namespace heddle::samplers
