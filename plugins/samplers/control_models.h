// The models of ControlNets. One that is a LoRA of its denoiser or begins with its layers is no
// model by itself: it is made of both files (plugins/denoisers/unet_lora_control.h,
// qwen_fun_control.h). One call's thread.
#pragma once

#include <vector>

#include <heddle/model.hpp>

namespace heddle::samplers {

class ControlModels {
 public:
  // What is asked beside this denoiser: for the same two always the same model.
  Value asked(const Value& net, const Value& denoiser);

 private:
  struct Made {
    Value net, denoiser, model;
  };
  std::vector<Made> made_;
};

}  // namespace heddle::samplers
