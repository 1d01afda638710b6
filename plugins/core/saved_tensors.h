// The weights of models under the names that ComfyUI gives them in files, whichever layout was
// loaded. Reads headers only. One call's thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model_weights.hpp>

namespace heddle::loaders {

// All of a model's, each with this in front of its name. Throws HEDDLE_UNSUPPORTED for one with a
// layer that a LoRA makes wider.
void add_tensors(const Value& model, const std::string& prefix, std::vector<SavedTensor>& all);

// Of an autoencoder: both sides are of one file; one that only decodes has no encoder. Throws
// HEDDLE_INVALID_ARGUMENT for a VAE without any.
void add_vae(const Value& vae, const std::string& prefix, std::vector<SavedTensor>& all);

// The text encoders of a CLIP. Throws HEDDLE_NOT_FOUND for one whose file is missing.
Value encoders_in(const Value& clip);
// Of all of them, each with its name ("clip_l") between these in front.
void add_encoders(const Value& clip, const std::string& before, const std::string& behind,
                  std::vector<SavedTensor>& all);

// A checkpoint's text encoders and its autoencoder, where files with this diffusion model have
// them.
void add_encoders_beside(const Value& model, const Value& clip, std::vector<SavedTensor>& all);
// Its vision tower, by the names of its own file; unsupported where files with this model have
// none.
void add_tower_beside(const Value& model, const Value& tower, std::vector<SavedTensor>& all);
void add_vae_beside(const Value& model, const Value& vae, std::vector<SavedTensor>& all);

// What tells ComfyUI and CheckpointLoaderSimple how an SDXL is to be sampled: empty tensors beside
// it ("v_pred", "ztsnr", "edm_mean", "edm_std"), or the ends of its noise levels, a number each
// ("edm_vpred.sigma_max", "edm_vpred.sigma_min"). `all` begins with this model's. False: those
// could not be written, as no tensor of the model is of floats.
bool add_training_marks(const Value& model, std::vector<SavedTensor>& all);

// That the tensor has in a file.
Shape shape_of(const SavedTensor& tensor);

}  // namespace heddle::loaders
