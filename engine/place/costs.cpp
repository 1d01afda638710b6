#include "engine/place/costs.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// Guesses, of the right order of magnitude: a processor of eight cores, a graphics card.
constexpr DeviceCosts kHostGuess{2e11, 2e10, 2e-6};
constexpr DeviceCosts kCardGuess{5e13, 8e11, 5e-6};
// What attention reaches of the rate of GEMMs where nobody has measured it: 550 of 738 TFLOP/s
// on an H200, at 4608 tokens and 24 heads of 128.
constexpr double kAttentionShare = 0.75;
constexpr LinkCosts kDirectGuess{2e10, 1e-5};  // PCI Express 4.0, 16 lanes

[[noreturn]] void refuse(std::string_view name, const Json& json, std::string_view what) {
  throw Error(Code::invalid_argument,
              cat(name, ":", json.where(), ": ", what, ", got ", json.describe(), "."));
}

struct Figure {
  std::string_view name;
  double* value;
};
void read_figures(const Json& json, std::string_view name, std::string_view whose,
                  std::initializer_list<Figure> figures) {
  if (!json.is_object()) refuse(name, json, cat("the costs of ", quote(whose), " are an object"));
  for (const Json::Member& member : json.members()) {
    const auto figure = std::ranges::find(figures, std::string_view(member.key), &Figure::name);
    if (figure == figures.end()) {
      std::vector<std::string_view> names;
      for (const Figure& f : figures) names.push_back(f.name);
      throw Error(Code::invalid_argument,
                  cat(name, ":", member.line, ":", member.column, ": the costs of ", quote(whose),
                      " have no ", quote(member.key), ".", did_you_mean(member.key, names),
                      " There are: ", join(names, ", "), "."));
    }
    if (!member.value.is_number() || !(member.value.as_double() > 0))
      refuse(name, member.value, cat(quote(member.key), " needs a number above 0"));
    *figure->value = member.value.as_double();
  }
}

double known(double first, double second, double third) {
  return first > 0 ? first : second > 0 ? second : third;
}

// Of a device, or of one that nobody has measured and that says nothing of itself.
DeviceRates rates_of(const DeviceCosts& measured, const DeviceFacts& facts) {
  const DeviceCosts& guess = facts.host_visible ? kHostGuess : kCardGuess;
  DeviceRates rates;
  rates.flops_per_second =
      known(measured.flops_per_second, facts.flops_per_second, guess.flops_per_second);
  rates.bytes_per_second =
      known(measured.bytes_per_second, facts.bytes_per_second, guess.bytes_per_second);
  rates.launch_seconds = known(measured.launch_seconds, 0, guess.launch_seconds);
  rates.attention_flops_per_second =
      known(measured.attention_flops_per_second, 0, kAttentionShare * rates.flops_per_second);
  rates.fp8_flops_per_second = known(measured.fp8_flops_per_second, 0, rates.flops_per_second);
  rates.int8_flops_per_second = known(measured.int8_flops_per_second, 0, rates.flops_per_second);
  // Beside a rate that nobody measured it says nothing.
  if (measured.flops_per_second > 0)
    rates.rest_gain =
        std::max(measured.half_time_flops_per_second / rates.flops_per_second - 1, 0.0);
  return rates;
}

}  // namespace

Costs read_costs(std::string_view text, std::string_view name) {
  const Json json = parse_json(text, name);
  if (!json.is_object()) refuse(name, json, "a costs file is an object");
  Costs costs;
  for (const Json::Member& member : json.members()) {
    const bool is_devices = member.key == "devices", is_links = member.key == "links";
    if (!is_devices && !is_links) {
      costs.rest.set(member.key, member.value);
      continue;
    }
    if (!member.value.is_object())
      refuse(name, member.value, cat(quote(member.key), " needs an object"));
    for (const Json::Member& entry : member.value.members()) {
      if (is_devices) {
        DeviceCosts& d = costs.devices[entry.key];
        read_figures(entry.value, name, entry.key,
                     {{"flops_per_second", &d.flops_per_second},
                      {"attention_flops_per_second", &d.attention_flops_per_second},
                      {"fp8_flops_per_second", &d.fp8_flops_per_second},
                      {"int8_flops_per_second", &d.int8_flops_per_second},
                      {"half_time_flops_per_second", &d.half_time_flops_per_second},
                      {"bytes_per_second", &d.bytes_per_second},
                      {"launch_seconds", &d.launch_seconds}});
        continue;
      }
      const std::size_t arrow = entry.key.find(" -> ");
      if (arrow == std::string::npos)
        throw Error(Code::invalid_argument,
                    cat(name, ":", entry.line, ":", entry.column,
                        ": a link is named \"MODEL -> MODEL\", got ", quote(entry.key), "."));
      LinkCosts& l = costs.links[{entry.key.substr(0, arrow), entry.key.substr(arrow + 4)}];
      read_figures(
          entry.value, name, entry.key,
          {{"bytes_per_second", &l.bytes_per_second}, {"latency_seconds", &l.latency_seconds}});
    }
  }
  return costs;
}

