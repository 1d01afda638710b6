// The ways in which one call of a model may run on given devices, each with what it would take:
// whole on one device, in one parallel mode, or in several combined. place_call.h chooses among
// them. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/place/device_groups.h"
#include "engine/place/place_call.h"

namespace heddle::engine {

struct CallWay {
  CallPlacement placement;
  Alternative alternative;
};

class CallWays {
 public:
  // `first`: the device whose load tells what is the same for all. The arguments are borrowed.
  CallWays(const CallRequest& request, const CallCase& call, std::uint32_t first)
      : request_(request), topology_(request.prices.topology()), case_(call), first_(first) {}

  bool is_known() const { return !request_.loads.empty(); }
  // Of a call that is not known: the weights alone.
  const CallLoad& load() const;
  // So many sets where the call is not known: for as many as there may be.
  std::size_t set_count() const;
  std::vector<CallWay>& all() { return ways_; }
  const std::vector<CallWay>& all() const { return ways_; }

  // Each adds one way, and one more with weights that pass, where they find no room to stay.
  void add_resident(std::uint32_t device);
  void add_alone(const std::vector<std::uint32_t>& devices);
  void add_blocks(const std::vector<std::uint32_t>& of_block);  // by node: a device
  void add_layers(const std::vector<std::uint32_t>& devices);   // and folded
  // Of devices that differ: which, in which order, and how much of the model each takes.
  void add_unequal_layers(const std::vector<std::uint32_t>& devices);
  void add_sets(const std::vector<std::uint32_t>& devices);
  void add_items(const std::vector<std::uint32_t>& devices);
  // sequence or tensor
  void add_exchanging(ParallelMode mode, const std::vector<std::uint32_t>& devices);
  // `devices`: group after group.
  void add_combined(ParallelMode mode, const GroupSizes& sizes,
                    const std::vector<std::uint32_t>& devices);

  // Of the ways from this number on, the one that fits and is done first, where it gains over those
  // before that may be taken in its place; the others go. `keeps_one`: also where none gains, and
  // the last where none fits.
  void keep_best(std::size_t from, bool keeps_one);

  // What loading a way counts. That several devices load their layers sooner is no reason to occupy
  // them all, and that what passes need not be loaded is none to bring it in every call: it counts
  // as if one device did all of it.
  double compared_load_seconds(const CallWay& way) const;
  double compared_seconds(const CallWay& way) const {
    return way.alternative.seconds + compared_load_seconds(way);
  }

 private:
  void add(CallPlacement placement, std::string name, bool streamed = false);
  void stream(std::size_t resident, std::string name);
  void stream_last();
  void add_folded(const std::vector<std::uint32_t>& devices, const std::vector<double>& fractions);
  void divide_layers(std::vector<double>& fractions, CallPlacement& placement) const;
  std::vector<double> room_for_weights(const std::vector<std::uint32_t>& devices) const;
  std::vector<double> speeds(const std::vector<std::uint32_t>& devices, std::uint32_t ranks) const;
  double seconds_alone(std::uint32_t device) const;
  std::string over(ParallelMode mode, const CallPlacement& placement) const;

  const CallRequest& request_;
  const Topology& topology_;
  const CallCase& case_;
  const std::uint32_t first_;
  std::vector<CallWay> ways_;
  mutable std::optional<CallLoad> weights_;
  mutable std::map<std::uint32_t, double> seconds_alone_;  // by device
};

inline constexpr double kWorthIt =
    0.98;  // a way that uses more devices has to be faster by as much

}  // namespace heddle::engine
