#include "engine/place/place_call.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/place/call_hints.h"
#include "engine/place/call_parts.h"
#include "engine/place/device_choice.h"
#include "engine/place/pipeline.h"
#include "engine/place/unequal_layers.h"
#include "engine/program/partition.h"

namespace heddle::engine {

namespace {

constexpr double kWorthIt = 0.98;       // a way that uses more devices has to be faster by as much
constexpr int kPartitionTries = 12;     // until every range finds room
constexpr std::size_t kSetsAhead = 64;  // for calls that are not known yet

class Chooser {
 public:
  explicit Chooser(const CallRequest& request)
      : request_(request),
        topology_(request.prices.topology()),
        wish_(read_call_hints(request.model, request.caller, request.home, topology_)),
        known_(!request.loads.empty()),
        case_{*request.model.graph, request.loads, request.home, request.prices} {}

  PlacedCall run() {
    allowed_ = wish_.devices.empty() ? request_.candidates : wish_.devices;
    // Home first: what begins there has nothing to bring.
    if (const auto at = std::ranges::find(allowed_, request_.home);
        at != allowed_.end() && !wish_.all_devices)
      std::rotate(allowed_.begin(), at, at + 1);
    if (!wish_.of_block.empty())
      add_blocks();
    else if (wish_.parallel)
      add_forced(*wish_.parallel);
    else
      add_automatic();
    return choose();
  }

 private:
  struct Way {
    CallPlacement placement;
    Alternative alternative;
  };

  void add(CallPlacement placement, std::string name, bool automatic = true,
           std::string note = "") {
    Way way{std::move(placement), {}};
    way.alternative.name = std::move(name);
    way.alternative.automatic = automatic;
    way.alternative.note = std::move(note);
    if (known_) annotate(way.alternative, estimate(case_, way.placement));
    ways_.push_back(std::move(way));
  }
  static void annotate(Alternative& alternative, const CallEstimate& estimate) {
    alternative.load_seconds = estimate.load_seconds;
    alternative.seconds = estimate.seconds;
    alternative.step_seconds = estimate.step_seconds;
    alternative.needs = estimate.needs;
    alternative.fits = estimate.fits();
  }

  std::string names(const std::vector<std::uint32_t>& devices) const {
    return device_names(devices, topology_);
  }

  void add_resident(std::uint32_t device) {
    CallPlacement placement;
    placement.devices = {device};
    add(std::move(placement), cat("resident on ", names({device})));
  }

  // The same way with weights that pass through, where they find no room to stay.
  void stream(std::size_t short_way, std::string name) {
    const Way& resident = ways_[short_way];
    if (!known_ || resident.alternative.fits || !can_stream(resident.placement)) return;
    for (const std::uint32_t d : resident.placement.devices)
      if (!has_limit(topology_.devices[d])) return;
    add_streamed(resident.placement, std::move(name), resident.alternative.automatic,
                 resident.alternative.note);
  }
  void add_streamed(CallPlacement placement, std::string name, bool automatic = true,
                    std::string note = "") {
    Way way{std::move(placement), {}};
    way.alternative.name = std::move(name);
    way.alternative.automatic = automatic;
    way.alternative.streamed = true;
    way.alternative.note = std::move(note);
    annotate(way.alternative, estimate_streamed(case_, way.placement));
    ways_.push_back(std::move(way));
  }
  void stream_last() { stream(ways_.size() - 1, cat(ways_.back().alternative.name, ", streamed")); }
  void add_alone(const std::vector<std::uint32_t>& devices) {
    const std::size_t first = ways_.size();
    for (const std::uint32_t d : devices) add_resident(d);
    for (std::size_t i = 0; i < devices.size(); ++i)
      stream(first + i, cat("streamed on ", names({devices[i]})));
  }

  const CallLoad& load() {
    if (known_) return case_.load(allowed_.front());
    if (!weights_)
      weights_ = weight_load(request_.model, topology_.devices[allowed_.front()].compute);
    return *weights_;
  }

