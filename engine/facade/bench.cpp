// Measuring a model by its shape: its weights are drawn, a workflow that calls it is run as any
// other, and what the runs after the first took is read off their timelines.
#include <algorithm>
#include <chrono>
#include <numeric>

#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/device/device.h"
#include "engine/facade/data.h"
#include "engine/facade/random_files.h"
#include "engine/plugin/host.h"
#include "heddle/bench.hpp"
#include "heddle/diffusion/bench_shapes.h"

namespace heddle {

namespace {

using engine::cat;
using engine::Json;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double number_in(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found == nullptr ? 0 : found->as_double();
}

constexpr unsigned kLeastSteps = 4;  // to take a median of

// Waits for a run, of which it tells.
Results results_of(const BenchOptions& bench, Run run) {
  if (!bench.watch) return run.wait();
  bench.watch(run, true);
  try {
    Results results = run.wait();
    bench.watch(run, false);
    return results;
  } catch (...) {
    bench.watch(run, false);
    throw;
  }
}

// What a shape's desc tells.
struct Case {
  std::vector<RandomTensor> tensors;
  std::string json, node, output, field, vary, weight_dtype;
  unsigned width = 0, height = 0, steps = 0, sets = 0;
  std::string fault;  // of the desc, which may not throw through C
};

void take_tensor(void* to, const heddle_bench_tensor* tensor) noexcept {
  Case& all = *static_cast<Case*>(to);
  try {
    all.tensors.push_back({tensor->file,
                           tensor->name,
                           engine::DType(tensor->dtype),
                           {tensor->shape, tensor->shape + tensor->rank},
                           tensor->mean,
                           tensor->deviation});
  } catch (const std::exception& error) {
    all.fault = error.what();
  }
}

void take_workflow(void* to, const heddle_bench_workflow* w) noexcept {
  Case& all = *static_cast<Case*>(to);
  try {
    all.json = w->json;
    all.node = w->node;
    all.output = w->output;
    all.field = w->field;
    all.vary = w->vary;
    if (w->size >= sizeof *w && w->weight_dtype != nullptr) all.weight_dtype = w->weight_dtype;
    all.width = w->width, all.height = w->height, all.steps = w->steps, all.sets = w->sets;
  } catch (const std::exception& error) {
    all.fault = error.what();
  }
}

const heddle_bench_shape_desc& shape_of(const engine::Provided& provided) {
  return *static_cast<const heddle_bench_shape_desc*>(provided.desc);
}

Case make_case(const BenchOptions& options) {
  std::vector<std::string_view> names;
  const std::vector<engine::Provided> all = engine::provided_by_all(HEDDLE_BENCH_SHAPES);
  for (const engine::Provided& provided : all) {
    const heddle_bench_shape_desc& desc = shape_of(provided);
    names.push_back(desc.name);
    if (options.model != desc.name) continue;
    Case made;
    const heddle_bench_request request{sizeof request, options.width,    options.height,
                                       options.steps,  options.branches, options.is_small ? 1 : 0,
                                       options.frames};
    const heddle_bench_sink sink{sizeof sink, &made, &take_tensor, &take_workflow};
    engine::throw_status(desc.make(engine::plugin_host(), &desc, &request, &sink),
                         cat("the shape ", engine::quote(options.model)));
    if (!made.fault.empty() || made.json.empty() || made.tensors.empty())
      throw engine::Error(engine::Code::internal,
                          cat("the shape ", engine::quote(options.model),
                              " tells no workflow and no tensors. ", made.fault));
    return made;
  }
  throw engine::Error(engine::Code::not_found,
                      cat("there is no model ", engine::quote(options.model), " to measure.",
                          engine::did_you_mean(options.model, names),
                          names.empty() ? " No plugin brings one."
                                        : cat(" There are: ", engine::join(names, ", "), ".")));
}

// As in ComfyUI's int8 files, with one scale for a matrix: those whose rows are whole blocks.
void draw_in_int8(std::vector<RandomTensor>& tensors, const BenchOptions& bench) {
  constexpr double kMost = 4.5;  // deviations, which the largest numbers stand for
  std::vector<RandomTensor> scales;
  for (RandomTensor& tensor : tensors) {
    const bool is_matrix = tensor.name.ends_with(".weight") && tensor.shape.size() == 2;
    if (!is_matrix || tensor.shape[1] % engine::dtype_block(engine::DType::i8_scaled).elements != 0)
      continue;
    const double scale = kMost * tensor.deviation / 127;
    scales.push_back({tensor.file, cat(tensor.name, "_scale"), engine::DType::f32, {1}, scale, 0});
    tensor.dtype = engine::DType::i8;
    tensor.mean = 0, tensor.deviation = 127 / kMost;
    tensor.is_rotated = bench.weight_dtype == "int8_convrot";
  }
  if (scales.empty())
    throw engine::Error(engine::Code::unsupported,
                        cat("no matrix of ", engine::quote(bench.model),
                            " has rows of whole blocks of 256 numbers, which int8 takes"));
  tensors.insert(tensors.end(), scales.begin(), scales.end());
}

// Times in a trace are microseconds.
struct Span {
  std::string device, name;
  double begin = 0, end = 0;  // seconds
};
struct Trace {
  std::vector<Span> steps;  // of each device that takes part, by their begin
  std::uint64_t moved_bytes = 0;
};

Trace read_trace(const std::filesystem::path& file) {
  const Json json =
      engine::parse_json(engine::read_file(file, engine::kTimelineFile), file.string());
  Trace trace;
  std::map<double, std::string> devices;
  for (const Json& event : json.find("traceEvents")->as_array()) {
    const std::string name = event.find("name")->as_string();
    const double process = number_in(event, "pid");
    if (name == "process_name") devices[process] = event.find("args")->find("name")->as_string();
    const Json* const kind = event.find("cat");
    if (kind == nullptr) continue;
    if (kind->as_string() == "step")
      trace.steps.push_back({devices[process], name, number_in(event, "ts") * 1e-6,
                             (number_in(event, "ts") + number_in(event, "dur")) * 1e-6});
    else if (const Json* args = event.find("args");
             args != nullptr && (kind->as_string() == "transfer" || kind->as_string() == "page-in"))
      trace.moved_bytes += std::uint64_t(number_in(*args, "bytes"));
  }
  std::ranges::stable_sort(trace.steps, {}, &Span::begin);
  return trace;
}

// A step lasts from its begin on the device that begins first to the next one's; the last one to
// its end on the device that ends last.
std::vector<double> step_seconds(const std::vector<Span>& steps) {
  std::vector<double> seconds;
  if (steps.empty()) return seconds;
  std::vector<double> begins;
  for (const Span& step : steps)
    if (step.device == steps.front().device) begins.push_back(step.begin);
  begins.push_back(std::ranges::max(steps, {}, &Span::end).end);
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) seconds.push_back(begins[i + 1] - begins[i]);
  return seconds;
}

// Of a run of so many steps. A clip or a picture in tiles is one step, of many calls.
std::vector<double> seconds_of_steps(const std::vector<Span>& spans, unsigned steps) {
  std::vector<double> seconds = step_seconds(spans);
  if (steps == 1 && seconds.size() > 1)
    seconds = {std::accumulate(seconds.begin(), seconds.end(), 0.0)};
  return seconds;
}

std::vector<std::string> devices_of(const std::vector<Span>& steps) {
  std::vector<std::string> devices;
  for (const Span& step : steps)
    if (std::ranges::find(devices, step.device) == devices.end()) devices.push_back(step.device);
  std::ranges::sort(devices);
  return devices;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double stage_seconds(const Results& results, const std::string& node) {
  for (const Stage& stage : results.stages())
    if (stage.node == node) return stage.seconds;
  return 0;
}

// The calls of the measured node as the plan has them.
void read_plan(const std::vector<PlannedCall>& calls, const std::string& node,
               BenchReport& report) {
  for (const PlannedCall& call : calls) {
    if (call.node != node) continue;
    report.planned_seconds += call.step_seconds;
    report.planned_load_seconds += call.load_seconds;
    report.step_flops += call.step_flops;
    report.parallel = call.parallel;
  }
}

double matmul_rate(const EngineOptions& options, const std::vector<DeviceInfo>& devices,
                   const std::vector<std::string>& used) {
  const engine::Costs costs = engine::read_costs(
      engine::read_file(options.costs, engine::kCostsFile), options.costs.string());
  double rate = 0;
  for (const DeviceInfo& device : devices) {
    const auto found = costs.devices.find(device.name);
    if (std::ranges::find(used, device.id) == used.end()) continue;
    if (found == costs.devices.end()) return 0;
    rate += found->second.flops_per_second;
  }
  return rate;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> bench_models(const EngineOptions& options) {
  return translate_errors([&] {
    const Engine engine(options);  // loads the plugins, and holds them meanwhile
    std::vector<std::pair<std::string, std::string>> all;
    for (const engine::Provided& provided : engine::provided_by_all(HEDDLE_BENCH_SHAPES))
      all.emplace_back(shape_of(provided).name, shape_of(provided).doc);
    return all;
  });
}

BenchReport measure_model(const EngineOptions& given, const BenchOptions& bench,
                          const std::function<void(const std::string&)>& progress) {
  return translate_errors([&] {
    const auto say = [&](const std::string& what) {
      if (progress) progress(what);
    };
    EngineOptions options = given;
    options.cache_dir.clear();
    auto first = std::make_unique<Engine>(options);
    Case what = make_case(bench);
    const bool is_loaded_so = !bench.weight_dtype.empty() && !bench.draws_int8();
    if (bench.draws_int8()) draw_in_int8(what.tensors, bench);
    if (is_loaded_so && what.weight_dtype.empty())
      throw engine::Error(engine::Code::invalid_argument,
                          cat("the weights of ", engine::quote(bench.model),
                              " are loaded as they are drawn, not as ", bench.weight_dtype));
    BenchReport report;
    report.model = bench.model, report.branches = what.sets;
    report.width = what.width, report.height = what.height, report.steps = what.steps;

    const std::uint64_t bytes = std::accumulate(
        what.tensors.begin(), what.tensors.end(), std::uint64_t{0},
        [](std::uint64_t sum, const RandomTensor& tensor) { return sum + tensor.bytes(); });
    say(cat("drawing ", engine::format_bytes(bytes), " of weights"));
    const auto began_drawing = Clock::now();
    const RandomFiles files(what.tensors);
    report.draw_seconds = since(began_drawing);
    report.weight_bytes = files.bytes();
    options.model_dirs.insert(options.model_dirs.begin(), files.folder());
    if (options.costs.empty()) {
      options.costs = files.folder() / "costs.json";
      engine::write_file(options.costs, first->tune(progress), engine::Lasting::no);
    }
    first.reset();

    Engine engine(options);
    Workflow flow = engine.parse(what.json, cat(bench.model, ".json"));
    if (!bench.parallel.empty()) flow.parallel(what.node, bench.parallel);
    if (is_loaded_so) flow.set(what.weight_dtype, bench.weight_dtype);
    const auto began_planning = Clock::now();
    const std::vector<PlannedCall> plan = engine.planned_calls(flow);
    report.plan_seconds = since(began_planning);
    read_plan(plan, what.node, report);

    say("first run, which loads the weights");
    const double cold =
        stage_seconds(results_of(bench, engine.start(flow, {.fetch = {what.output}})), what.node);
    const unsigned runs = (kLeastSteps + what.steps - 1) / std::max(1u, what.steps);
    say(runs == 1 ? "measured run" : cat(runs, " measured runs"));
    const std::filesystem::path file = files.folder() / "trace.json";
    Results results;
    Trace trace;
    std::vector<double> node_seconds;
    for (unsigned run = 0; run < runs; ++run) {
      flow.set(what.vary, std::to_string(run + 2));
      results = results_of(
          bench, engine.start(flow, {.fetch = {what.output}, .trace = file, .trace_steps = true}));
      node_seconds.push_back(stage_seconds(results, what.node));
      trace = read_trace(file);
      const std::vector<double> seconds = seconds_of_steps(trace.steps, what.steps);
      report.step_seconds.insert(report.step_seconds.end(), seconds.begin(), seconds.end());
    }
    report.median_seconds = median(report.step_seconds);
    report.node_seconds = median(node_seconds);
    report.moved_bytes = trace.moved_bytes / std::max(1u, what.steps);
    report.first_seconds = std::max(0.0, cold - report.median_seconds * what.steps);
    report.devices = devices_of(trace.steps);
    const std::vector<DeviceInfo> devices = engine.devices();
    for (const DeviceInfo& device : devices) {
      report.peak_bytes[device.id] = device.memory.peak;
      if (!report.devices.empty() && device.id == report.devices.front())
        report.compute = device.compute;
    }
    report.matmul_rate = matmul_rate(options, devices, report.devices);
    report.result = results.floats(what.output, what.field);
    report.checksum =
        engine::hex(engine::Hasher().add(std::as_bytes(std::span(report.result))).finish());
    return report;
  });
}

}  // namespace heddle
