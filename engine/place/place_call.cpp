#include "engine/place/place_call.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/place/call_hints.h"
#include "engine/place/call_parts.h"
#include "engine/place/call_ways.h"
#include "engine/place/device_choice.h"
#include "engine/place/pipeline.h"

namespace heddle::engine {

namespace {

// Those that are tried where nobody names one, beside single ones.
constexpr ParallelMode kCfg = ParallelMode::cfg, kData = ParallelMode::data;
constexpr ParallelMode kCombined[] = {kCfg | ParallelMode::layers,
                                      kData | ParallelMode::layers,
                                      kCfg | kData,
                                      kCfg | kData | ParallelMode::layers,
                                      kCfg | ParallelMode::sequence,
                                      kCfg | ParallelMode::tensor,
                                      kData | ParallelMode::sequence,
                                      kData | ParallelMode::tensor,
                                      kCfg | kData | ParallelMode::sequence,
                                      kCfg | kData | ParallelMode::tensor};

bool is_combined(ParallelMode mode) { return std::popcount(std::uint32_t(mode)) > 1; }

class Chooser {
 public:
  explicit Chooser(const CallRequest& request)
      : request_(request),
        topology_(request.prices.topology()),
        wish_(read_call_hints(request.model, request.caller, request.home, topology_)),
        known_(!request.loads.empty()),
        case_{*request.model.graph, request.loads, request.home, request.prices},
        allowed_(allowed()),
        ways_(request, case_, allowed_.front()) {}

  PlacedCall run() {
    if (!wish_.of_block.empty())
      add_blocks();
    else if (wish_.parallel)
      add_forced(*wish_.parallel);
    else
      add_automatic();
    return choose();
  }

 private:
  std::vector<std::uint32_t> allowed() const {
    std::vector<std::uint32_t> devices =
        wish_.devices.empty() ? request_.candidates : wish_.devices;
    // Home first: what begins there has nothing to bring.
    if (const auto at = std::ranges::find(devices, request_.home);
        at != devices.end() && !wish_.all_devices)
      std::rotate(devices.begin(), at, at + 1);
    return devices;
  }

  std::string names(const std::vector<std::uint32_t>& devices) const {
    return device_names(devices, topology_);
  }
  CallShares shares() const {
    return {ways_.set_count(), known_ ? ways_.load().batch : std::int64_t(allowed_.size())};
  }

  void add_blocks() {
    ways_.add_blocks(wish_.of_block);
    forced_ = true;
  }

  [[noreturn]] void refuse(ParallelMode mode, std::string_view why) const {
    throw Error(Code::invalid_argument,
                cat("parallel mode ", quote(parallel_name(mode)), " is not possible: ", why));
  }

  void add_forced(ParallelMode mode) {
    forced_ = true;
    if (mode == ParallelMode::none) return ways_.add_alone(allowed_);
    if (allowed_.size() < 2)
      refuse(mode, cat("it needs two devices or more, and there is ", names(allowed_)));
    const bool is_one_branch = has(mode, ParallelMode::cfg) && known_ && shares().sets < 2;
    if (is_one_branch && !request_.has_others) refuse(mode, "the call has one branch");
    const bool is_one_item = has(mode, ParallelMode::data) && known_ && shares().items < 2;
    if (is_one_item && !request_.has_others)
      refuse(mode, "the batch has one item, or the model has no batch axis");
    if (is_one_item && is_combined(mode))
      return add_forced(mode & (ParallelMode::layers | ParallelMode::cfg | kOverRanks));
    if (is_combined(mode)) return add_grouped(mode, is_one_branch);
    if (is_one_branch || is_one_item) {
      const std::vector<std::uint32_t> devices = first(counts(mode).front());
      return ways_.add_alone({devices[request_.turn % devices.size()]});
    }
    for (const std::size_t count : counts(mode)) add_parallel(mode, first(count));
  }