std::string write_costs(const Costs& costs) {
  Json devices = Json::object(), links = Json::object();
  const auto set = [](Json& json, const char* name, double value) {
    if (value > 0) json.set(name, value);
  };
  for (const auto& [model, d] : costs.devices) {
    Json one = Json::object();
    set(one, "flops_per_second", d.flops_per_second);
    set(one, "attention_flops_per_second", d.attention_flops_per_second);
    set(one, "fp8_flops_per_second", d.fp8_flops_per_second);
    set(one, "int8_flops_per_second", d.int8_flops_per_second);
    set(one, "half_time_flops_per_second", d.half_time_flops_per_second);
    set(one, "bytes_per_second", d.bytes_per_second);
    set(one, "launch_seconds", d.launch_seconds);
    devices.set(model, std::move(one));
  }
  for (const auto& [ends, l] : costs.links) {
    Json one = Json::object();
    set(one, "bytes_per_second", l.bytes_per_second);
    set(one, "latency_seconds", l.latency_seconds);
    links.set(cat(ends.first, " -> ", ends.second), std::move(one));
  }
  Json json = costs.rest;
  json.set("devices", std::move(devices)).set("links", std::move(links));
  return write_json(json, 2);
}

Prices::Prices(const Topology& topology, const Costs& costs) : topology_(topology) {
  DeviceFacts host;
  host.host_visible = true;
  host_ = rates_of({}, host);
  for (const DeviceFacts& d : topology.devices) {
    const auto found = costs.devices.find(d.model);
    rates_.push_back(rates_of(found == costs.devices.end() ? DeviceCosts() : found->second, d));
    if (d.host_visible) host_ = rates_.back();
  }
  host_.rest_gain = 0;
  fill_links(costs);
  fill_rates_from_host(topology, costs);
}

void Prices::fill_links(const Costs& costs) {
  const std::size_t n = topology_.devices.size();
  const auto side = [n](std::size_t i) { return i == n ? kHostSide : std::uint32_t(i); };
  const auto model = [&](std::size_t i) {
    return i == n ? std::string("host") : topology_.devices[i].model;
  };
  std::vector<LinkFacts> links;
  for (std::size_t from = 0; from <= n; ++from)
    for (std::size_t to = 0; to <= n; ++to) {
      LinkFacts link = topology_.link(side(from), side(to));
      if (link.kind != LinkFacts::Kind::same) {
        const auto found = costs.links.find({model(from), model(to)});
        const LinkCosts measured = found == costs.links.end() ? LinkCosts() : found->second;
        link.bytes_per_second = known(measured.bytes_per_second, link.bytes_per_second, 0);
        link.latency_seconds = known(measured.latency_seconds, link.latency_seconds, 0);
        // Towards host memory, or a device that works in it, there is no other way.
        const auto is_host = [&](std::size_t i) {
          return i == n || topology_.devices[i].host_visible;
        };
        if (link.is_direct() || is_host(from) || is_host(to)) {
          link.bytes_per_second = known(link.bytes_per_second, kDirectGuess.bytes_per_second, 0);
          link.latency_seconds = known(link.latency_seconds, kDirectGuess.latency_seconds, 0);
        }
      }
      links.push_back(link);
    }
  // What goes through host memory takes both ways, one piece behind the other.
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to) {
      LinkFacts& link = links[from * (n + 1) + to];
      const LinkFacts &down = links[from * (n + 1) + n], &up = links[n * (n + 1) + to];
      if (link.kind != LinkFacts::Kind::through_host) continue;
      const double slower = std::min(down.bytes_per_second, up.bytes_per_second);
      link.bytes_per_second = known(link.bytes_per_second, slower, kDirectGuess.bytes_per_second);
      link.latency_seconds = known(link.latency_seconds, down.latency_seconds + up.latency_seconds,
                                   2 * kDirectGuess.latency_seconds);
    }
  topology_.links = std::move(links);
}

void Prices::fill_rates_from_host(const Topology& facts, const Costs& costs) {
  for (std::uint32_t d = 0; d < rates_.size(); ++d) {
    rates_[d].from_host = copy_rate(kHostSide, d);
    if (!facts.devices[d].pins) continue;
    const LinkFacts link = topology_.link(kHostSide, d);
    const auto found = costs.links.find({kPinnedHost, facts.devices[d].model});
    const LinkCosts measured = found == costs.links.end() ? LinkCosts() : found->second;
    // Where nobody has measured it: what the device tells of its link, but no less than what memory
    // as it comes gives.
    const double unmeasured =
        std::max(facts.link(kHostSide, d).bytes_per_second, link.bytes_per_second);
    rates_[d].from_pinned = {known(measured.bytes_per_second, unmeasured, 0),
                             known(measured.latency_seconds, link.latency_seconds, 0)};
  }
}

CopyRate Prices::copy_rate(std::uint32_t from, std::uint32_t to) const {
  const LinkFacts link = topology_.link(from, to);
  if (link.kind == LinkFacts::Kind::same) return kNothingToCopy;
  return {link.bytes_per_second, link.latency_seconds};
}

}  // namespace heddle::engine
