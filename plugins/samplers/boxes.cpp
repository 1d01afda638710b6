#include "boxes.h"

#include <cmath>
#include <string>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/joined_model.hpp>

#include "conditioning.h"
#include "plugins/blocks/unet_config.h"

namespace heddle::samplers {
namespace {

constexpr const char* kGligens =
    "gligens";                    // of the configuration, and the setting: paths of files
constexpr double kHighest = 100;  // of the waves of a box, in powers from 1

// The place of a GLIGEN model among those of a model; nothing: it is not there.
std::optional<std::uint32_t> place_in(const Value& model, const Value& gligen) {
  const std::string path = model_checkpoint(gligen).path();
  const Value there = model_settings(model).field(kGligens);
  for (std::uint32_t i = 0; i < there.count(); ++i)
    if (there.item(i).as<std::string>() == path) return i;
  return std::nullopt;
}

Value list_with(const Value& list, const Value& item) {
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  items.push_back(item);
  return list_of(items);
}

struct BoxInput {
  std::string name;
  std::int64_t count = 0, phrase = 0, place = 0;
  Shape shape() const { return {1, count, phrase + place}; }
};

// None: the model reads nothing of the entry's boxes.
std::optional<BoxInput> box_input(const Value& entry, const Value& model) {
  if (!has_gligen(entry) || model_takes(model, kHint)) return std::nullopt;
  const Value told = entry.field(kGligen), gligen = told.field("model"),
              settings = model_settings(gligen);
  const std::optional<std::uint32_t> place = place_in(model, gligen);
  if (!place)
    throw Error(HEDDLE_UNSUPPORTED,
                "a conditioning of a node that patches the model carries boxes of GLIGEN, which "
                "only positive and negative ones can. Leave out GLIGENTextBoxApply there.");
  BoxInput input{.name = "gligen." + std::to_string(*place) + ".boxes",
                 .count = told.field("boxes").count(),
                 .phrase = settings.get<std::int64_t>("phrase_width", 0),
                 .place = settings.get<std::int64_t>("place_width", 0)};
  const auto most = settings.get<std::int64_t>("most_boxes", 0);
  if (input.count > most)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning carries " + std::to_string(input.count) +
                                             " boxes, and GLIGEN reads at most " +
                                             std::to_string(most) +
                                             ". Leave out some of the nodes GLIGENTextBoxApply.");
  return input;
}

// Sines and cosines of the four sides, wave by wave.
void write_waves(const std::array<float, 4>& sides, std::int64_t count, float* to) {
  for (std::int64_t wave = 0; wave < count; ++wave) {
    const auto frequency = float(std::pow(kHighest, double(wave) / double(count)));
    for (const float side : sides) *to++ = std::sin(frequency * side);
    for (const float side : sides) *to++ = std::cos(frequency * side);
  }
}

}  // namespace

Value with_gligen_of(const Value& model, const Value& entry) {
  if (!model.is(HEDDLE_KIND_MODEL) || !has_gligen(entry)) return model;
  const Value gligen = entry.field(kGligen).field("model");
  if (place_in(model, gligen)) return model;
  const Value settings = model_settings(model), built_of = settings.field(blocks::kUnetConfig),
              there = settings.field(kGligens);
  if (!built_of || model_family(model) != "unet")
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning carries boxes of GLIGEN, and the model is of '" +
                    model_family(model) +
                    "', which reads none. Leave out GLIGENTextBoxApply, or use "
                    "Stable Diffusion 1.x.");
  const Checkpoint file = model_checkpoint(gligen);
  const std::string prefix = "gligen." + std::to_string(there.count()) + ".";
  const Value told =
      Record().set("prefix", value_of(prefix)).set("file", value_of(file.path())).value();
  const Value config =
      Record(built_of).set(kGligens, list_with(built_of.field(kGligens), told)).value();
  return with_settings(joined_model(model, file, prefix, config),
                       Record(settings)
                           .set(blocks::kUnetConfig, config)
                           .set(kGligens, list_with(there, value_of(file.path())))
                           .value());
}

Guide with_boxes(Guide guide) {
  const auto joined = [&](const Value& model) {
    Value all = model;
    for (const Value& list : {guide.positive, guide.negative, guide.third}) {
      if (!list.is(HEDDLE_KIND_LIST)) continue;
      for (std::uint32_t i = 0; i < list.count(); ++i) all = with_gligen_of(all, list.item(i));
    }
    return all;
  };
  const Value model = joined(guide.model);
  if (guide.negative_model) guide.negative_model = joined(guide.negative_model);
  guide.model = model;
  return guide;
}

void add_boxes(Context& ctx, Record& constants, const Value& entry, const Value& model,
               const Shape& grid) {
  const std::optional<BoxInput> input = box_input(entry, model);
  if (!input) return;
  const Value boxes = entry.field(kGligen).field("boxes");
  const Tensor all = ctx.make_host(input->shape(), HEDDLE_F32);
  HostMemory memory(ctx);
  auto* to = all.data<float>();
  for (std::uint32_t i = 0; i < boxes.count(); ++i) {
    const Value box = boxes.item(i);
    const Tensor embeds = box.field("embeds").as<Tensor>().slice(0, 0, 1);
    std::pmr::vector<float> phrase(std::size_t(embeds.count()), &memory);
    if (embeds.count() != input->phrase)
      throw Error(HEDDLE_INVALID_ARGUMENT, "box " + std::to_string(i + 1) + " has a phrase of " +
                                               std::to_string(embeds.count()) +
                                               " numbers, and the GLIGEN model reads " +
                                               std::to_string(input->phrase) +
                                               ". Give all boxes the same CLIP and GLIGEN model.");
    read_to<float>(ctx, embeds, phrase);
    to = std::copy(phrase.begin(), phrase.end(), to);
    const auto cells = [&](const char* key) { return double(box.get<std::int64_t>(key, 0)); };
    const double height = double(grid[grid.size() - 2]), width = double(grid.back());
    write_waves({float(cells("x") / width), float(cells("y") / height),
                 float((cells("x") + cells("width")) / width),
                 float((cells("y") + cells("height")) / height)},
                input->place / 8, to);
    to += input->place;
  }
  constants.set(input->name, value_of(all));
}

void tell_boxes(Constants& constants, const Value& scope, const Value& model) {
  if (const std::optional<BoxInput> input = box_input(scope, model))
    constants.push_back({input->name, HEDDLE_F32, input->shape()});
}

}  // namespace heddle::samplers
