// FluxKVCache: reference pictures are looked at in the first evaluation of a run only. What the
// model's blocks made of them there, keys and values, is given to it in all later ones in their
// place. The model says how (settings "reference_cache", "kept_width"; inputs and outputs
// "kept..."). One call's thread, but for what is told before a run.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "attention_pairs.h"
#include "state_archive.h"
#include "stretches.h"

namespace heddle::samplers {

// The MODEL whose runs keep what it made of reference pictures. Throws where its family has none
// that does.
Value with_reference_cache(Context& ctx, const Value& model);
bool has_reference_cache(const Value& model);
// Whether a model's input is something that it kept.
bool is_kept(std::string_view input);
// What the model reads in a later evaluation, in the place of what shows it reference pictures:
// for `items` pictures.
Constants kept_shapes(const Constants& shown, const Value& model, std::int64_t items);

// The evaluations of a run in which sets are asked for first.
class FirstLooks {
 public:
  // Each stretch in which an entry counts for the first time as its first evaluation and the rest.
  std::vector<Stretch> apart(const std::vector<Stretch>& stretches);

 private:
  std::set<std::pair<std::size_t, std::size_t>> seen_;  // list, entry
};

class ReferenceCache {
 public:
  // None where the model keeps nothing. Throws where the run sees it in a way that does not go
  // together with this.
  static std::optional<ReferenceCache> of(const GuidePlan& plan, bool has_windows);

  FirstLooks& first_looks() { return first_looks_; }
  // The constants of a set, with what is kept for it in the place of reference pictures.
  Value constants(const ModelSet& set, const Value& whole) const;
  // Of an evaluation: what the model made for a set.
  void made(Context& ctx, const ModelSet& set, const Value& outputs);
  void archive(StateArchive& state);

 private:
  // Of a set, without regard to the weights that it was seen under.
  struct Kept {
    ModelSet set;
    std::vector<std::pair<std::string, Tensor>> tensors;
  };
  const Kept* kept_for(ModelSet set) const;

  FirstLooks first_looks_;
  std::vector<Kept> kept_;
};

}  // namespace heddle::samplers
