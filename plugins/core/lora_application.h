// A LoRA on its way into the models of a pipeline. One call's thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <heddle/weight_change.hpp>

#include "lora_file.h"
#include "lora_targets.h"

namespace heddle::loaders {

// The part of a pipeline that a text encoder is: T5 and CLIP-G stand beside another one.
LoraPlace place_of_encoder(const Value& model);

class LoraApplication {
 public:
  explicit LoraApplication(LoraFile lora) : lora_(std::move(lora)), unmatched_(lora_.unknown) {}

  // The model with what the file has for it. A strength of 0 changes nothing.
  Value add_to(const Value& model, LoraPlace place, double strength);
  // Keys of a part that the node has no model for.
  void leave_out(LoraPlace place);

  // Whether the file has modules of this part.
  bool has(LoraPlace place) const;
  // Throws where none of the keys has named a module of the models so far.
  void require_match() const;
  // The same, and warns of keys that match nothing.
  void report() const;

 private:
  // What a LoRA does to a model: changes of its weights, and products that have more columns than
  // the weight has that the model can widen.
  struct Changes {
    std::vector<Patch> patches, wider;
    std::vector<WeightChange> forms;
    std::size_t count() const { return patches.size() + wider.size() + forms.size(); }
  };
  bool add_patches(const LoraModule& module, const LoraTargets& targets, const std::string& name,
                   double strength, const Value& model, Changes& changes) const;
  bool is_wider(const Patch& patch, const Value& model) const;
  Value widened(const Value& model, const Patch& product) const;
  void leave(const LoraModule& module);  // its keys match nothing
  double alpha_over_rank(const LoraModule& module) const;

  LoraFile lora_;
  std::vector<std::string> unmatched_;
  std::set<const LoraModule*> left_;  // whose keys are among them
  std::size_t matched_ = 0;
};

}  // namespace heddle::loaders
