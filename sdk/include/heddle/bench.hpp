// heddle/bench.hpp - measure a model whose files need not be there: `heddle bench`. For the program
// and its tests; programs that embed the engine do without. Any thread; all failures are thrown as
// EngineError.
#pragma once

#include "heddle/engine.hpp"

namespace heddle {

// What measure_model() measures: a model by its shape alone, with weights drawn at random.
struct BenchOptions {
  std::string model = {};            // as bench_models() calls it
  unsigned width = 0, height = 0;    // pixels; 0: what is usual for the shape, of the next two, too
  unsigned steps = 0, branches = 0;  // sets of inputs in a step: 2 with guidance
  unsigned frames = 0;               // of a clip
  std::string parallel = {};         // as Workflow::parallel(); empty: the planner's choice
  // As the shape's loader calls it: "fp8_e4m3fn"; "int8", "int8_convrot": matrices are drawn as
  // whole numbers of 8 bits, those of the latter rotated; empty: as the shape tells.
  std::string weight_dtype = {};
  bool is_small = false;  // a model of that family for plain loops, and a small picture
  // Told of every run when it begins (true), so that it can be cancelled, and when it is over
  // (false). No copy may be left then.
  std::function<void(const Run&, bool under_way)> watch = {};

  bool draws_int8() const { return weight_dtype == "int8" || weight_dtype == "int8_convrot"; }
};

// Over 15 members: a report, in which nothing depends on anything else.
struct BenchReport {
  std::string model;
  unsigned width = 0, height = 0, steps = 0, branches = 0;
  std::vector<std::string> devices;  // that blocks of the model ran on
  std::string compute;               // the type that the first of them computes with
  std::string parallel;              // as planned: "none", "layers", ...
  std::uint64_t weight_bytes = 0;    // of the file
  std::vector<double>
      step_seconds;  // from a step's first block to the next one's, by the devices' own clocks
  double median_seconds = 0;   // of them
  double planned_seconds = 0;  // of a step; 0: nothing was known
  double step_flops = 0;       // of all branches
  double matmul_rate = 0;      // FLOP/s of a large GEMM on those devices together; 0: unknown
  double first_seconds =
      0;  // of the measured node in the first run, which loads the weights; without its steps
  double planned_load_seconds = 0;
  double node_seconds = 0;                    // of the measured node in a later run: the median
  double draw_seconds = 0, plan_seconds = 0;  // of making the weights, of planning once
  std::uint64_t moved_bytes = 0;  // in a step: between devices, and of weights that are streamed
  std::map<std::string, std::uint64_t> peak_bytes;  // most memory taken of each device
  std::string checksum;                             // of the result: equal for equal bytes
  std::vector<float> result;                        // row-major
};

// The models that there are to measure, and what they are.
std::vector<std::pair<std::string, std::string>> bench_models(const EngineOptions& options);
// Draws the weights, runs a workflow that calls the model, as any workflow is run, and again until
// a few steps are measured. `options`: as for the engine that would run it. `progress` gets what
// goes on. Throws EngineError.
BenchReport measure_model(const EngineOptions& options, const BenchOptions& bench,
                          const std::function<void(const std::string&)>& tell = {});

}  // namespace heddle
