// A workflow graph, placed and in order. Pure functions from value to value; stable text for tests and `heddle plan`.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::core {

// What placement needs to know of a device.
struct PlaceInfo {
  std::string name;  // "cpu:0"
  std::string kind;  // "cpu"
  bool host_visible = false;
};

struct Assignment {
  std::uint32_t device = 0;  // index into the devices
  bool on_host = false;      // a host-only node: runs on the host, and its tensors are made there
  std::string reason;        // "hint of the node", "host-only", "first device"
};

// Hints on nodes are met or refused (not_found, invalid_argument, naming the node and the devices there are); `prefer` is met when it can
// be; nodes without a hint follow their first placed producer, else take the first device. REQUIRES: devices is not empty.
std::vector<Assignment> place(const Graph& graph, const std::vector<PlaceInfo>& devices);

// The devices that a text such as "cuda:1", "cuda" or "cpu:0,cpu:1" names. Throws not_found naming those there are.
std::vector<std::uint32_t> find_devices(std::string_view text, const std::vector<PlaceInfo>& devices);

struct Step {
  enum class Kind { run, transfer } kind = Kind::run;
  NodeIndex node = 0;           // run
  Source value;                 // transfer: every tensor in it
  std::uint32_t from = 0, to = 0;  // devices; a run has both equal
  std::vector<std::uint32_t> after;
};

struct Plan {
  std::vector<Assignment> places;  // by node
  std::vector<Step> steps;
  std::vector<std::string> pending;  // "NODE.INPUT": shapes known at run time only
};

// One transfer for each (value, device), shared by all readers on it; between devices that share the host's address space none is
// needed. Lazy inputs are in the plan: whether they run is known only later.
Plan make_plan(const Graph& graph, std::vector<Assignment> places, const std::vector<PlaceInfo>& devices);

std::string plan_text(const Graph& graph, const Plan& plan, const std::vector<PlaceInfo>& devices);

}  // namespace heddle::core
