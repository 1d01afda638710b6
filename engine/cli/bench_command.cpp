// bench: a model of random weights, measured as `run` would run it, or compared with plain loops.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/interrupt.h"
#include "heddle/bench.hpp"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Json;

// How far a small model may be from plain loops in f32, as a relative error: what summing in
// another order does to f32, and what mantissas of 8 and 11 bits, and of 3 and 4, do in some twenty
// layers.
constexpr double kCloseInF32 = 1e-4, kCloseIn16Bits = 5e-2, kCloseIn8Bits = 2e-1;

[[noreturn]] void refuse(const std::string& option, const std::string& text, const char* wanted) {
  throw engine::Error(engine::Code::invalid_argument,
                      cat("--", option, ": ", engine::quote(text), " is not ", wanted, "."));
}

unsigned number_of(const std::string& option, std::string_view text, const std::string& whole,
                   const char* wanted) {
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value == 0)
    refuse(option, whole, wanted);
  return value;
}

BenchOptions options_of(const Request& request) {
  const BenchArguments& given = request.bench;
  constexpr const char* kNumber = "a whole number above 0";
  constexpr const char* kSize = "a size in pixels, as 1024x768";
  BenchOptions bench;
  bench.model = request.model;
  bench.parallel = given.parallel;
  bench.weight_dtype = given.weight_dtype;
  bench.is_small = given.check;
  if (!given.steps.empty()) bench.steps = number_of("steps", given.steps, given.steps, kNumber);
  if (!given.branches.empty())
    bench.branches = number_of("branches", given.branches, given.branches, kNumber);
  if (!given.frames.empty())
    bench.frames = number_of("frames", given.frames, given.frames, kNumber);
  if (!given.size.empty()) {
    const std::string_view text = given.size;
    const std::size_t x = text.find('x');
    if (x == std::string_view::npos) refuse("size", given.size, kSize);
    bench.width = number_of("size", text.substr(0, x), given.size, kSize);
    bench.height = number_of("size", text.substr(x + 1), given.size, kSize);
  }
  return bench;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string milliseconds(double seconds) { return cat(fixed(seconds * 1e3, 2), " ms"); }

double rate(const BenchReport& r) {
  return r.median_seconds > 0 ? r.step_flops / r.median_seconds : 0;
}

std::string title(const BenchReport& r) {
  return cat(
      r.model, ", ", r.width, "x", r.height, ", ", r.steps,
      r.steps == 1 ? " step of " : " steps of ", r.branches,
      r.branches == 1 ? " branch" : " branches", ", on ", engine::join(r.devices, ", "), " in ",
      r.compute,
      r.parallel == "none" || r.parallel.empty() ? "" : cat(", in parallel by ", r.parallel));
}

std::string text_of(const BenchReport& r) {
  const auto [least, most] = std::ranges::minmax(r.step_seconds);
  Table table;
  table.row({"  step", cat(milliseconds(r.median_seconds), " (median; ", fixed(least * 1e3, 2),
                           " to ", fixed(most * 1e3, 2), ")")});
  table.row({"  planned", cat(milliseconds(r.planned_seconds), " (",
                              fixed(100 * r.planned_seconds / r.median_seconds, 0), " % of it)")});
  table.row({"  rate", cat(fixed(rate(r) / 1e12, 3), " TFLOP/s",
                           r.matmul_rate > 0 ? cat(", ", fixed(100 * rate(r) / r.matmul_rate, 0),
                                                   " % of large matrix products (",
                                                   fixed(r.matmul_rate / 1e12, 3), ")")
                                             : "")});
  table.row({"  weights", cat(engine::format_bytes(r.weight_bytes), ", drawn in ",
                              format_seconds(r.draw_seconds))});
  table.row({"  moved", cat(engine::format_bytes(r.moved_bytes), " in a step")});
  std::vector<std::string> peaks;
  for (const auto& [device, bytes] : r.peak_bytes)
    if (bytes > 0) peaks.push_back(cat(device, " ", engine::format_bytes(bytes)));
  table.row({"  peak memory", engine::join(peaks, ", ")});
  table.row({"  first run",
             cat(format_seconds(r.first_seconds), " beside its steps (planned for loading: ",
                 format_seconds(r.planned_load_seconds), ")")});
  table.row({"  whole node", format_seconds(r.node_seconds)});
  table.row({"  planning", format_seconds(r.plan_seconds)});
  table.row({"  checksum", r.checksum});
  return cat(title(r), "\n", table.text());
}

Json json_of(const BenchReport& r) {
  Json devices = Json::array(), steps = Json::array(), peaks = Json::object(),
       json = Json::object();
  for (const std::string& device : r.devices) devices.push(device);
  for (const double seconds : r.step_seconds) steps.push(seconds);
  for (const auto& [device, bytes] : r.peak_bytes) peaks.set(device, bytes);
  json.set("model", r.model).set("width", r.width).set("height", r.height).set("steps", r.steps);
  json.set("branches", r.branches).set("devices", std::move(devices)).set("compute", r.compute);
  json.set("parallel", r.parallel).set("weight_bytes", r.weight_bytes);
  json.set("step_seconds", std::move(steps)).set("median_seconds", r.median_seconds);
  json.set("planned_seconds", r.planned_seconds).set("step_flops", r.step_flops);
  json.set("flops_per_second", rate(r)).set("matmul_flops_per_second", r.matmul_rate);
  json.set("moved_bytes", r.moved_bytes).set("peak_bytes", std::move(peaks));
  json.set("first_seconds", r.first_seconds).set("planned_load_seconds", r.planned_load_seconds);
  json.set("node_seconds", r.node_seconds);
  json.set("draw_seconds", r.draw_seconds).set("plan_seconds", r.plan_seconds);
  json.set("checksum", r.checksum);
  return json;
}

double relative_error(const std::vector<float>& values, const std::vector<float>& wanted) {
  if (values.size() != wanted.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = double(values[i]) - double(wanted[i]);
    difference += d * d;
    size += double(wanted[i]) * double(wanted[i]);
  }
  return size > 0 ? std::sqrt(difference / size) : INFINITY;
}

int check_model(const Request& request, const BenchOptions& bench,
                const std::function<void(const std::string&)>& progress, Output& output) {
  const BenchReport report = measure_model(request.settings.engine, bench, progress);
  EngineOptions plain = request.settings.engine;
  plain.devices = {"cpu"};
  plain.compute = {{"cpu", "f32"}};
  plain.reference_kernels = true;
  plain.attention_dtype.clear();
  plain.linear_dtype.clear();
  plain.budgets.clear();
  plain.reserves.clear();
  plain.host_budget.reset();
  plain.pinned.reset();
  BenchOptions alone = bench;
  alone.parallel.clear();
  if (!bench.draws_int8()) alone.weight_dtype.clear();
  const double error = relative_error(report.result, measure_model(plain, alone, progress).result);
  const std::string &attention = request.settings.engine.attention_dtype,
                    &linear = request.settings.engine.linear_dtype;
  const bool as_drawn =
      (bench.weight_dtype.empty() || bench.weight_dtype == "default" || bench.draws_int8()) &&
      (attention.empty() || attention == "default") && (linear.empty() || linear == "default");
  const double bound = !as_drawn                 ? kCloseIn8Bits
                       : report.compute == "f32" ? kCloseInF32
                                                 : kCloseIn16Bits;
  const bool is_close = error <= bound;  // and is a number
  if (request.settings.json) {
    Json json = json_of(report);
    json.set("relative_error", error).set("bound", bound).set("agrees", is_close);
    output.write(cat(engine::write_json(json), "\n"));
  } else {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "%.2e, bound %.0e", error, bound);
    output.write(cat(title(report), "\n  relative error against plain loops in f32: ", numbers,
                     is_close ? "" : ": too far", "\n"));
  }
  return is_close ? kExitDone : kExitFailed;
}

