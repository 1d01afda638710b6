// Chooses how one call of a model runs: on one device, in layers over several, branch by branch,
// batch items side by side, or some of these at a time. What hints ask for is done or refused;
// otherwise the fastest way that fits and, unless the request allows it, does not change how
// results are rounded. Pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/place/estimate.h"

namespace heddle::engine {

struct CallRequest {
  const Model& model;                     // its hints are the loader's
  const Hints& caller;                    // of the node that calls
  std::uint32_t home = 0;                 // the device of that node
  std::vector<std::uint32_t> candidates;  // devices to use when no hint says otherwise
  const Prices& prices;
  std::vector<std::shared_ptr<const CallLoad>>
      loads;  // by device; empty: the call's shapes are not known
  // A node may call several models, as where each branch has patches of its own: which of them
  // this one is, and whether there are others.
  std::uint32_t turn = 0;
  bool has_others = false;
  Fidelity fidelity = Fidelity::exact;
};

// blocks > device of the loader > device of the caller > what is fastest. `parallel` of the loader,
// else of the caller, is forced. A list of devices on a loader means layers over all of them unless
// `parallel` says another way; a list on a caller, or a kind, says which devices may be used. A
// call of one branch, or one item, that has others beside it goes, by `cfg`, or `data`, as a whole
// to one of the devices, in turn. Throws not_found and invalid_argument for devices, patterns and
// parallel modes that cannot be (saying which there are), out_of_memory for a forced way that finds
// no room (bytes wanted and there, by device). When nothing was forced and nothing fits, the answer
// says so.
PlacedCall place_call(const CallRequest& request);

}  // namespace heddle::engine
