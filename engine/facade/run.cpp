#include <algorithm>
#include <atomic>
#include <charconv>
#include <span>
#include <utility>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/base/write_file.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/resources/timeline.h"
#include "engine/run/comparison.h"
#include "engine/tensor/dlpack.h"
#include "engine/tensor/gather.h"

namespace heddle {

namespace {

// Passes what the executor tells on to the caller's function.
class Teller final : public engine::Observer {
 public:
  Teller(const StartOptions& options, std::uint64_t run)
      : observer_(options.observer), previews_(options.previews), run_(run) {}
  bool listens() const override { return observer_ != nullptr; }
  bool wants_previews() const override { return previews_; }
  void node_started(const engine::Node& n, std::string_view device) override {
    notify(Event::Kind::node_started, &n, {.device = device});
  }
  void node_progress(const engine::Node& n, double fraction, std::string_view note) override {
    notify(Event::Kind::node_progress, &n, {.fraction = fraction, .text = note});
  }
  void node_done(const engine::Node& n, double seconds) override {
    notify(Event::Kind::node_done, &n, {.seconds = seconds});
  }
  void node_cached(const engine::Node& n) override { notify(Event::Kind::node_cached, &n, {}); }
  void file_written(const engine::Node& n, std::string_view path) override {
    notify(Event::Kind::file_written, &n, {.text = path});
  }
  void node_shows(const engine::Node& n, std::string_view ui) override {
    notify(Event::Kind::node_shows, &n, {.text = ui});
  }
  void node_blocked(const engine::Node& n, std::string_view message) override {
    notify(Event::Kind::node_blocked, &n, {.text = message});
  }
  void warning(const engine::Node* n, std::string_view message) override {
    notify(Event::Kind::warning, n, {.text = message});
  }
  void node_waiting(const engine::Node& n) override { notify(Event::Kind::node_waiting, &n, {}); }
  void preview(const engine::Node& n, std::string_view device, const heddle_preview& p) override {
    const Preview picture{p.width, p.height, p.step, p.step_count, p.pixels};
    notify(Event::Kind::preview, &n, {.device = device, .preview = &picture});
  }