int measure(const Request& request, const BenchOptions& bench, Output& output) {
  const auto progress = [&](const std::string& what) {
    if (!request.settings.quiet) to_stderr(cat("heddle: ", what));
  };
  if (request.bench.check) return check_model(request, bench, progress, output);
  const BenchReport report = measure_model(request.settings.engine, bench, progress);
  if (report.step_seconds.empty())
    throw engine::Error(
        engine::Code::internal,
        cat("the timeline of ", bench.model, " shows no steps: its devices measure no time"));
  output.write(request.settings.json ? cat(engine::write_json(json_of(report)), "\n")
                                     : text_of(report));
  return kExitDone;
}

}  // namespace

int bench_model(const Request& request, Output& output) {
  BenchOptions bench = options_of(request);
  if (bench.model.empty()) {
    Table table;
    for (const auto& [name, doc] : bench_models(request.settings.engine)) table.row({name, doc});
    output.write(table.text());
    return kExitDone;
  }
  // What was drawn may be large: a signal ends the run under way, and takes that along.
  Interrupt interrupt([] { std::fputs("heddle: stopping\n", stderr); });
  interrupt.before_runs();
  bench.watch = [&](const Run& run, bool under_way) {
    if (under_way)
      interrupt.watch(run);
    else
      interrupt.forget(run.id());
  };
  try {
    return measure(request, bench, output);
  } catch (const EngineError&) {
    if (interrupt.came()) return kExitInterrupted;
    throw;
  }
}

}  // namespace heddle::cli
