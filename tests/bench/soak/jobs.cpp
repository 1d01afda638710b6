#include "tests/bench/soak/jobs.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/device/device.h"
#include "engine/plugin/host.h"
#include "engine/plugin/loader.h"
#include "heddle/diffusion/bench_shapes.h"

namespace heddle::soak {

namespace {

using engine::cat;

// What lies about in pools is not in what is told as the least, which is that of a fresh device.
constexpr double kLyingAbout = 16 << 20;  // bytes
constexpr unsigned kSeeds = 4;  // of each work: so few that all of them come again and again

// A picture of the model that ships.
std::string scene(unsigned width, unsigned height, unsigned steps, unsigned seed) {
  const char* const prompt =
      seed % 2 == 0 ? "a red house on the left and a pine tree on the right" : "a whale at sea";
  return cat(
      R"({"model": {"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny-scenes"}},)",
      R"("prompt": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["model", 1], "text": ")",
      prompt, R"("}},)",
      R"("none": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["model", 1], "text": ""}},)",
      R"("size": {"class_type": "EmptySD3LatentImage", "inputs": {"width": )", width,
      R"(, "height": )", height, R"(, "batch_size": 1}},)",
      R"("sample": {"class_type": "KSampler", "inputs": {"model": ["model", 0],)",
      R"("positive": ["prompt", 0], "negative": ["none", 0], "latent_image": ["size", 0],)",
      R"("seed": )", seed, R"(, "steps": )", steps,
      R"(, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}},)",
      R"("decode": {"class_type": "VAEDecode", "inputs": {"samples": ["sample", 0],)",
      R"("vae": ["model", 2]}},)",
      R"("end": {"class_type": "Discard", "inputs": {"value": ["decode", 0]}}})");
}

// What a shape tells of itself.
struct Shape {
  std::vector<RandomTensor> tensors;
  Job job;
  std::string vary;
};

void take_tensor(void* to, const heddle_bench_tensor* t) noexcept {
  static_cast<Shape*>(to)->tensors.push_back({t->file,
                                              t->name,
                                              engine::DType(t->dtype),
                                              {t->shape, t->shape + t->rank},
                                              t->mean,
                                              t->deviation});
}

void take_workflow(void* to, const heddle_bench_workflow* w) noexcept {
  Shape& shape = *static_cast<Shape*>(to);
  shape.job.text = w->json;
  shape.job.node = w->node;
  shape.job.output = w->output;
  shape.job.field = w->field;
  shape.job.sets = w->sets;
  shape.job.work = cat(w->width, "x", w->height, ", ", w->steps, " steps, ", w->sets, " sets");
  shape.vary = w->vary;
}

Shape shape_of(const std::string& name, const heddle_bench_request& request) {
  for (const engine::Provided& provided : engine::provided_by_all(HEDDLE_BENCH_SHAPES)) {
    const auto& desc = *static_cast<const heddle_bench_shape_desc*>(provided.desc);
    if (name != desc.name) continue;
    Shape shape;
    const heddle_bench_sink sink{sizeof sink, &shape, &take_tensor, &take_workflow};
    engine::throw_status(desc.make(engine::plugin_host(), &desc, &request, &sink), name);
    return shape;
  }
  throw engine::Error(engine::Code::not_found, cat("there is no model ", engine::quote(name),
                                                   "; `heddle bench` lists them"));
}

// The same with another number for NODE.INPUT.
std::string with_number(const std::string& text, const std::string& input, unsigned number) {
  const std::size_t dot = input.find('.');
  const engine::Json flow = engine::parse_json(text, "a shape's workflow");
  engine::Json changed = engine::Json::object();
  for (const engine::Json::Member& node : flow.members()) {
    engine::Json one = node.value;
    if (node.key == input.substr(0, dot)) {
      engine::Json inputs = *node.value.find("inputs");
      inputs.set(input.substr(dot + 1), std::int64_t(number));
      one.set("inputs", std::move(inputs));
    }
    changed.set(node.key, std::move(one));
  }
  return engine::write_json(changed);
}

// As the planner would split the job's node just now, and where it would run whole.
Job as_planned(Job job, const std::string& plan_text) {
  const engine::Json plan = engine::parse_json(plan_text, "a plan");
  for (const engine::Json& step : plan.find("steps")->as_array()) {
    const engine::Json* const calls = step.find("calls");
    if (calls == nullptr || step.find("node")->as_string() != job.node) continue;
    for (const engine::Json& call : calls->as_array())
      job.parallel = call.find("parallel")->as_string();
    if (job.parallel == "none") job.device = step.find("device")->as_string();
  }
  return job;
}

}  // namespace

