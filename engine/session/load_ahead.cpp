#include "engine/session/load_ahead.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/weight_rows.h"
#include "engine/program/call_placement.h"
#include "engine/program/session_plan.h"
#include "engine/program/weight_slot.h"
#include "engine/program/weight_sources.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/kept_models.h"

namespace heddle::engine {

namespace {

// That others use now, and what they have claimed: it does not go.
std::uint64_t bytes_in_use(std::uint32_t device, Environment& environment) {
  const LedgerReport now = environment.devices[device].state->ledger().report();
  std::uint64_t bytes = now.reserved;
  for (const LedgerReport::Line& line : now.held)
    bytes += line.kind == MemoryKind::weights ? line.pinned : line.bytes;
  return bytes - std::min(bytes, cached_bytes(environment, device));
}

void check_room(const std::string& name, std::uint64_t missing, std::uint32_t device,
                Environment& environment) {
  Ledger& ledger = environment.devices[device].state->ledger();
  ledger.poll_now();
  const std::uint64_t most = ledger.most(), used = bytes_in_use(device, environment);
  if (missing <= most - std::min(most, used)) return;
  throw Error(Code::out_of_memory,
              cat(name, " does not fit on ", ledger.name(), ": it wants ", format_bytes(missing),
                  " more, and of ", format_bytes(most), " there ", format_bytes(used),
                  " are in use. A job streams what has no room. To have it there, raise the "
                  "budget of the device, let go of what is pinned there, or take another device"));
}

// Its place in admission until it is there, and from then on where it is to stay. Else what was
// pinned of it before stays as it was.
class Place {
 public:
  Place(const Hash128& model, const std::string& name, std::map<Hash128, std::uint64_t> weights,
        std::uint32_t device, Environment& environment)
      : model_(model),
        name_(name),
        before_(environment.devices[device].weights->kept_of(model)),
        device_(device),
        environment_(environment) {
    weights.insert(before_.begin(), before_.end());
    keep_model(model, name, weights, device, environment);
  }
  Place(const Place&) = delete;
  ~Place() {
    if (!stays_) release_model_but(before_, model_, name_, device_, environment_);
  }
  void stay() { stays_ = true; }

 private:
  const Hash128 model_;
  const std::string name_;
  const std::map<Hash128, std::uint64_t> before_;
  const std::uint32_t device_;
  Environment& environment_;
  bool stays_ = false;
};

}  // namespace

void throw_stopped() { throw Error(Code::cancelled, "whoever asked for it has ended. Ask again"); }

std::uint64_t load_ahead(const Model& model, std::uint32_t device, bool keeps,
                         Environment& environment, const std::stop_token& stop) {
  const RunDevice& on = environment.devices[device];
  const std::string name = weights_name(model);
  const Hash128 checkpoint = model.checkpoint->identity();
  const LoadTurns::Turn turn = on.weights->load_turns().take(model.identity, [&] {
    if (stop.stop_requested()) throw_stopped();
    return false;
  });
  std::vector<WeightSource> sources;  // in the order of blocks
  for (const Node& node : model.graph->nodes)
    std::ranges::move(weights_of(model, node), std::back_inserter(sources));
  std::map<Hash128, std::uint64_t> weights;  // each once, wherever the model calls it
  std::uint64_t bytes = 0, missing = 0;
  std::vector<FilePart> wanted;
  for (const WeightSource& source : sources) {
    const std::uint64_t here = on.state->pool().rounded(on.weights->layout(source).bytes);
    if (!weights.emplace(source.key(checkpoint), here).second) continue;
    bytes += here;
    if (on.weights->has(source, checkpoint)) continue;
    missing += here;
    std::ranges::move(loaded_parts(source, *on.state), std::back_inserter(wanted));
  }
  check_room(name, missing, device, environment);
  Place place(model.identity, name, weights, device, environment);
  Reservation claim = on.state->ledger().reserve(missing, name);
  std::vector<Expectation> expected;
  if (HostWeights* const host = on.state->host_weights(); host != nullptr && !wanted.empty())
    expected.push_back(host->expect(wanted, UseOrder::once, on.state->share_device()));
  std::vector<std::shared_ptr<const DeviceWeight>> loaded;
  try {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (stop.stop_requested()) throw_stopped();
      loaded.push_back(on.weights->get(sources[i], checkpoint, {},
                                       {model.identity, name, std::uint32_t(i)}, &claim));
    }
    on.weights->finish(loaded);
  } catch (const Error&) {
    on.state->device().take_fault();  // no run is to blame
    throw;
  }
  if (keeps) place.stay();
  return bytes;
}

}  // namespace heddle::engine
