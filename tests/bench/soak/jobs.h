// What a soak runs: workflows drawn at random, in every size and way of placing them, some of which
// are cancelled. Equal works have equal numbers, however they are placed.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/facade/random_files.h"
#include "heddle/engine.hpp"

namespace heddle::soak {

struct Job {
  std::string kind;  // "flux-dev in layers, with a budget, cancelled"
  std::string work;  // names what is computed: two with an equal one make the same bytes
  std::string text;  // the workflow
  std::string output, field;
  std::string node, parallel, device;  // empty: the planner's choice
  unsigned sets = 2;                   // of inputs in a step
  bool among_many = false;
  double budget = 0;  // times the least with which it can run; 0: it has none. No other may run
                      // beside it then: a budget is the device's, and counts what others hold
  double cancel_after = -1;  // seconds; below 0: it is not cancelled
};

struct JobOptions {
  std::vector<std::string> devices;  // ids
  std::string large;                 // a shape of bench_shapes.h; empty: none
  bool is_small = false;             // of that shape
  double longest = 1;                // seconds until a cancel
};

// The workflow, placed as the job says. Throws what the engine says of it.
Workflow workflow_of(const Job& job, const Engine& engine);

// REQUIRES: an engine that holds the plugins lives. One thread at a time.
class Jobs {
 public:
  Jobs(JobOptions options, std::uint64_t seed);
  ~Jobs();

  // Where models are that were drawn: for EngineOptions::model_dirs.
  std::vector<std::filesystem::path> model_dirs() const;
  // One of each work, as the planner wants it: what all others are compared with.
  std::vector<Job> first() const { return works_; }
  Job next();

 private:
  void add_scenes();
  void add_large();
  std::uint32_t below(std::size_t n) { return std::uint32_t(random_() % n); }

  const JobOptions options_;
  std::mt19937_64 random_;
  std::vector<Job> works_;
  std::unique_ptr<RandomFiles> files_;
};

}  // namespace heddle::soak
