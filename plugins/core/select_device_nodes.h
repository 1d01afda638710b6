// SelectModelDevice, SelectCLIPDevice, SelectVAEDevice: where a model runs, as a preference that
// the planner follows where such a device is. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "loader_nodes.h"
#include "value_types.h"

namespace heddle::loaders {

inline constexpr const char* kMultigpuCategory = "advanced/multigpu";
// Other names ("gpu:1") are written by hand: which there are depends on the machine.
inline constexpr Widget kDeviceOrCpu{
    .extra = R"({"multiselect": false, "options": ["default", "cpu"]})"};

struct SelectModelDevice {
  static constexpr Info info{"SelectModelDevice",
                             1,
                             "Select Model Device",
                             kMultigpuCategory,
                             "Runs a diffusion model on this device, if it is there.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<FreeChoice> device{"device", kDeviceOrCpu};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, device, out);
  static void execute(Context& ctx);
};

struct SelectCLIPDevice {
  static constexpr Info info{"SelectCLIPDevice",
                             1,
                             "Select CLIP Device",
                             kMultigpuCategory,
                             "Runs text encoders on this device, if it is there.",
                             kLoader};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<FreeChoice> device{"device", kDeviceOrCpu};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip, device, out);
  static void execute(Context& ctx);
};

struct SelectVAEDevice {
  static constexpr Widget kDevice{.extra = R"({"multiselect": false, "options": ["default"]})"};

  static constexpr Info info{"SelectVAEDevice",
                             1,
                             "Select VAE Device",
                             kMultigpuCategory,
                             "Runs an autoencoder on this device, if it is there and not a CPU.",
                             kLoader};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<FreeChoice> device{"device", kDevice};
  static constexpr Output<Value> out{"VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(vae, device, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
