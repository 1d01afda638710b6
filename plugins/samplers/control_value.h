// ControlNets as a CONDITIONING carries them (its field "control", heddle/diffusion/values.h).
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::samplers {

inline constexpr const char* kControl = "control";
// True: the negative entries that have no ControlNet get this one, too.
inline constexpr const char* kControlsNegative = "control_apply_to_uncond";

// One ControlNet of an entry.
struct Control {
  Value model;
  std::optional<std::int64_t> mode;  // of a union: the kind of hint
  Value hint, mask;                  // IMAGE and MASK, or what is told of them before a run
  Value vae;                         // or empty
  double strength = 1.0, start_percent = 0.0, end_percent = 1.0;
  std::size_t place = 0;  // among the entry's
};
// The entry's, the one that was applied first at the front.
std::vector<Control> controls_of(const Value& entry);

// The kinds of hint by the names of SetUnionControlNetType, "auto" first; of the others the number
// is the place among them.
inline constexpr const char* kUnionTypes[] = {"auto",
                                              "openpose",
                                              "depth",
                                              "hed/pidi/scribble/ted",
                                              "canny/lineart/anime_lineart/mlsd",
                                              "normal",
                                              "segment",
                                              "tile",
                                              "repaint",
                                              nullptr};
// The CONTROL_NET told which kind its hints are; "auto": none. Throws at another name.
Value with_union_type(const Value& control_net, const std::string& type);

// What an entry's ControlNets read in place of its text, if there is something: a tensor (B,
// tokens, width), or what is told of one.
inline constexpr const char* kControlText = "cross_attn_controlnet";

// Which entries without a ControlNet, or without boxes (`key`), get those of which positive entry,
// as in ComfyUI: those without an area, in turn. Where there are more to give than entries that
// take, an entry stands here several times, and the last one counts. None where one of them has
// its own.
struct Inherited {
  std::size_t to = 0, from = 0;
};
std::vector<Inherited> inherited(const char* key, const std::vector<Value>& positive,
                                 const std::vector<Value>& others);
// What is inherited, in turn.
inline constexpr const char* kInherited[] = {kControl, "gligen"};
// The same of CONDITIONINGs; anything else is handed back.
Value with_inherited(const Value& positive, const Value& others);

// Throws where the entry's ControlNets are not for the denoiser, lack an autoencoder or a mask, or
// are of no use to it.
void check_controls(const Value& entry, const Value& denoiser);

}  // namespace heddle::samplers