Jobs::Jobs(JobOptions options, std::uint64_t seed) : options_(std::move(options)), random_(seed) {
  add_scenes();
  if (!options_.large.empty()) add_large();
}

Jobs::~Jobs() = default;

std::vector<std::filesystem::path> Jobs::model_dirs() const {
  if (files_ == nullptr) return {};
  return {files_->folder()};
}

void Jobs::add_scenes() {
  const unsigned unit = options_.is_small ? 32 : 128;
  for (const auto& [width, height] : {std::pair(2u, 2u), {4u, 3u}, {1u, 2u}})
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      const unsigned steps = options_.is_small ? 2 : 8 + 4 * seed;
      Job job{.kind = "tiny-scenes", .output = "decode.IMAGE", .node = "sample"};
      job.work = cat("tiny-scenes ", width * unit, "x", height * unit, ", seed ", seed);
      job.text = scene(width * unit, height * unit, steps, seed);
      works_.push_back(std::move(job));
    }
}

void Jobs::add_large() {
  for (const unsigned size : {512u, 1024u})
    for (const unsigned sets : {1u, 2u}) {
      heddle_bench_request request{sizeof request, size, size, 4, sets, 0};
      if (options_.is_small) request = {sizeof request, 0, 0, 2, sets, 1};
      Shape shape = shape_of(options_.large, request);
      if (files_ == nullptr) files_ = std::make_unique<RandomFiles>(shape.tensors);
      for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        Job job = shape.job;
        job.kind = options_.large;
        job.work = cat(options_.large, " ", shape.job.work, ", seed ", seed);
        job.text = with_number(shape.job.text, shape.vary, seed);
        const auto is_known = [&](const Job& other) { return other.work == job.work; };
        if (std::ranges::none_of(works_, is_known)) works_.push_back(std::move(job));
      }
    }
}

Workflow workflow_of(const Job& wanted, const Engine& engine) {
  Job job = wanted;
  const auto placed = [&](const std::string& text) {
    Workflow flow = engine.parse(text, job.work);
    if (!job.parallel.empty()) flow.parallel(job.node, job.parallel);
    if (!job.device.empty()) flow.place(job.node, job.device);
    return flow;
  };
  if (job.budget == 0) return placed(job.text);
  // What others take of the memory changes where the planner would put it, and so how much it
  // needs: the budget is for one way of running.
  if (job.parallel.empty()) job = as_planned(job, engine.plan_json(placed(job.text)));
  const Workflow flow = placed(job.text);
  // The same for all: with less of one device than of another, layers would be cut elsewhere.
  double least = 0;
  std::vector<std::string> devices;
  const engine::Json needs =
      engine::parse_json(engine.plan_min_memory(flow, true), "the least budgets");
  for (const engine::Json& need : needs.as_array()) {
    const std::string name = need.find("device")->as_string();
    if (name == "host") continue;
    devices.push_back(name);
    least = std::max(least, need.find("min_bytes")->as_double());
  }
  const std::string budget = cat(std::uint64_t(job.budget * least + kLyingAbout) >> 10, "KiB");
  engine::Json budgets = engine::Json::object();
  for (const std::string& device : devices)
    budgets.set(device, std::move(engine::Json::object().set("budget", budget)));
  return placed(
      cat(R"({"prompt": )", job.text, R"(, "devices": )", engine::write_json(budgets), "}"));
}

Job Jobs::next() {
  Job job = works_[below(works_.size())];
  const std::size_t devices = options_.devices.size();
  switch (below(4)) {
    case 0:
      job.parallel = "none";
      job.device = options_.devices[below(devices)];
      break;
    case 1:
      if (devices > 1) job.parallel = "layers";
      break;
    case 2:
      if (devices > 1 && job.sets > 1) job.parallel = "cfg";
      break;
    default:
      job.among_many = below(2) == 0;
  }
  job.kind += job.parallel.empty()     ? ", as planned"
              : job.parallel == "none" ? ", on one"
                                       : cat(", in ", job.parallel);
  if (below(4) == 0) {
    // Where a split is asked for, placement refuses by a rougher estimate of what is needed.
    job.budget = (job.parallel.empty() ? 1.5 : 3) + below(200) / 100.0;
    job.kind += ", with a budget";
  }
  if (below(5) == 0) {
    job.cancel_after = options_.longest * below(1000) / 1000;
    job.kind += ", cancelled";
  }
  return job;
}

}  // namespace heddle::soak