  // `in_turn`: of a call of one branch, which has others beside it: one group has all of it.
  void add_grouped(ParallelMode mode, bool in_turn) {
    CallShares all = shares();
    if (in_turn) all.sets = allowed_.size();
    const std::vector<GroupSizes> sizes =
        group_sizes(mode, allowed_.size(), wish_.all_devices, all);
    if (sizes.empty())
      refuse(mode, cat(names(allowed_), wish_.all_devices
                                            ? ": they cannot be divided into equal groups for it"
                                            : ": it needs more devices"));
    for (GroupSizes each : sizes) {
      if (in_turn && each.set_shares != sizes.front().set_shares) continue;
      std::vector<std::uint32_t> devices = grouped(each);
      if (devices.empty() || exchange_in_one_memory(mode, devices)) continue;
      if (in_turn) {
        const std::size_t count = devices.size() / each.set_shares;
        const auto begin =
            devices.begin() + std::ptrdiff_t(request_.turn % each.set_shares * count);
        devices = {begin, begin + std::ptrdiff_t(count)};
        each.set_shares = 1;
      }
      ways_.add_combined(in_turn ? mode & (ParallelMode::data | kOverRanks) : mode, each, devices);
    }
    if (ways_.all().empty())
      refuse(mode, cat("of ", names(allowed_), " no groups can be made that are alike",
                       has(mode, kRanksExchange) ? " and have memories of their own" : ""));
  }

  bool exchange_in_one_memory(ParallelMode mode, const std::vector<std::uint32_t>& devices) const {
    return has(mode, kRanksExchange) && share_memory(devices, topology_);
  }

  std::vector<std::uint32_t> grouped(const GroupSizes& sizes) const {
    return wish_.all_devices ? allowed_ : grouped_devices(allowed_, sizes, request_.prices);
  }

  void add_parallel(ParallelMode mode, const std::vector<std::uint32_t>& devices) {
    switch (mode) {
      case ParallelMode::layers:
        return ways_.add_layers(devices);
      case ParallelMode::cfg:
        return ways_.add_sets(devices);
      case ParallelMode::data:
        return ways_.add_items(devices);
      default:
        return ways_.add_exchanging(mode, devices);
    }
  }

  // How many devices to try: all, when all are meant.
  std::vector<std::size_t> counts(ParallelMode mode) const {
    if (wish_.all_devices) return {allowed_.size()};
    if (mode == ParallelMode::cfg) {
      const std::size_t most = std::min(allowed_.size(), known_ ? shares().sets : 2);
      return most > 2 ? std::vector<std::size_t>{2, most} : std::vector<std::size_t>{2};
    }
    return counts_of_devices(allowed_.size());
  }

  std::vector<std::uint32_t> first(std::size_t count) const {
    return first_devices(allowed_, count, topology_);
  }

  void add_automatic_layers() {
    const std::vector<std::uint32_t> devices = of_one_type();
    if (devices.size() > 1 && !all_alike(devices, request_.prices))
      return ways_.add_unequal_layers(first_devices(devices, kMostStages, topology_));
    for (const std::size_t count : counts(ParallelMode::layers)) ways_.add_layers(first(count));
  }

  std::vector<std::uint32_t> of_one_type() const {
    std::vector<std::uint32_t> devices = allowed_;
    std::erase_if(devices, [&](std::uint32_t d) {
      return topology_.devices[d].compute != topology_.devices[allowed_.front()].compute;
    });
    return devices;
  }

  void add_automatic() {
    if (!known_)
      return ways_.add_resident(std::ranges::find(allowed_, request_.home) != allowed_.end()
                                    ? request_.home
                                    : allowed_.front());
    ways_.add_alone(distinct_devices(allowed_, request_.home, topology_));
    if (allowed_.size() < 2) return;
    add_automatic_layers();
    if (shares().sets > 1)
      for (const std::size_t count : counts(ParallelMode::cfg)) ways_.add_sets(first(count));
    if (shares().items > 1)
      for (const std::size_t count : counts(ParallelMode::data))
        if (std::int64_t(count) <= shares().items) ways_.add_items(first(count));
    for (const ParallelMode mode : {ParallelMode::sequence, ParallelMode::tensor}) {
      const std::size_t from = ways_.all().size();
      for (const std::size_t count : counts(mode)) ways_.add_exchanging(mode, first(count));
      ways_.keep_best(from, true);
    }
    for (const ParallelMode mode : kCombined) add_automatic_combined(mode);
  }

  void add_automatic_combined(ParallelMode mode) {
    if (has(mode, ParallelMode::cfg) && shares().sets < 2) return;
    if (has(mode, ParallelMode::data) && shares().items < 2) return;
    const std::vector<std::uint32_t> devices = of_one_type();
    const std::size_t from = ways_.all().size();
    for (const GroupSizes& sizes : group_sizes(mode, devices.size(), wish_.all_devices, shares()))
      if (const auto groups = grouped_devices(devices, sizes, request_.prices);
          !groups.empty() && !exchange_in_one_memory(mode, groups))
        ways_.add_combined(mode, sizes, groups);
    ways_.keep_best(from, false);
  }

