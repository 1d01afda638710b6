// Which of the devices that a call may use are worth a try: of those that are alike one stands for
// all. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/place/costs.h"

namespace heddle::engine {

// Equal bytes at equal speed, and room for as much.
bool alike(const DeviceFacts& a, const DeviceFacts& b);
// And each is linked to each as well as to any other.
bool all_alike(const std::vector<std::uint32_t>& devices, const Prices& prices);

// How many devices to try where all are alike: two, three, four, then twice as many, and all.
std::vector<std::size_t> counts_of_devices(std::size_t all);

// The first and those with most room, in the order in which they are given.
std::vector<std::uint32_t> first_devices(const std::vector<std::uint32_t>& devices,
                                         std::size_t count, const Topology& topology);

// Without those that are as good as an earlier one, seen from home. Home itself stays.
std::vector<std::uint32_t> distinct_devices(const std::vector<std::uint32_t>& devices,
                                            std::uint32_t home, const Topology& topology);

}  // namespace heddle::engine