  // Activations take their room first; weights are spread over what is left.
  std::vector<double> available(const std::vector<std::uint32_t>& devices) const {
    if (known_) return bytes_for_weights(case_, devices);
    std::vector<double> bytes;
    for (const std::uint32_t d : devices)
      bytes.push_back(std::max(double(usable_bytes(topology_.devices[d])), 1.0));
    return bytes;
  }

  void add_layers(const std::vector<std::uint32_t>& devices) {
    std::vector<double> fractions = available(devices);
    CallPlacement placement;
    placement.parallel = ParallelMode::layers;
    placement.devices = devices;
    placement.of_block = partition(case_.graph, load(), fractions);
    // Whole groups seldom match the shares; a device that is short gets less.
    for (int i = 0; known_ && i < kPartitionTries; ++i) {
      const CallEstimate now = estimate(case_, placement);
      if (now.fits()) break;
      for (std::size_t d = 0; d < fractions.size(); ++d)
        if (now.needs[d].wanted_bytes > now.needs[d].there_bytes)
          fractions[d] *=
              0.9 * double(now.needs[d].there_bytes) / double(now.needs[d].wanted_bytes) + 0.05;
      const std::vector<std::uint32_t> next = partition(case_.graph, load(), fractions);
      if (next == placement.of_block) continue;
      placement.of_block = next;
    }
    const bool same_type = std::ranges::all_of(devices, [&](std::uint32_t d) {
      return topology_.devices[d].compute == topology_.devices[devices.front()].compute;
    });
    add(placement, cat("layers over ", names(devices)), same_type,
        same_type ? "" : "the devices compute in different types, so only by a hint");
    stream_last();
    if (devices.size() == 2 && known_) add_folded(devices, fractions, same_type);
  }

  void add_folded(const std::vector<std::uint32_t>& devices, const std::vector<double>& fractions,
                  bool automatic) {
    auto folded =
        partition_folded(case_.graph, load(), fractions[0] / (fractions[0] + fractions[1]));
    if (!folded) return;
    CallPlacement placement;
    placement.parallel = ParallelMode::layers;
    placement.devices = devices;
    placement.of_block = std::move(*folded);
    add(std::move(placement), cat("layers over ", names(devices), ", folded"), automatic);
  }

  void add_sets(const std::vector<std::uint32_t>& devices) {
    CallPlacement placement;
    placement.parallel = ParallelMode::cfg;
    const std::size_t sets = known_ ? case_.load(devices.front()).set_count : kSetsAhead;
    placement.devices.assign(devices.begin(),
                             devices.begin() + std::ptrdiff_t(std::min(devices.size(), sets)));
    for (std::size_t set = 0; set < sets; ++set)
      placement.of_set.push_back(std::uint32_t(set % placement.devices.size()));
    std::string name = cat("cfg over ", names(placement.devices));
    add(std::move(placement), std::move(name));
    stream_last();
  }

  // How much of the work each device does in the same time.
  std::vector<double> speeds(const std::vector<std::uint32_t>& devices) const {
    std::vector<double> fractions;
    for (const std::uint32_t d : devices)
      fractions.push_back(known_ ? 1 / std::max(estimate_alone(case_, d).seconds, 1e-12) : 1);
    const double all = std::accumulate(fractions.begin(), fractions.end(), 0.0);
    for (double& fraction : fractions) fraction /= all;
    return fractions;
  }

  void add_sharded(ParallelMode mode, const std::vector<std::uint32_t>& devices) {
    CallPlacement placement;
    placement.parallel = mode;
    placement.devices = devices;
    placement.fractions = speeds(devices);
    std::string name = cat(parallel_name(mode), " over ", names(devices)), note;
    if (known_ && mode == ParallelMode::data)
      name += cat(" (", join(shard_sizes(load().batch, placement.fractions), " + "), ")");
    if (mode == ParallelMode::tensor && load().whole_weights > 0)
      note = cat(load().whole_weights, " of ", load().weights, " weights (",
                 format_bytes(load().whole_bytes),
                 ") stay whole: not 2-D, a side under 256, or not for dividing");
    if (mode != ParallelMode::data)
      note = cat("changes the rounding, so only by \"parallel\"", note.empty() ? "" : "; ", note);
    add(std::move(placement), std::move(name), mode == ParallelMode::data, std::move(note));
    stream_last();
  }

