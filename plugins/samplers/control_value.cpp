#include "control_value.h"

#include <algorithm>
#include <cmath>

#include "plugins/blocks/entry_shapes.h"

namespace heddle::samplers {
namespace {

void refuse(const std::string& why) { throw Error(HEDDLE_INVALID_ARGUMENT, "control_net: " + why); }

// A text that the ControlNet alone reads. One that tells no width reads the model's texts.
void check_own_text(const heddle_tensor_info& text, const Control& control, const Value& denoiser) {
  const Value settings = model_settings(control.model), drawn = model_settings(denoiser);
  const std::int64_t width = text.rank > 0 ? text.shape[text.rank - 1] : 0,
                     wanted = settings.get<std::int64_t>(
                         "context_width", drawn.get<std::int64_t>("context_width", width));
  if (wanted == width || !model_takes(control.model, "context")) return;
  refuse("its text ('" + std::string(kControlText) + "', of CLIPTextEncodeControlnet) is " +
         std::to_string(width) + " wide, the ControlNet (" + model_family(control.model) +
         ") reads " + std::to_string(wanted) + ". Encode it with " +
         drawn.get<std::string>("text_encoder", "the CLIP of the model") + ".");
}

// Residuals that have an input each: all of them have to be there, in the same sizes.
void check_places(const Value& made, const Value& taken) {
  const auto text = [](const Value& place) {
    return std::to_string(place.item(1).as<std::int64_t>()) + " channels at 1/" +
           std::to_string(std::int64_t{1} << place.item(0).as<std::int64_t>()) + " of its sides";
  };
  for (std::uint32_t i = 0; i < made.count(); ++i) {
    const std::string input = made.key(i);
    const std::string given = text(made.item(i)),
                      wanted = taken.has(input.c_str()) ? text(taken.field(input.c_str())) : "";
    if (given == wanted) continue;
    refuse("its residual '" + input + "' has " + given + ", and the model takes " +
           (wanted.empty() ? "none there" : wanted) +
           ". Load a ControlNet that was made for this model.");
  }
}

void check_control(const Control& control, const Value& denoiser) {
  const Value settings = model_settings(control.model), drawn = model_settings(denoiser);
  const std::string family = model_family(denoiser),
                    wanted = settings.get<std::string>("controls", "");
  if (wanted != family)
    refuse("this ControlNet (" + model_family(control.model) + ") is for models of the family '" +
           wanted + "', and the model is of '" + family +
           "'. Load a ControlNet that was made for this model.");
  const auto width = settings.get<std::int64_t>("control_width", 0),
             drawn_width = drawn.get<std::int64_t>("control_width", 0);
  if (drawn_width == 0 && width != 0)
    refuse("this model (" + family +
           ") takes no residuals. Leave the ControlNet out, or load a model that takes one.");
  if (width != drawn_width)
    refuse("its residuals are " + std::to_string(width) + " wide, the streams of the model (" +
           family + ") " + std::to_string(drawn_width) +
           ". Load a ControlNet that was made for this model.");
  const auto text = settings.get<std::int64_t>("context_width", 0),
             drawn_text = drawn.get<std::int64_t>("context_width", 0);
  if (text != 0 && text != drawn_text)
    refuse("it reads texts of width " + std::to_string(text) + ", the model (" + family +
           ") those of width " + std::to_string(drawn_text) +
           ". Load a ControlNet that was made for this model.");
  check_places(settings.field("control_places"), drawn.field("control_places"));
  if (model_takes(control.model, "tokens") && !drawn.has("tokens_model"))
    refuse("this ControlNet (" + model_family(control.model) +
           ") begins with what its model makes of the latent, and this model (" + family +
           ") does not give that. Load a ControlNet that was made for this model.");
  const auto modes = settings.get<std::int64_t>("control_modes", 0);
  if (control.mode && modes > 0 && *control.mode >= modes)
    refuse("the ControlNet knows " + std::to_string(modes) + " kinds of hints, and '" +
           kUnionTypes[*control.mode + 1] +
           "' is none of them. Choose another type in SetUnionControlNetType.");
  if (settings.get<bool>("hint_pixels", false)) return;
  if (!control.vae)
    refuse("this ControlNet (" + model_family(control.model) +
           ") reads the latent of its hint, and there is no autoencoder. Link the model's VAE to "
           "the vae of ControlNetApplyAdvanced.");
  const auto latent = settings.get<std::int64_t>("latent_channels", 0);
  const auto hint = settings.get<std::int64_t>("hint_channels", latent);
  if (hint != latent && hint != latent + 1)
    refuse("this ControlNet reads hints of " + std::to_string(hint) +
           " channels; those of a picture are " + std::to_string(latent) + ", with a mask " +
           std::to_string(latent + 1) + ". Load one that reads these.");
  if (hint > latent && !control.mask)
    refuse(
        "this ControlNet is for inpainting and reads a mask. Apply it by "
        "ControlNetInpaintingAliMamaApply.");
  const auto channels = control.vae.get<std::int64_t>("channels", 0);
  if (channels != 0 && channels != latent)
    refuse("the ControlNet reads latents of " + std::to_string(latent) +
           " channels, the autoencoder makes " + std::to_string(channels) +
           ". Link the autoencoder that belongs to the model.");
}

}  // namespace

std::vector<Control> controls_of(const Value& entry) {
  std::vector<Control> controls;
  for (Value record = entry.field(kControl); record.is(HEDDLE_KIND_RECORD);
       record = record.field("previous")) {
    const Value net = record.field("control_net");
    Control control{.model = net.field("model"),
                    .mode = {},
                    .hint = record.field("hint"),
                    .mask = record.field("mask"),
                    .vae = record.field("vae"),
                    .strength = record.get<double>("strength", 1.0),
                    .start_percent = record.get<double>("start_percent", 0.0),
                    .end_percent = record.get<double>("end_percent", 1.0)};
    if (net.has("union_type")) control.mode = net.field("union_type").as<std::int64_t>();
    if (!control.model.is(HEDDLE_KIND_MODEL)) refuse("it holds no model. Link a ControlNetLoader.");
    if (model_settings(control.model).get<bool>("strength_square_root", false))
      control.strength = std::sqrt(std::max(0.0, control.strength));
    controls.push_back(std::move(control));
  }
  std::ranges::reverse(controls);
  for (std::size_t i = 0; i < controls.size(); ++i) controls[i].place = i;
  return controls;
}

Value with_union_type(const Value& control_net, const std::string& type) {
  std::int64_t place = -1;
  for (const char* const* name = kUnionTypes; *name != nullptr; ++name, ++place) {
    if (type != *name) continue;
    Record without;
    for (std::uint32_t i = 0; i < control_net.count(); ++i)
      if (control_net.key(i) != "union_type") without.set(control_net.key(i), control_net.item(i));
    if (place >= 0) without.set("union_type", value_of(place));
    return without.value();
  }
  throw Error(HEDDLE_INVALID_ARGUMENT, "type: '" + type + "' is no kind of hint");
}

std::vector<Inherited> inherited(const char* key, const std::vector<Value>& positive,
                                 const std::vector<Value>& others) {
  const bool asks = std::string_view(key) == kControl;  // whether it is for others, too
  const auto has_area = [](const Value& entry) {
    return entry.has("area") || entry.has("area_fractions") ||
           (entry.has("mask") && entry.get<bool>("set_area_to_bounds", false));
  };
  std::vector<std::size_t> givers, takers;
  for (std::size_t i = 0; i < positive.size(); ++i)
    if (!has_area(positive[i]) && positive[i].has(key) &&
        (!asks || positive[i].get<bool>(kControlsNegative, false)))
      givers.push_back(i);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (has_area(others[i])) continue;
    if (others[i].has(key)) return {};
    takers.push_back(i);
  }
  std::vector<Inherited> all;
  for (std::size_t k = 0; !takers.empty() && k < givers.size(); ++k)
    all.push_back({takers[k % takers.size()], givers[k]});
  return all;
}

Value with_inherited(const Value& positive, const Value& others) {
  if (!positive.is(HEDDLE_KIND_LIST) || !others.is(HEDDLE_KIND_LIST)) return others;
  const auto items_of = [](const Value& list) {
    std::vector<Value> items;
    for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
    return items;
  };
  const std::vector<Value> from = items_of(positive);
  std::vector<Value> to = items_of(others);
  for (const char* key : kInherited)
    for (const Inherited& one : inherited(key, from, to))
      to[one.to] = Record(to[one.to]).set(key, from[one.from].field(key)).value();
  return list_of(to);
}

void check_controls(const Value& entry, const Value& denoiser) {
  const auto own_text = blocks::info_of(entry.field(kControlText));
  for (const Control& control : controls_of(entry)) {
    check_control(control, denoiser);
    if (own_text) check_own_text(*own_text, control, denoiser);
  }
}

}  // namespace heddle::samplers
