#include "engine/plugin/ledgers.h"

#include <algorithm>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/machine_memory.h"

namespace heddle::engine {

namespace {

using Devices = std::vector<std::shared_ptr<const Device>>;

// Where nobody says how much: a screen and its programs want something, a small device has not much
// to give.
std::uint64_t default_headroom(std::uint64_t total) {
  return std::min<std::uint64_t>(512ull << 20, total / 32);
}

const MemorySize* size_for(const std::map<std::string, MemorySize>& sizes, const Device& device) {
  return find_for(sizes, device.names());
}

void check_names(const Devices& devices, const std::map<std::string, MemorySize>& sizes,
                 std::string_view what, std::string_view also = {}) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device->name());
  for (const auto& [name, size] : sizes) {
    const bool is_known = std::ranges::any_of(devices, [&, &name = name](const auto& d) {
      return named_by(name, d->names()) != NamedBy::nothing;
    });
    if (!is_known && (also.empty() || name != also))
      throw Error(Code::not_found,
                  cat("a ", what, " is given for ", quote(name),
                      ", which is not among the devices used: ", join(names, ", ")))
          .at(option_frame(cat(what, "s"), name));
  }
}

std::shared_ptr<Ledger> make_host_ledger(const std::shared_ptr<const Device>& in_host,
                                         const MemoryPolicy& policy) {
  const std::uint64_t total =
      in_host != nullptr ? in_host->opening_info().memory_total : machine_memory().total;
  const std::uint64_t budget =
      policy.host_budget ? policy.host_budget->of(total) : default_host_budget(total);
  const auto reserve = policy.reserves.find("host");
  const std::uint64_t headroom =
      reserve != policy.reserves.end() ? reserve->second.of(total) : default_headroom(total);
  return std::make_shared<Ledger>(
      "host", Ledger::Limits{std::min(budget, total), headroom, policy.poll_seconds, policy.now},
      [in_host] {
        return in_host != nullptr ? in_host->info().memory_free : machine_memory().free;
      });
}

// What such a device takes is taken of host memory.
bool is_in_host_memory(const Device& device) {
  return device.host_visible() || device.identity().integrated;
}

// Of the host budget, for each device whose memory that is; 0 for others. By threads; a GPU that is
// part of the processor counts like all of them.
std::vector<std::uint64_t> host_shares(const Devices& devices, const MemoryPolicy& policy,
                                       std::uint64_t host_budget) {
  std::vector<std::uint64_t> shares(devices.size(), 0);
  std::uint64_t given = 0, threads = 0;
  const auto threads_of = [&](std::size_t d) {
    const std::uint64_t own = devices[d]->host_visible() ? devices[d]->opening_info().threads
                                                         : std::thread::hardware_concurrency();
    return std::max<std::uint64_t>(1, own);
  };
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (!is_in_host_memory(*devices[d])) continue;
    if (const MemorySize* size = size_for(policy.budgets, *devices[d])) {
      shares[d] = std::min(size->of(devices[d]->opening_info().memory_total), host_budget);
      given += shares[d];
    } else {
      threads += threads_of(d);
    }
  }
  const std::uint64_t rest = host_budget - std::min(given, host_budget);
  for (std::size_t d = 0; d < devices.size(); ++d)
    if (is_in_host_memory(*devices[d]) && size_for(policy.budgets, *devices[d]) == nullptr)
      shares[d] = std::uint64_t(double(rest) * double(threads_of(d)) / double(threads));
  return shares;
}

}  // namespace

std::vector<std::shared_ptr<Ledger>> make_ledgers(const Devices& devices,
                                                  const MemoryPolicy& policy) {
  check_names(devices, policy.budgets, "budget");
  check_names(devices, policy.reserves, "reserve", "host");
  const auto in_host =
      std::ranges::find_if(devices, [](const auto& device) { return device->host_visible(); });
  const bool any_in_host =
      std::ranges::any_of(devices, [](const auto& device) { return is_in_host_memory(*device); });
  const std::shared_ptr<Ledger> host =
      any_in_host ? make_host_ledger(in_host == devices.end() ? nullptr : *in_host, policy)
                  : nullptr;
  const std::vector<std::uint64_t> shares =
      host_shares(devices, policy, host == nullptr ? 0 : host->budget());
  std::vector<std::shared_ptr<Ledger>> ledgers;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const std::shared_ptr<const Device>& device = devices[d];
    const std::uint64_t total = device->opening_info().memory_total;
    const MemorySize *budget = size_for(policy.budgets, *device),
                     *reserve = size_for(policy.reserves, *device);
    Ledger::Limits limits{budget != nullptr ? budget->of(total) : Ledger::kNoLimit,
                          reserve != nullptr ? reserve->of(total) : 0, policy.poll_seconds,
                          policy.now};
    const auto ask = [device] { return device->info().memory_free; };
    if (is_in_host_memory(*device)) {
      limits.budget = shares[d];
      ledgers.push_back(std::make_shared<Ledger>(
          device->name(), limits, reserve != nullptr ? Ledger::Poll(ask) : Ledger::Poll(), host));
      continue;
    }
    if (reserve == nullptr) limits.headroom = default_headroom(total);
    // A device that says nothing of its memory cannot be asked what is free.
    ledgers.push_back(std::make_shared<Ledger>(device->name(), limits,
                                               total == 0 ? Ledger::Poll() : Ledger::Poll(ask)));
  }
  return ledgers;
}

std::shared_ptr<Ledger> host_ledger_of(const std::vector<RunDevice>& devices,
                                       const MemoryPolicy& policy) {
  for (const RunDevice& device : devices)
    if (auto host = device.state->ledger().shared_parent()) return host;
  return make_host_ledger(nullptr, policy);
}

}  // namespace heddle::engine