  void add_blocks() {
    CallPlacement placement;
    placement.parallel = ParallelMode::layers;
    placement.of_block.assign(wish_.of_block.size(), 0);
    for (const NodeIndex n : case_.graph.order) {
      const auto at = std::ranges::find(placement.devices, wish_.of_block[n]);
      placement.of_block[n] = std::uint32_t(at - placement.devices.begin());
      if (at == placement.devices.end()) placement.devices.push_back(wish_.of_block[n]);
    }
    std::string name = cat("layers over ", names(placement.devices));
    add(std::move(placement), std::move(name));
    stream_last();
    forced_ = true;
  }

  [[noreturn]] void refuse(ParallelMode mode, std::string_view why) const {
    throw Error(Code::invalid_argument,
                cat("parallel mode ", quote(parallel_name(mode)), " is not possible: ", why));
  }

  void add_forced(ParallelMode mode) {
    forced_ = true;
    if (mode == ParallelMode::none) return add_alone(allowed_);
    if (allowed_.size() < 2)
      refuse(mode, cat("it needs two devices or more, and there is ", names(allowed_)));
    if (mode == ParallelMode::cfg && known_ && load().set_count < 2) {
      if (!request_.has_others) refuse(mode, "the call has one branch");
      const std::vector<std::uint32_t> devices = first(counts(mode).front());
      return add_alone({devices[request_.turn % devices.size()]});
    }
    if (mode == ParallelMode::data && known_ && load().batch < 2)
      refuse(mode, "the batch has one item, or the model has no batch axis");
    for (const std::size_t count : counts(mode)) add_parallel(mode, first(count));
  }

  void add_parallel(ParallelMode mode, const std::vector<std::uint32_t>& devices) {
    switch (mode) {
      case ParallelMode::layers:
        return add_layers(devices);
      case ParallelMode::cfg:
        return add_sets(devices);
      default:
        return add_sharded(mode, devices);
    }
  }

  // How many devices to try: all, when all are meant.
  std::vector<std::size_t> counts(ParallelMode mode) const {
    if (wish_.all_devices) return {allowed_.size()};
    if (mode == ParallelMode::cfg) return {2};
    return counts_of_devices(allowed_.size());
  }

  std::vector<std::uint32_t> first(std::size_t count) const {
    return first_devices(allowed_, count, topology_);
  }

  // Of devices that differ: which, in which order, and how much of the model each takes.
  void add_unequal_layers(const std::vector<std::uint32_t>& devices) {
    const std::size_t before = ways_.size();
    for (LayersWay& way : unequal_layers(case_, devices)) {
      const std::string name = cat("layers over ", names(way.placement.devices));
      if (way.streamed)
        add_streamed(std::move(way.placement), cat(name, ", streamed"));
      else
        add(std::move(way.placement), name);
    }
    if (ways_.size() == before) return add_layers(devices);  // says what is lacking
    const std::vector<std::uint32_t> two = first_devices(devices, 2, topology_);
    add_folded(two, available(two), true);
  }

  void add_automatic_layers() {
    std::vector<std::uint32_t> devices = allowed_;
    std::erase_if(devices, [&](std::uint32_t d) {
      return topology_.devices[d].compute != topology_.devices[allowed_.front()].compute;
    });
    if (devices.size() > 1 && !all_alike(devices, request_.prices))
      return add_unequal_layers(first_devices(devices, kMostStages, topology_));
    for (const std::size_t count : counts(ParallelMode::layers)) add_layers(first(count));
  }

  void add_automatic() {
    if (!known_) {
      add_resident(std::ranges::find(allowed_, request_.home) != allowed_.end() ? request_.home
                                                                                : allowed_.front());
      return;
    }
    add_alone(distinct_devices(allowed_, request_.home, topology_));
    if (allowed_.size() < 2) return;
    add_automatic_layers();
    if (load().set_count > 1) add_sets(first(2));
    if (load().batch > 1)
      for (const std::size_t count : counts(ParallelMode::data))
        if (std::int64_t(count) <= load().batch) add_sharded(ParallelMode::data, first(count));
    for (const ParallelMode mode : {ParallelMode::sequence, ParallelMode::tensor})
      add_sharded(mode, allowed_);
  }

