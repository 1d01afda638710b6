#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <utility>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/facade/checkpoints.h"
#include "engine/facade/data.h"
#include "engine/facade/inputs.h"
#include "engine/facade/run_admission.h"
#include "engine/facade/told_outputs.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/timeline.h"
#include "engine/run/called_back.h"
#include "engine/run/comparison.h"
#include "engine/run/wait_for_memory.h"
#include "engine/session/kernels_ahead.h"

namespace heddle {

namespace {

// Passes what the executor tells on to the caller's function.
class Teller final : public engine::Observer {
 public:
  explicit Teller(Run::Data& run)
      : observer_(run.options.observer),
        preview_method_(observer_ == nullptr ? 0 : std::int32_t(run.options.previews)),
        run_(run),
        counts_seconds_(run.status->work.lock()->seconds > 0),
        has_checkpoints_(run.has_checkpoints()) {}
  bool listens() const override {
    return observer_ != nullptr || counts_seconds_ || has_checkpoints_;
  }
  std::int32_t preview_method() const override { return preview_method_; }
  void node_started(const engine::Node& n, std::string_view device) override {
    notify(Event::Kind::node_started, &n, {.device = device});
  }
  void node_progress(const engine::Node& n, double fraction, std::string_view note) override {
    notify(Event::Kind::node_progress, &n, {.fraction = fraction, .text = note});
  }
  void node_done(const engine::Node& n, double seconds) override {
    count_seconds(n);
    notify(Event::Kind::node_done, &n, {.seconds = seconds});
  }
  void node_cached(const engine::Node& n) override {
    count_seconds(n);
    notify(Event::Kind::node_cached, &n, {});
  }
  void file_written(const engine::Node& n, std::string_view path) override {
    if (has_checkpoints_) run_.so_far.told.lock()->files.emplace_back(path);
    notify(Event::Kind::file_written, &n, {.text = path});
  }
  void node_shows(const engine::Node& n, std::string_view ui) override {
    if (has_checkpoints_) run_.so_far.told.lock()->ui[n.id] = ui;
    notify(Event::Kind::node_shows, &n, {.text = ui});
  }
  void node_blocked(const engine::Node& n, std::string_view message) override {
    notify(Event::Kind::node_blocked, &n, {.text = message});
  }
  void warning(const engine::Node* n, std::string_view message) override {
    notify(Event::Kind::warning, n, {.text = message});
  }
  void checkpoint_written(std::string_view path) override {
    notify(Event::Kind::checkpoint_written, nullptr, {.text = path});
  }
  void node_waiting(const engine::Node& n) override { notify(Event::Kind::node_waiting, &n, {}); }
  void run_waiting(std::string_view memory, std::uint64_t bytes, std::string_view text) override {
    notify(Event::Kind::run_waiting, nullptr, {.device = memory, .text = text, .bytes = bytes});
  }
  void picture_sent(const engine::Node& n, std::string_view png) override {
    notify(Event::Kind::picture_sent, &n, {.text = png});
  }
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
    std::uint64_t bytes = 0;
  };
  // What is left is what other runs are placed by.
  void count_seconds(const engine::Node& n) {
    if (!counts_seconds_) return;
    const std::vector<engine::Node>& nodes = run_.ready.graph.nodes;
    if (std::less<>()(&n, nodes.data()) || !std::less<>()(&n, nodes.data() + nodes.size())) return;
    run_.status->done_seconds +=
        engine::planned_time(run_.ready.plan, std::uint32_t(&n - nodes.data())).seconds;
  }
  void notify(Event::Kind kind, const engine::Node* n, const Details& d) {
    if (observer_ == nullptr) return;
    Event event{kind, {}, {}, {}, d.device, d.fraction, d.seconds, d.text, run_.id, d.preview};
    event.bytes = d.bytes;
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
  const std::int32_t preview_method_;
  Run::Data& run_;
  const bool counts_seconds_, has_checkpoints_;
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

// With a timeline where one is wanted. A run that fails leaves one, too: that is when it is needed
// most.
engine::RunResult execute_traced(engine::RunRequest& request, engine::Environment& environment,
                                 Teller& teller, Run::Data& run) {
  const std::filesystem::path& path = run.options.trace;
  if (path.empty()) return engine::execute(request, environment, teller, run.status->control);
  engine::Timeline timeline(
      environment.devices, &environment.device_service,
      run.options.trace_steps ? engine::Timeline::Detail::steps : engine::Timeline::Detail::blocks);
  request.timeline = &timeline;
  try {
    engine::RunResult result = engine::execute(request, environment, teller, run.status->control);
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

// What an execution has done, behind what the run had done before.
void add_to(Results::Data& results, engine::RunResult result, const Ready& ready) {
  const std::vector<engine::Node>& nodes = ready.graph.nodes;
  const auto added = [&](engine::NodeIndex n) -> const engine::AddedInfo& {
    return result.added[n - nodes.size()];
  };
  for (const engine::NodeTiming& t : result.timings) {
    const bool is_added = t.node >= nodes.size();
    const engine::PlannedTime planned = engine::planned_time(ready.plan, t.node);
    results.stages.push_back(
        {is_added ? added(t.node).id : nodes[t.node].id,
         is_added ? added(t.node).class_type : std::string(nodes[t.node].type->name()), t.seconds,
         t.cached, planned.seconds, planned.load_seconds});
  }
  for (const auto& [n, ui] : result.ui)
    results.ui.set(n < nodes.size() ? nodes[n].id : added(n).id, engine::parse_json(ui, "ui"));
  std::vector<std::string> files = std::move(results.result.files);
  std::ranges::move(result.files, std::back_inserter(files));
  results.result = std::move(result);
  results.result.files = std::move(files);
}

// nullptr: it has given back what it held, and goes on later.
std::shared_ptr<Results::Data> carry_out(Run::Data& run, Engine::Data& engine) {
  Teller teller(run);
  if (!run.restarts.why.empty() && teller.listens()) teller.warning(nullptr, run.restarts.why);
  engine::wait_for_memory(*run.ticket, run.status->control, teller, memory_wait_of(run, engine));
  engine::DeviceService& service = engine.environment->device_service;
  const auto hold = [&] {
    run.status->control.release_in_pauses(false);  // what was told of the devices of another plan
    return service.try_hold(devices_of(run.ready.plan),
                            [&control = run.status->control] { control.release_in_pauses(true); });
  };
  auto held = hold();
  while (!held) {  // one of them is not to be used any more
    plan_again(run, engine);
    engine::wait_for_memory(*run.ticket, run.status->control, teller, memory_wait_of(run, engine));
    auto again = hold();
    if (again) held.emplace(std::move(*again));
  }
  run.status->control.begin();
  const engine::KernelsAhead ahead(run.ready.graph, run.ready.plan, run.ready.inferred,
                                   run.ready.topology, *engine.environment);
  const std::vector<engine::Source>& fetch = run.ready.wanted;
  engine::RunRequest request{
      &run.ready.graph,     &run.ready.plan, "", extra_pnginfo(run.flow->workflow), fetch,
      run.ready.disk_cached};
  request.saved = &run.so_far.saved;
  request.finished = &run.restarts.finished;
  request.anew = run.options.anew;
  std::optional<CheckpointWriter> checkpoints;
  if (!run.options.checkpoint.empty()) request.checkpoints = &checkpoints.emplace(run, engine);
  if (asks_for(run.ready.graph, "PROMPT"))
    request.prompt_json = engine::write_json(engine::nodes_to_json(run.flow->workflow));
  std::optional<ToldOutputs> told;
  if (checks_infer()) request.steps = &told.emplace(run.ready.graph, run.ready.inferred);
  const std::vector<engine::Ledger::Cap> caps =
      Budgets(engine.options, run.flow->workflow.devices).caps(*engine.environment);
  if (run.so_far.results == nullptr) run.so_far.results = std::make_shared<Results::Data>();
  const bool goes_on = !run.so_far.saved.is_empty();
  const auto began = std::chrono::steady_clock::now();
  engine::RunResult result = execute_traced(request, *engine.environment, teller, run);
  if (told) told->check();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  for (const auto& [node, outputs] : result.to_cache_on_disk)
    engine::write_disk_cached(run.ready.disk_cached.at(node), outputs, *engine.environment);
  result.to_cache_on_disk.clear();
  const bool is_suspended = result.is_suspended;
  if (is_suspended && checkpoints) checkpoints->write(run.so_far.saved, teller);
  if (!is_suspended && !goes_on)
    run.so_far.results->remarks =
        engine::prediction_against_fact(run.ready.graph, run.ready.plan, result.timings,
                                        seconds.count(), engine.environment->costs);
  add_to(*run.so_far.results, std::move(result), run.ready);
  if (is_suspended) return nullptr;
  auto results = std::exchange(run.so_far.results, nullptr);
  for (std::size_t i = 0; i < fetch.size(); ++i)
    results->fetched->set(
        run.options.fetch[i],
        engine::brought_to_host(*engine.environment, results->result.fetched.at(fetch[i])));
  engine.remember(results->fetched);
  results->result.fetched.clear();
  return results;
}

// There is nothing left to go on with.
void forget_checkpoint(const Run::Data& run) {
  std::error_code ignored;
  if (!run.options.checkpoint.empty() && !run.options.keeps_checkpoint)
    std::filesystem::remove(run.options.checkpoint, ignored);
}

}  // namespace

Run Engine::start(const Workflow& flow, StartOptions options) {
  return translate_errors([&] {
    // First of all, so that nothing is left with the caller when anything throws.
    const TakenInputs taken = take_inputs(std::exchange(options.inputs, {}));
    auto data = std::make_shared<Run::Data>();
    data->flow = with_inputs(flow.data_, taken);
    data->given = values_of(*data->flow, taken);
    data->options = std::move(options);
    return begin(std::move(data));
  });
}

Run Engine::resume(const RunCheckpoint& checkpoint, StartOptions options) {
  return translate_errors([&] {
    const TakenInputs taken = take_inputs(std::exchange(options.inputs, {}));
    if (checkpoint.data_ == nullptr || !taken.empty())
      throw engine::Error(engine::Code::invalid_argument,
                          taken.empty()
                              ? "this checkpoint is empty: make it with RunCheckpoint::load"
                              : "a run that goes on has the inputs that it was begun with");
    const engine::CheckpointContent& content = checkpoint.data_->content;
    engine::check_builds(content, builds_of(*data_, data_->file_hashes()));
    auto data = std::make_shared<Run::Data>();
    data->flow = adopt(checkpoint.workflow()).data_;
    data->given = content.given;
    data->options = std::move(options);
    data->options.partly = content.partly;
    data->so_far.begun = {checkpoint.data_, &content};
    data->so_far.saved.set(content.saved);
    *data->so_far.told.lock() = {content.files, content.ui};
    data->so_far.results = std::make_shared<Results::Data>();
    data->so_far.results->result.files = content.files;
    for (const auto& [node, ui] : content.ui)
      data->so_far.results->ui.set(node, engine::parse_json(ui, "ui"));
    return begin(std::move(data));
  });
}

Run Engine::begin(std::shared_ptr<Run::Data> data) {
  data->id = ++last_run;
  // Several runs that begin at once would all go to the device that none of them is on yet. So a
  // plan counts only if no other run was placed since it was begun. The first one is made without
  // the lock: it may have to read headers of model files.
  const std::uint64_t begun = data_->begun;
  const auto plan = [&] {
    data->ready = plan_run(*data, *data_, data->options.memory_wait_seconds > 0);
  };
  plan();
  std::unique_lock placing(data_->placing);
  if (data_->begun != begun && data_->environment->devices.size() > 1) plan();
  *data->status->work.lock() = data_->planned_work(data->ready.plan);
  auto promise = std::make_shared<std::promise<Results>>();
  data->outcome = promise->get_future().share();
  {
    const std::lock_guard lock(data_->mutex);
    if (data_->is_tuning)
      throw engine::Error(engine::Code::unsupported,
                          "the devices are being measured: a run would spoil the figures. Start "
                          "it when that is done");
    std::erase_if(data_->runs, [](const auto& weak) { return weak.expired(); });
    data_->runs.push_back(data->status);
    data_->write_after(data->options.writes_after, data->sequencer);
    data_->sequencers.emplace(data->id, data->sequencer);
  }
  ++data_->begun;
  placing.unlock();
  enter(*data, *data_);
  // The thread must not own the run's data, or the last copy of a Run could be dropped by its own
  // thread.
  data->thread = engine::start_thread(
      "the thread of a run", [raw = data.get(), promise, engine = data_.get()] {
        Results outcome;
        std::exception_ptr failure;
        for (bool goes_on = true; goes_on;) {
          goes_on = false;
          failure = nullptr;
          try {
            const std::vector<std::uint64_t> failures = device_failures(*engine);
            try {
              outcome.data_ = carry_out(*raw, *engine);
              if (outcome.data_ == nullptr) {
                wait_to_go_on(*raw, *engine);
                goes_on = true;
              }
            } catch (const engine::Error& error) {
              failure = std::current_exception();
              goes_on = begins_again(*raw, *engine, error, failures);
            }
          } catch (...) {
            if (failure == nullptr) failure = std::current_exception();
          }
        }
        raw->sequencer->end();
        raw->ticket.reset();
        raw->given = {};
        raw->so_far.saved.clear();
        raw->restarts.finished = {};
        raw->ready = {};  // what the run was given goes back before anybody hears that it is over
        engine->finish_drains();
        if (failure == nullptr) forget_checkpoint(*raw);
        raw->status->end();
        if (failure == nullptr)
          promise->set_value(std::move(outcome));
        else
          promise->set_exception(failure);
      });
  Run run;
  run.data_ = std::move(data);
  return run;
}

std::uint64_t Run::id() const { return data_->id; }
Results Run::wait() {
  return translate_errors([&] {
    engine::CalledBack::about_to_wait();
    return data_->outcome.get();
  });
}
bool Run::wait_for(std::chrono::milliseconds time) {
  engine::CalledBack::about_to_wait();
  return data_->outcome.wait_for(time) == std::future_status::ready;
}
void Run::cancel() { data_->status->control.cancel(); }
void Run::pause() { data_->status->control.pause(); }
void Run::pause_and_release() { data_->status->control.pause_and_release(); }
void Run::resume() { data_->status->control.resume(); }
std::vector<std::string> Run::devices() const { return data_->status->work.lock()->devices; }

}  // namespace heddle
