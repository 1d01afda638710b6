// A run on its way to the devices: it is planned, enters, waits for its memory, and begins once
// more where a device or another run's memory has failed it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/facade/data.h"
#include "engine/run/wait_for_memory.h"

namespace heddle {

// Placed beside what other runs still have to do. `by_budget`: as if other programs held no memory.
Ready plan_run(const Run::Data& run, Engine::Data& engine, bool by_budget);

// Makes the run's ticket, of its plan.
void enter(Run::Data& run, Engine::Data& engine);

// Whose nodes and calls run there.
std::vector<std::uint32_t> devices_of(const engine::Plan& plan);

// For a run that has not begun, and has a device in its plan that is not to be used any more.
// Throws what planning refuses.
void plan_again(Run::Data& run, Engine::Data& engine);

engine::MemoryWait memory_wait_of(Run::Data& run, Engine::Data& engine);

// After the run has given back what it held: waits while it is paused, then places it anew, on
// devices of the same kinds, and lets it wait for its turn. Throws cancelled, and what placing
// throws.
void wait_to_go_on(Run::Data& run, Engine::Data& engine);

// How many runs each device has failed.
std::vector<std::uint64_t> device_failures(const Engine::Data& engine);

// Whether a run that has failed is worth another try, for which it is then ready: one that lacked
// memory beside others, now alone; one that a device has failed since `before`, or that found no
// room on one even in tiles, on what is left. It goes on from what it had finished
// (FinishedOutputs). Not where it may have written files. Never throws what planning refuses.
bool begins_again(Run::Data& run, Engine::Data& engine, const engine::Error& failure,
                  const std::vector<std::uint64_t>& before);

}  // namespace heddle
