// Runs of samplers and conditionings by shapes, for infer(): what sample() (sample.h) is going to
// ask of the model. Where something is not known before the run, nothing is told. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "cond_scope.h"
#include "guide.h"
#include "noise_schedule.h"
#include "sampler_kind.h"

namespace heddle::samplers {

// One entry of a CONDITIONING.
struct EntryShapes {
  heddle_tensor_info text{};                 // of cross_attn
  std::optional<heddle_tensor_info> pooled;  // of pooled_output
  std::optional<heddle_tensor_info> mask;
  Value scope;  // a record of those of kScopeFields that are known; or empty
};

inline Shape shape_of(const heddle_tensor_info& info) {
  return {info.shape, info.shape + info.rank};
}
// "positive" and "0" make "positive.0".
inline std::string path_join(const std::string& above, const std::string& name) {
  return above.empty() ? name : above + "." + name;
}

// The entries of the CONDITIONING at a path of an input; none: it is not known. Who tells of a list
// tells of all its entries.
template <class T>
std::vector<EntryShapes> entry_shapes(const Infer& question, const Input<T>& input,
                                      const std::string& path = "") {
  std::vector<EntryShapes> entries;
  while (true) {
    const std::string at = path_join(path, std::to_string(entries.size()));
    const auto text = question.tensor(input, at + ".cross_attn");
    if (!text) return entries;
    Record scope;
    for (const char* field : kScopeFields)
      if (const Value known = question.part(input, path_join(at, field))) scope.set(field, known);
    entries.push_back({*text, question.tensor(input, at + ".pooled_output"),
                       question.tensor(input, at + ".mask"), scope.value()});
  }
}
template <class T>
void infer_entries(Infer& question, const Output<T>& output,
                   const std::vector<EntryShapes>& entries, const std::string& path = "") {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string at = path_join(path, std::to_string(i));
    const auto& [text, pooled, mask, scope] = entries[i];
    question.out(output, at + ".cross_attn", text.dtype, shape_of(text));
    if (pooled) question.out(output, at + ".pooled_output", pooled->dtype, shape_of(*pooled));
    if (mask) question.out(output, at + ".mask", mask->dtype, shape_of(*mask));
    for (std::uint32_t k = 0; k < scope.count(); ++k)
      question.known(output, path_join(at, scope.key(k)), scope.item(k));
  }
}

// The entries as a value that a node can tell of in the place of the CONDITIONING that it will be.
Value told_shapes(const std::vector<EntryShapes>& entries);

// The shape of the samples that a sampler ends with: the model's channels.
template <class T>
std::optional<Shape> sampled_shape(const Infer& question, const Input<T>& latent,
                                   const Value& model) {
  std::optional<Shape> shape = question.shape(latent, "samples");
  if (!shape || shape->size() < 3 || !model.is(HEDDLE_KIND_MODEL)) return {};
  const auto channels = model_settings(model).get<std::int64_t>("latent_channels", 0);
  if (channels > 0) (*shape)[1] = channels;
  return shape;
}

// What a sampler hands on: the samples, and the mask that came in.
template <class T, class U>
void infer_latent(Infer& question, const Input<T>& from, const Output<U>& to,
                  const Shape& samples) {
  question.out(to, "samples", HEDDLE_F32, samples);
  if (const auto mask = question.tensor(from, "noise_mask"))
    question.out(to, "noise_mask", mask->dtype, shape_of(*mask));
}

// A SampleJob by shapes.
struct JobShapes {
  Value model;
  std::vector<EntryShapes> positive, negative, third = {};
  Mix mix = Mix::kCfg;
  double number = 1.0;  // of the mix
  std::optional<double> cfg;
  std::optional<SamplerChoice> sampler;
  std::optional<Sigmas> sigmas;
  Shape latent;  // in the model's channels
  Value negative_model = {};
};

// Tells the call of the model and what the node's own sums cost; nothing when a part of the job is
// not known, or when sample() would throw.
void infer_run(Infer& question, const JobShapes& job);

}  // namespace heddle::samplers
