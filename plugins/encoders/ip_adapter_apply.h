// IP-Adapters put to a MODEL: a vision tower sees pictures, the adapter's file makes tokens of
// that, and the model is built anew with the adapter in its graph, which carries the tokens
// (heddle/diffusion/values.h). As ComfyUI_IPAdapter_plus does. One call's thread.
#pragma once

#include <optional>
#include <string>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::encoders {

// How several rows of embeddings become one: "concat" leaves them. Also "add", "subtract" (the
// others' mean from the first), "average", "norm average" (each over the length of all), "max",
// "min". rows (n, ...) f32 -> (1, ...) or the same, in host memory.
Tensor combined(Context& ctx, const Tensor& rows, const std::string& method);
Shape combined_shape(const Shape& rows, const std::string& method);

// What an adapter is given.
struct AdapterJob {
  Value model, adapter;  // MODEL; the projection's MODEL
  Value tower;           // the vision tower's MODEL, or empty
  double weight = 1, composition = 1, start = 0, end = 1;
  std::string type = "linear", combine = "concat", scaling = "V only";
  bool is_of_items = false;  // each item of a batch has a picture of its own
  Value mask;                // MASK, or what is told of it; or empty
};
// The job with adapter and tower out of an IPADAPTER, and of a CLIP_VISION where there is one.
// Throws where a part is missing.
void read_adapter(AdapterJob& job, const Value& ipadapter, const Value& clip_vision);
// Whether it reads the last layer but one of its tower. Throws where model, adapter and tower are
// not for each other.
bool reads_layers(const AdapterJob& job);

// What a tower saw of pictures: the rows of embeddings that the adapter reads.
// `mask`: as of seen_by_tower().
Tensor seen_for(Context& ctx, const AdapterJob& job, const Tensor& image, const Tensor& mask = {});
Shape tell_seen(Infer& question, const AdapterJob& job, const Shape& image);
// What stands on the negative side where nobody gives a picture: of a black one, or zeros. (1 or n,
// ...), where `seen` has n rows.
Tensor unseen_for(Context& ctx, const AdapterJob& job, const Tensor& seen);
Shape tell_unseen(Infer& question, const AdapterJob& job, const Shape& seen);

// Rows of embeddings; `composed`: of a picture for the composition, or empty.
struct AdapterRows {
  Tensor positive, negative, composed;
};
Value adapted(Context& ctx, const AdapterJob& job, const AdapterRows& rows);
struct AdapterRowShapes {
  Shape positive, negative;
  std::optional<Shape> composed;
};
Value tell_adapted(Infer& question, const AdapterJob& job, const AdapterRowShapes& rows);

}  // namespace heddle::encoders