 private:
  struct Details {
    std::string_view device = {};
    double fraction = 0, seconds = 0;
    std::string_view text = {};
    const Preview* preview = nullptr;
  };
  void notify(Event::Kind kind, const engine::Node* n, const Details& d) {
    Event event{kind, {}, {}, {}, d.device, d.fraction, d.seconds, d.text, run_, d.preview};
    if (n != nullptr) {
      event.node = event.display_node = event.real_node = n->id;
      event.class_type = n->type->name();
      event.title = n->title;
      if (n->origin != nullptr) {
        event.display_node = n->origin->display;
        event.parent_node = n->origin->parent;
        event.real_node = n->origin->real;
      }
    }
    observer_(event);
  }
  const heddle::Observer& observer_;
  const bool previews_;
  const std::uint64_t run_;
};

std::atomic<std::uint64_t> last_run{0};

std::string extra_pnginfo(const engine::Workflow& workflow) {
  const engine::Json* data = workflow.rest.find("extra_data");
  const engine::Json* info = data == nullptr ? nullptr : data->find("extra_pnginfo");
  return info == nullptr ? "" : engine::write_json(*info);
}

// Whether a node has a hidden input of this type: to write a large workflow takes longer than to
// run it.
bool asks_for(const engine::Graph& graph, std::string_view type) {
  return std::ranges::any_of(graph.nodes, [&](const engine::Node& node) {
    for (std::uint32_t i = 0; i < node.type->input_count(); ++i)
      if ((node.type->input(i).flags & HEDDLE_PORT_HIDDEN) != 0 && node.type->input(i).type == type)
        return true;
    return false;
  });
}

std::vector<std::string> names_of_busy(const std::vector<engine::RunDevice>& devices,
                                       const std::vector<double>& seconds) {
  const double most = *std::ranges::max_element(seconds);
  std::vector<std::string> names;
  for (std::size_t d = 0; d < devices.size(); ++d)
    if (seconds[d] > 0 && seconds[d] >= most / 2)
      names.push_back(devices[d].state->device().name());
  return names;
}

// With a timeline where one is wanted. A run that fails leaves one, too: that is when it is needed
// most.
engine::RunResult execute_traced(engine::RunRequest& request, engine::Environment& environment,
                                 Teller& teller, Run::Data& run) {
  const std::filesystem::path& path = run.options.trace;
  if (path.empty()) return engine::execute(request, environment, teller, run.control);
  engine::Timeline timeline(environment.devices);
  request.timeline = &timeline;
  try {
    engine::RunResult result = engine::execute(request, environment, teller, run.control);
    engine::write_timeline(timeline.finish(), path);
    return result;
  } catch (...) {
    try {
      engine::write_timeline(timeline.finish(), path);
    } catch (const engine::Error&) {
      // The run's own failure is what has to be reported.
    }
    throw;
  }
}

// `fetch`: the sources of options.fetch.
std::shared_ptr<Results::Data> carry_out(Run::Data& run, const std::vector<engine::Source>& fetch,
                                         Engine::Data& engine) {
  engine::RunRequest request{
      &run.ready.graph,     &run.ready.plan, "", extra_pnginfo(run.flow->workflow), fetch,
      run.ready.disk_cached};
  if (asks_for(run.ready.graph, "PROMPT"))
    request.prompt_json = engine::write_json(engine::nodes_to_json(run.flow->workflow));
  Teller teller(run.options, run.id);
  const std::vector<engine::Ledger::Cap> caps =
      Budgets(engine.options, run.flow->workflow.devices).caps(*engine.environment);
  auto results = std::make_shared<Results::Data>();
  const auto began = std::chrono::steady_clock::now();
  results->result = execute_traced(request, *engine.environment, teller, run);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  for (const auto& [node, outputs] : results->result.to_cache_on_disk)
    engine::write_disk_cached(run.ready.disk_cached.at(node), outputs, *engine.environment);
  results->result.to_cache_on_disk.clear();
  results->remarks =
      engine::prediction_against_fact(run.ready.graph, run.ready.plan, results->result.timings,
                                      seconds.count(), engine.environment->costs);
  const std::vector<engine::Node>& nodes = run.ready.graph.nodes;
  const auto added = [&](engine::NodeIndex n) -> const engine::AddedInfo& {
    return results->result.added[n - nodes.size()];
  };
  for (const engine::NodeTiming& t : results->result.timings) {
    const bool is_added = t.node >= nodes.size();
    const engine::PlannedTime planned = engine::planned_time(run.ready.plan, t.node);
    results->stages.push_back(
        {is_added ? added(t.node).id : nodes[t.node].id,
         is_added ? added(t.node).class_type : std::string(nodes[t.node].type->name()), t.seconds,
         t.cached, planned.seconds, planned.load_seconds});
  }
  for (const auto& [n, ui] : results->result.ui)
    results->ui.set(n < nodes.size() ? nodes[n].id : added(n).id, engine::parse_json(ui, "ui"));
  for (std::size_t i = 0; i < fetch.size(); ++i)
    results->fetched[run.options.fetch[i]] = results->result.fetched.at(fetch[i]);
  return results;
}

}  // namespace

Run Engine::start(const Workflow& flow, StartOptions options) {
  return translate_errors([&] {
    // First of all, so that nothing is left with the caller when anything throws.
    const TakenInputs taken = take_inputs(std::exchange(options.inputs, {}));
    auto data = std::make_shared<Run::Data>();
    data->id = ++last_run;
    data->flow = with_inputs(flow.data_, taken);
    engine::DeviceLoad device_load = data_->device_load();
    device_load.among_many = options.among_many;
    data->ready = data_->prepare(
        *data->flow, {Describe::for_a_run, std::move(device_load), values_of(*data->flow, taken),
                      options.fetch, true, options.partly});
    data->options = std::move(options);
    data->busy_seconds = data_->busy_seconds(data->ready.plan);
    data->devices = names_of_busy(data_->environment->devices, data->busy_seconds);
    const std::vector<engine::Source> fetch =
        find_outputs(data->ready.graph, data->flow->workflow, data->options.fetch);
    auto promise = std::make_shared<std::promise<Results>>();
    data->outcome = promise->get_future().share();
    {
      const std::lock_guard lock(data_->mutex);
      if (data_->is_tuning)
        throw engine::Error(engine::Code::unsupported,
                            "the devices are being measured: a run would spoil the figures. Start "
                            "it when that is done");
      std::erase_if(data_->runs, [](const auto& weak) { return weak.expired(); });
      data_->runs.push_back(data);
      data_->write_after(data->options.writes_after, data->sequencer);
      data_->sequencers.emplace(data->id, data->sequencer);
    }
    // The thread must not own the run's data, or the last copy of a Run could be dropped by its own
    // thread.
    data->thread = engine::start_thread(
        "the thread of a run", [raw = data.get(), promise, fetch, engine = data_.get()] {
          Results outcome;
          std::exception_ptr failure;
          try {
            outcome.data_ = carry_out(*raw, fetch, *engine);
          } catch (...) {
            failure = std::current_exception();
          }
          raw->sequencer->end();
          raw->ready = {};  // what the run was given goes back before anybody hears that it is over
          if (failure == nullptr)
            promise->set_value(std::move(outcome));
          else
            promise->set_exception(failure);
        });
    Run run;
    run.data_ = std::move(data);
    return run;
  });
}

std::uint64_t Run::id() const { return data_->id; }
Results Run::wait() {
  return translate_errors([&] { return data_->outcome.get(); });
}
bool Run::wait_for(std::chrono::milliseconds time) {
  return data_->outcome.wait_for(time) == std::future_status::ready;
}
void Run::cancel() { data_->control.cancel(); }
void Run::pause() { data_->control.pause(); }
void Run::resume() { data_->control.resume(); }
std::vector<std::string> Run::devices() const { return data_->devices; }

namespace {

// A field of a record, an element of a list ("0"), or either of such a part ("0.samples").
const heddle_value* part_of(const heddle_value* value, std::string_view path) {
  if (path.empty() || value == nullptr) return value;
  const auto inside = [&](std::string_view name) -> const heddle_value* {
    if (const auto* record = std::get_if<engine::Record>(&value->content)) {
      const engine::Value* field = record->find(name);
      return field == nullptr ? nullptr : field->get();
    }
    const auto* list = std::get_if<engine::List>(&value->content);
    std::size_t index = 0;
    const char* end = name.data() + name.size();
    const bool is_index = std::from_chars(name.data(), end, index).ptr == end;
    return list != nullptr && is_index && index < list->items.size() ? list->items[index].get()
                                                                     : nullptr;
  };
  if (const heddle_value* whole = inside(path)) return whole;
  const std::size_t dot = path.find('.');
  return dot == path.npos ? nullptr : part_of(inside(path.substr(0, dot)), path.substr(dot + 1));
}

const engine::Tensor& tensor_in(const Results::Data& data, std::string_view output,
                                std::string_view field) {
  const auto found = data.fetched.find(std::string(output));
  if (found == data.fetched.end())
    throw engine::Error(engine::Code::not_found,
                        engine::cat("the value ", engine::quote(output),
                                    " was not asked for with StartOptions::fetch"));
  const heddle_value* value = part_of(found->second.get(), field);
  if (value == nullptr)
    throw engine::Error(engine::Code::not_found,
                        engine::cat(output, " is ", engine::describe(*found->second),
                                    ": it has no field ", engine::quote(field)));
  return engine::get_tensor(*value);
}

// A row-major copy of the elements, which are `bytes` in all.
void read_bytes(const engine::Tensor& tensor, void* to, std::size_t bytes) {
  if (auto* memory = dynamic_cast<engine::DeviceMemory*>(tensor->storage.get()))
    memory->state().read(tensor, to, bytes);
  else
    engine::gather(tensor->info, tensor->data(), static_cast<std::byte*>(to));
}

std::vector<float> read_floats(const engine::Tensor& tensor) {
  if (tensor->info.dtype != HEDDLE_F32)
    throw engine::Error(engine::Code::unsupported,
                        engine::cat(engine::describe(tensor->info), " is not f32"));
  std::vector<float> values(std::size_t(engine::element_count(tensor->info)));
  if (values.empty()) return values;
  read_bytes(tensor, values.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

std::vector<std::string> Results::files() const { return data_->result.files; }
std::vector<Stage> Results::stages() const { return data_->stages; }
std::vector<std::string> Results::remarks() const { return data_->remarks; }
std::string Results::ui() const {
  return translate_errors([&] { return engine::write_json(data_->ui); });
}

std::vector<float> Results::floats(std::string_view output, std::string_view field) const {
  return translate_errors([&] { return read_floats(tensor_in(*data_, output, field)); });
}

std::vector<std::int64_t> Results::shape(std::string_view output, std::string_view field) const {
  return translate_errors([&] {
    const heddle_tensor_info& info = tensor_in(*data_, output, field)->info;
    return std::vector<std::int64_t>(info.shape, info.shape + info.rank);
  });
}

DLManagedTensor* Results::tensor(std::string_view output, std::string_view field) const {
  return translate_errors([&] {
    const engine::Tensor& tensor = tensor_in(*data_, output, field);
    const heddle_tensor_info& info = tensor->info;
    const engine::Tensor copy =
        engine::make_host_tensor(engine::make_info(info.dtype, std::span(info.shape, info.rank)));
    if (const std::uint64_t bytes = engine::dense_bytes(info); bytes > 0)
      read_bytes(tensor, copy->data(), bytes);
    return engine::to_dlpack(copy);
  });
}

std::string Results::text(std::string_view output) const {
  return translate_errors([&] {
    const auto found = data_->fetched.find(std::string(output));
    if (found == data_->fetched.end())
      throw engine::Error(engine::Code::not_found,
                          engine::cat("the value ", engine::quote(output),
                                      " was not asked for with StartOptions::fetch"));
    if (const auto* text = std::get_if<std::string>(&found->second->content)) return *text;
    return engine::write_json(engine::to_json(*found->second));
  });
}

Image Results::image(std::string_view output, std::size_t index) const {
  return translate_errors([&] {
    const engine::Tensor& tensor = tensor_in(*data_, output, "");
    if (tensor->info.rank != 4 || index >= std::size_t(tensor->info.shape[0]))
      throw engine::Error(engine::Code::invalid_argument,
                          engine::cat(output, " is ", engine::describe(tensor->info),
                                      ": it has no picture ", index));
    const std::vector<float> all = read_floats(tensor);
    Image image{
        int(tensor->info.shape[2]), int(tensor->info.shape[1]), int(tensor->info.shape[3]), {}};
    const std::size_t size =
        std::size_t(image.width) * std::size_t(image.height) * std::size_t(image.channels);
    image.pixels.assign(all.begin() + std::ptrdiff_t(index * size),
                        all.begin() + std::ptrdiff_t((index + 1) * size));
    return image;
  });
}

void Image::save_ppm(const std::filesystem::path& path) const {
  translate_errors([&] {
    std::string file = engine::cat("P6\n", width, " ", height, "\n255\n");
    for (std::size_t i = 0; i < pixels.size(); i += std::size_t(channels))
      for (int c = 0; c < 3; ++c)
        file += char(std::clamp(pixels[i + std::size_t(std::min(c, channels - 1))] * 255.0f + 0.5f,
                                0.0f, 255.0f));
    engine::write_file(path, file, engine::Lasting::yes);
  });
}

}  // namespace heddle
