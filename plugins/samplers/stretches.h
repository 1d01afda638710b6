// The evaluations of a run in stretches of one and the same entries: each stretch is a session of
// the model. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cond_scope.h"
#include "guide.h"
#include "hook_strengths.h"
#include "state_archive.h"

namespace heddle::samplers {

struct Stretch {
  std::size_t begin = 0, count = 0;  // evaluations
  std::vector<bool> needed;          // by list
  std::vector<std::size_t> models;   // by list: of the plan, that it is asked of; 0: not needed
  // By list: the entries that count. None in a list that is needed: it predicts zeros.
  std::vector<std::vector<std::size_t>> entries;
  // Of each of them, as `hooks` numbers them.
  std::vector<std::vector<std::size_t>> weights;
  // By list: which ControlNets of each entry that counts are at work.
  std::vector<std::vector<std::vector<bool>>> controls;
};
// `sigmas`: of all evaluations that follow. Throws where a list is needed that is not there.
std::vector<Stretch> stretches_of(const ScopedLists& lists, const GuidePlan& plan,
                                  HookStrengths& hooks, std::span<const double> sigmas);

// What the model is asked for once, however many lists want it: an entry's texts, in a box or
// everywhere, under these weights; in a context window of the stretch.
struct ModelSet {
  std::size_t list = 0, item = 0, weights = 0;
  std::optional<Box> box;  // in the grid
  std::size_t window = 0;
  Shape places = {};  // of the window; only where its output is kept, as windows may move
  bool operator==(const ModelSet&) const = default;
};
// Its members under keys that begin with `name`. One call's thread.
void archive_set(StateArchive& state, const std::string& name, ModelSet& set);
// Of the latent (B, C, ...) what a model sees in a box, or all of it.
Shape point_of(Shape latent, const std::optional<Box>& box);
ModelSet set_of(const ScopedEntry& entry, std::size_t weights, const Shape& grid);
// The sets that one model is asked for under the same weights, as places in the list of all.
struct ModelCall {
  std::size_t model = 0;    // of the plan
  std::size_t weights = 0;  // of it
  std::vector<std::size_t> sets;
  bool pairs = false;  // sets two by two: the model is asked for both at once
};
// In the order of the models, and of each in that of the weights.
std::vector<ModelCall> calls_of(const Stretch& stretch, const std::vector<ModelSet>& sets);
// Its place in the list, where it is put if it was not there.
std::size_t index_of(std::vector<ModelSet>& sets, const ModelSet& set);

}  // namespace heddle::samplers
