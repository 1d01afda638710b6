// heddle/engine.h: the C face, over the C++ one.
#include <cstdlib>
#include <cstring>

#include "engine/base/text.h"
#include "engine/facade/c_options.h"
#include "engine/facade/data.h"

struct heddle_engine {
  heddle::Engine engine;
};
struct heddle_workflow {
  heddle::Workflow flow;
};
struct heddle_run {
  heddle::Run run;
};
struct heddle_run_checkpoint {
  heddle::RunCheckpoint checkpoint;
};
struct heddle_results {
  heddle::Results results;
  std::vector<std::string> files;
};

namespace {

using heddle::fidelity_of;
using heddle::given;
using heddle::InputsFromC;
using heddle::known_part;
using heddle::list_of;
using heddle::text_or;
using heddle::view_of;
using heddle::engine::cat;

// For heddle_text_free(); nullptr when memory is out.
char* text_of(std::string_view text) noexcept {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

std::int32_t refuse(char** error, std::int32_t code, std::string_view text) noexcept {
  if (error != nullptr) *error = text_of(text);
  return code;
}

// Runs body; nothing that it throws gets out.
template <class F>
std::int32_t to_code(char** error, F&& body) noexcept {
  try {
    heddle::translate_errors(body);
    return 0;
  } catch (const heddle::EngineError& failure) {
    return refuse(error, failure.code(), failure.what());
  } catch (const std::exception& failure) {
    return refuse(error, HEDDLE_INTERNAL, failure.what());
  } catch (...) {
    return refuse(error, HEDDLE_INTERNAL, "an unknown exception");
  }
}

heddle::Observer observer_of(const heddle_start_options& o) {
  if (o.observer == nullptr) return {};
  return [notify = o.observer, user = o.observer_user](const heddle::Event& e) {
    const auto text = [](std::string_view t) { return heddle_str{t.data(), t.size()}; };
    const heddle_run_event event{sizeof event,
                                 heddle_run_event_kind(e.kind),
                                 e.run,
                                 text(e.node),
                                 text(e.class_type),
                                 text(e.title),
                                 text(e.device),
                                 e.fraction,
                                 e.seconds,
                                 text(e.text),
                                 e.preview == nullptr ? nullptr : e.preview->pixels,
                                 e.preview == nullptr ? 0 : e.preview->width,
                                 e.preview == nullptr ? 0 : e.preview->height,
                                 e.preview == nullptr ? 0 : e.preview->step,
                                 e.preview == nullptr ? 0 : e.preview->step_count,
                                 e.bytes};
    notify(user, &event);
  };
}

heddle::StartOptions start_options_of(const heddle_start_options& o) {
  heddle::StartOptions start{observer_of(o), list_of(o.fetch, o.fetch_count, "fetch"), {}};
  start.among_many = o.among_many != 0;
  start.writes_after = o.writes_after;
  start.previews = heddle::preview_method_of(o.previews);
  start.trace = text_or(o.trace, "");
  start.priority = o.priority;
  start.memory_wait_seconds = o.memory_wait_seconds;
  start.fidelity = fidelity_of(o.fidelity);
  start.checkpoint = text_or(o.checkpoint, "");
  if (o.checkpoint_every != 0) start.checkpoint_every = o.checkpoint_every;
  start.checkpoint_note = text_or(o.checkpoint_note, "");
  return start;
}

template <class Handle, class... Parts>
void hand_out(Handle** out, Parts&&... parts) {
  given(out, "out") = new Handle{std::forward<Parts>(parts)...};
}

void hand_text(char** out, const std::string& text) {
  given(out, "out") = text_of(text);
  if (*out == nullptr) throw std::bad_alloc();
}

}  // namespace

using heddle::engine::Error;

void heddle_text_free(char* text) { std::free(text); }

int32_t heddle_engine_make(const heddle_engine_options* options, heddle_engine** out,
                           char** error) {
  return to_code(error, [&] {
    given(out, "out") = new heddle_engine{heddle::Engine(heddle::options_of(options))};
  });
}
void heddle_engine_free(heddle_engine* engine) { delete engine; }

int32_t heddle_engine_load(heddle_engine* engine, const char* path, heddle_workflow** out,
                           char** error) {
  return to_code(error, [&] {
    hand_out(out,
             given(engine, "engine").engine.load(std::filesystem::path(view_of(path, "path"))));
  });
}

int32_t heddle_engine_parse(heddle_engine* engine, const char* json, const char* name,
                            heddle_workflow** out, char** error) {
  return to_code(error, [&] {
    hand_out(
        out,
        given(engine, "engine").engine.parse(view_of(json, "json"), text_or(name, "workflow")));
  });
}

int32_t heddle_engine_convert(heddle_engine* engine, const char* json, size_t json_size,
                              const char* name, const char* const* object_info,
                              size_t object_info_count, char** out, char** error) {
  return to_code(error, [&] {
    const heddle::Engine& e = given(engine, "engine").engine;
    const std::string_view text(&given(json, "json"), json_size);
    std::vector<std::string> definitions;
    for (size_t i = 0; i < object_info_count; ++i)
      definitions.emplace_back(view_of((&given(object_info, "object_info"))[i], "object_info"));
    given(out, "out");
    hand_text(out,
              e.convert(heddle::Workflow::parse(text, text_or(name, "workflow")), definitions));
  });
}

int32_t heddle_engine_plan(heddle_engine* engine, const heddle_workflow* flow,
                           const heddle_start_options* options, int32_t as_json, char** out,
                           char** error) {
  return to_code(error, [&] {
    InputsFromC inputs(known_part(options, "heddle_start_options"));
    const heddle::Engine& e = given(engine, "engine").engine;
    const heddle::Workflow& f = given(flow, "workflow").flow;
    given(out, "out");
    hand_text(out, as_json != 0 ? e.plan_json(f, inputs.release()) : e.plan(f, inputs.release()));
  });
}

int32_t heddle_engine_check(heddle_engine* engine, const heddle_workflow* flow,
                            const heddle_start_options* options, char** errors, char** warnings,
                            char** error) {
  return to_code(error, [&] {
    InputsFromC inputs(known_part(options, "heddle_start_options"));
    const heddle::Engine& e = given(engine, "engine").engine;
    const heddle::Workflow& f = given(flow, "workflow").flow;
    const heddle::Engine::Problems problems = e.check(f, inputs.release());
    if (errors != nullptr) hand_text(errors, heddle::engine::join(problems.errors, "\n"));
    if (warnings != nullptr) hand_text(warnings, heddle::engine::join(problems.warnings, "\n"));
  });
}

int32_t heddle_engine_start(heddle_engine* engine, const heddle_workflow* flow,
                            const heddle_start_options* options, heddle_run** out, char** error) {
  return to_code(error, [&] {
    const heddle_start_options o = known_part(options, "heddle_start_options");
    InputsFromC inputs(o);
    heddle::StartOptions start = start_options_of(o);
    heddle::Engine& e = given(engine, "engine").engine;
    const heddle::Workflow& f = given(flow, "workflow").flow;
    given(out, "out");
    start.inputs = inputs.release();
    hand_out(out, e.start(f, std::move(start)));
  });
}

int32_t heddle_engine_resume(heddle_engine* engine, const heddle_run_checkpoint* checkpoint,
                             const heddle_start_options* options, heddle_run** out, char** error) {
  return to_code(error, [&] {
    const heddle_start_options o = known_part(options, "heddle_start_options");
    InputsFromC inputs(o);
    heddle::StartOptions start = start_options_of(o);
    heddle::Engine& e = given(engine, "engine").engine;
    const heddle::RunCheckpoint& from = given(checkpoint, "checkpoint").checkpoint;
    given(out, "out");
    start.inputs = inputs.release();
    hand_out(out, e.resume(from, std::move(start)));
  });
}

int32_t heddle_run_checkpoint_load(const char* path, heddle_run_checkpoint** out, char** error) {
  return to_code(error, [&] {
    hand_out(out, heddle::RunCheckpoint::load(std::filesystem::path(view_of(path, "path"))));
  });
}
int32_t heddle_run_checkpoint_note(const heddle_run_checkpoint* checkpoint, char** out,
                                   char** error) {
  return to_code(error, [&] { hand_text(out, given(checkpoint, "checkpoint").checkpoint.note()); });
}
void heddle_run_checkpoint_free(heddle_run_checkpoint* checkpoint) { delete checkpoint; }

int32_t heddle_engine_unload(heddle_engine* engine, const char* device, const char* model,
                             uint64_t* bytes, char** error) {
  return to_code(error, [&] {
    const std::uint64_t freed =
        given(engine, "engine").engine.unload(text_or(device, ""), text_or(model, ""));
    if (bytes != nullptr) *bytes = freed;
  });
}

int32_t heddle_engine_drop_cached(heddle_engine* engine, uint64_t* bytes, char** error) {
  return to_code(error, [&] {
    const std::uint64_t dropped = given(engine, "engine").engine.drop_cached();
    if (bytes != nullptr) *bytes = dropped;
  });
}

int32_t heddle_engine_enable(heddle_engine* engine, const char* device, char** error) {
  return to_code(error, [&] { given(engine, "engine").engine.enable(view_of(device, "device")); });
}
int32_t heddle_engine_disable(heddle_engine* engine, const char* device, char** error) {
  return to_code(error, [&] { given(engine, "engine").engine.disable(view_of(device, "device")); });
}
int32_t heddle_engine_drain(heddle_engine* engine, const char* device, int64_t milliseconds,
                            char** error) {
  bool is_drained = false;
  const int32_t code = to_code(error, [&] {
    using Time = std::optional<std::chrono::milliseconds>;
    is_drained =
        given(engine, "engine")
            .engine.drain(view_of(device, "device"),
                          milliseconds < 0 ? Time() : std::chrono::milliseconds(milliseconds));
  });
  return code != 0 || is_drained ? code : HEDDLE_STILL_RUNNING;
}
int32_t heddle_engine_devices(heddle_engine* engine, char** out, char** error) {
  return to_code(error, [&] { hand_text(out, given(engine, "engine").engine.devices_json()); });
}

int32_t heddle_workflow_set(heddle_workflow* flow, const char* input, const char* value,
                            char** error) {
  return to_code(error, [&] {
    given(flow, "workflow").flow.set(view_of(input, "input"), view_of(value, "value"));
  });
}
int32_t heddle_workflow_place(heddle_workflow* flow, const char* node, const char* device,
                              char** error) {
  return to_code(error, [&] {
    given(flow, "workflow").flow.place(view_of(node, "node"), view_of(device, "device"));
  });
}
int32_t heddle_workflow_parallel(heddle_workflow* flow, const char* node, const char* mode,
                                 char** error) {
  return to_code(error, [&] {
    given(flow, "workflow").flow.parallel(view_of(node, "node"), view_of(mode, "mode"));
  });
}
int32_t heddle_workflow_only(heddle_workflow* flow, const char* const* nodes, size_t count,
                             char** error) {
  return to_code(error, [&] { given(flow, "workflow").flow.only(list_of(nodes, count, "nodes")); });
}
int32_t heddle_workflow_text(const heddle_workflow* flow, char** out, char** error) {
  return to_code(error, [&] { hand_text(out, given(flow, "workflow").flow.text()); });
}
void heddle_workflow_free(heddle_workflow* flow) { delete flow; }

heddle_run_number heddle_run_id(const heddle_run* run) {
  return run == nullptr ? HEDDLE_NO_RUN : run->run.id();
}
void heddle_run_cancel(heddle_run* run) {
  if (run != nullptr) run->run.cancel();
}
void heddle_run_pause(heddle_run* run) {
  if (run != nullptr) run->run.pause();
}
void heddle_run_pause_and_release(heddle_run* run) {
  if (run != nullptr) run->run.pause_and_release();
}
void heddle_run_resume(heddle_run* run) {
  if (run != nullptr) run->run.resume();
}

int32_t heddle_run_wait(heddle_run* run, int64_t milliseconds, heddle_results** out, char** error) {
  bool is_over = true;
  const std::int32_t code = to_code(error, [&] {
    heddle::Run& r = given(run, "run").run;
    constexpr std::int64_t kForever =
        1'000'000'000'000;  // a clock counts nanoseconds in as many bits
    is_over = milliseconds < 0 || milliseconds > kForever ||
              r.wait_for(std::chrono::milliseconds(milliseconds));
    if (!is_over) return;
    heddle::Results results = r.wait();
    if (out == nullptr) return;
    std::vector<std::string> files = results.files();
    hand_out(out, std::move(results), std::move(files));
  });
  return is_over ? code : HEDDLE_STILL_RUNNING;
}
void heddle_run_free(heddle_run* run) { delete run; }

size_t heddle_results_file_count(const heddle_results* results) {
  return results == nullptr ? 0 : results->files.size();
}
const char* heddle_results_file(const heddle_results* results, size_t index) {
  return index < heddle_results_file_count(results) ? results->files[index].c_str() : nullptr;
}

int32_t heddle_results_ui(const heddle_results* results, char** out, char** error) {
  return to_code(error, [&] { hand_text(out, given(results, "results").results.ui()); });
}

int32_t heddle_results_text(const heddle_results* results, const char* output, char** out,
                            char** error) {
  return to_code(error, [&] {
    hand_text(out, given(results, "results").results.text(view_of(output, "output")));
  });
}

int32_t heddle_results_shape(const heddle_results* results, const char* output, const char* field,
                             int64_t shape[HEDDLE_MAX_RANK], uint32_t* rank, char** error) {
  return to_code(error, [&] {
    const std::vector<std::int64_t> all =
        given(results, "results").results.shape(view_of(output, "output"), text_or(field, ""));
    std::copy(all.begin(), all.end(), &given(shape, "shape"));
    given(rank, "rank") = std::uint32_t(all.size());
  });
}

int32_t heddle_results_floats(const heddle_results* results, const char* output, const char* field,
                              float* out, size_t count, char** error) {
  return to_code(error, [&] {
    const std::vector<float> all =
        given(results, "results").results.floats(view_of(output, "output"), text_or(field, ""));
    if (all.size() != count)
      throw Error(heddle::engine::Code::invalid_argument,
                  cat(output, " has ", all.size(), " elements; there is room for ", count));
    if (count > 0) std::copy(all.begin(), all.end(), &given(out, "out"));
  });
}

int32_t heddle_results_tensor(const heddle_results* results, const char* output, const char* field,
                              DLManagedTensor** out, char** error) {
  return to_code(error, [&] {
    given(out, "out");
    *out = given(results, "results").results.tensor(view_of(output, "output"), text_or(field, ""));
  });
}
void heddle_results_free(heddle_results* results) { delete results; }