  PlacedCall choose() {
    std::vector<CallWay>& ways = ways_.all();
    std::size_t best = ways.size();
    const auto total = [&](std::size_t w) { return ways_.compared_seconds(ways[w]); };
    const auto may = [&](std::size_t w) {
      return ways[w].alternative.fits && (forced_ || ways[w].alternative.automatic);
    };
    // What passes in every step needs links that others use, too: it has to gain as much again.
    for (const bool streamed : {false, true})
      for (std::size_t w = 0; w < ways.size(); ++w)
        if (ways[w].alternative.streamed == streamed && may(w) &&
            (best == ways.size() || total(w) < kWorthIt * total(best)))
          best = w;
    PlacedCall placed;
    placed.fits = best < ways.size();
    if (!placed.fits) {
      best = least_short();
      if (forced_)
        throw Error(Code::out_of_memory,
                    cat(wish_.reason, ": ", ways[best].alternative.name,
                        " does not fit: ", shortage_text(ways[best].alternative, topology_)));
    }
    CallWay& way = ways[best];
    way.alternative.chosen = true;
    placed.streamed = way.alternative.streamed;
    for (const DeviceFacts& device : topology_.devices) placed.budgets.push_back(device.budget);
    placed.load_seconds = way.alternative.load_seconds;
    placed.compared_load_seconds = ways_.compared_load_seconds(way);
    placed.seconds = way.alternative.seconds;
    placed.step_seconds = way.alternative.step_seconds;
    if (placed.fits && !forced_) placed.report.rounding = faster_rounding(best);
    placed.placement = std::move(way.placement);
    add_report(placed);
    return placed;
  }

  std::optional<FasterRounding> faster_rounding(std::size_t taken) const {
    const std::vector<CallWay>& ways = ways_.all();
    std::size_t best = taken;
    for (std::size_t w = 0; w < ways.size(); ++w)
      if (const Alternative& other = ways[w].alternative;
          other.rounds && !other.automatic && other.fits &&
          ways_.compared_seconds(ways[w]) < kWorthIt * ways_.compared_seconds(ways[best]))
        best = w;
    if (best == taken) return {};
    const Alternative& faster = ways[best].alternative;
    return FasterRounding{faster.name, faster.seconds, faster.step_seconds};
  }

  // Takes the alternatives.
  void add_report(PlacedCall& placed) {
    CallReport& report = placed.report;
    report.model = request_.model.family;
    if (known_) {
      report.step_count = ways_.load().step_count;
      report.set_count = ways_.load().set_count;
      report.step_flops = ways_.load().step_flops();
    }
    report.reason = !wish_.reason.empty()           ? wish_.reason
                    : !known_                       ? "its shapes are not known before the run"
                    : !placed.fits                  ? "fits nowhere"
                    : topology_.devices.size() == 1 ? "the only device"
                                                    : "the fastest that fits";
    report.parts = call_parts(
        case_.graph, placed.placement,
        [&](std::uint32_t d) -> const CallLoad& { return known_ ? case_.load(d) : ways_.load(); });
    if (has(placed.placement.parallel, ParallelMode::tensor)) report.whole = ways_.load().whole;
    if (!known_) return;
    for (CallWay& way : ways_.all()) report.alternatives.push_back(std::move(way.alternative));
    if (!forced_ && !all_alike(allowed_, request_.prices))
      report.why = why_among_unequal(report, ways_.load().weight_bytes, request_.prices);
  }

  // Of what does not fit, the way that lacks the least.
  std::size_t least_short() const {
    const std::vector<CallWay>& ways = ways_.all();
    std::size_t best = ways.size();
    for (std::size_t w = 0; w < ways.size(); ++w)
      if ((forced_ || ways[w].alternative.automatic) &&
          (best == ways.size() ||
           lacking_bytes(ways[w].alternative) < lacking_bytes(ways[best].alternative)))
        best = w;
    return best;
  }

  const CallRequest& request_;
  const Topology& topology_;
  const CallWish wish_;
  const bool known_;
  const CallCase case_;
  const std::vector<std::uint32_t> allowed_;
  CallWays ways_;
  bool forced_ = false;
};

}  // namespace

PlacedCall place_call(const CallRequest& request) { return Chooser(request).run(); }

}  // namespace heddle::engine