  PlacedCall choose() {
    std::size_t best = ways_.size();
    // That several devices load their layers sooner is no reason to occupy them all, and that what
    // passes need not be loaded is none to bring it in every call: loading counts as if one device
    // did all of it.
    double alone = 0;
    for (const Way& way : ways_)
      if (way.placement.devices.size() == 1 && way.alternative.automatic)
        alone = std::max(alone, way.alternative.load_seconds);
    const auto loading = [&](std::size_t w) {
      return std::max(alone, ways_[w].alternative.load_seconds);
    };
    const auto total = [&](std::size_t w) { return ways_[w].alternative.seconds + loading(w); };
    const auto may = [&](std::size_t w) {
      return ways_[w].alternative.fits && (forced_ || ways_[w].alternative.automatic);
    };
    // What passes in every step needs links that others use, too: it has to gain as much again.
    for (const bool streamed : {false, true})
      for (std::size_t w = 0; w < ways_.size(); ++w)
        if (ways_[w].alternative.streamed == streamed && may(w) &&
            (best == ways_.size() || total(w) < kWorthIt * total(best)))
          best = w;
    PlacedCall placed;
    placed.fits = best < ways_.size();
    if (!placed.fits) {
      best = least_short();
      if (forced_)
        throw Error(Code::out_of_memory,
                    cat(wish_.reason, ": ", ways_[best].alternative.name,
                        " does not fit: ", shortage_text(ways_[best].alternative, topology_)));
    }
    Way& way = ways_[best];
    way.alternative.chosen = true;
    placed.placement = std::move(way.placement);
    placed.streamed = way.alternative.streamed;
    for (const DeviceFacts& device : topology_.devices) placed.budgets.push_back(device.budget);
    placed.load_seconds = way.alternative.load_seconds;
    placed.compared_load_seconds = loading(best);
    placed.seconds = way.alternative.seconds;
    placed.step_seconds = way.alternative.step_seconds;
    placed.report = report(placed);
    return placed;
  }

  // Takes the ways.
  CallReport report(const PlacedCall& placed) {
    CallReport report;
    report.model = request_.model.family;
    if (known_) {
      report.step_count = load().step_count;
      report.set_count = load().set_count;
      report.step_flops = load().step_flops();
    }
    report.reason = !wish_.reason.empty()           ? wish_.reason
                    : !known_                       ? "its shapes are not known before the run"
                    : !placed.fits                  ? "fits nowhere"
                    : topology_.devices.size() == 1 ? "the only device"
                                                    : "the fastest that fits";
    report.parts = call_parts(
        case_.graph, placed.placement,
        [&](std::uint32_t d) -> const CallLoad& { return known_ ? case_.load(d) : load(); });
    if (placed.placement.parallel == ParallelMode::tensor) report.whole = load().whole;
    if (!known_) return report;
    for (Way& way : ways_) report.alternatives.push_back(std::move(way.alternative));
    if (!forced_ && !all_alike(allowed_, request_.prices))
      report.why = why_among_unequal(report, load().weight_bytes, request_.prices);
    return report;
  }

  // Of what does not fit, the way that lacks the least.
  std::size_t least_short() const {
    std::size_t best = ways_.size();
    for (std::size_t w = 0; w < ways_.size(); ++w)
      if ((forced_ || ways_[w].alternative.automatic) &&
          (best == ways_.size() ||
           lacking_bytes(ways_[w].alternative) < lacking_bytes(ways_[best].alternative)))
        best = w;
    return best;
  }

  const CallRequest& request_;
  const Topology& topology_;
  const CallWish wish_;
  const bool known_;
  const CallCase case_;
  std::vector<std::uint32_t> allowed_;
  std::vector<Way> ways_;
  std::optional<CallLoad> weights_;
  bool forced_ = false;
};

}  // namespace

PlacedCall place_call(const CallRequest& request) { return Chooser(request).run(); }

}  // namespace heddle::engine
