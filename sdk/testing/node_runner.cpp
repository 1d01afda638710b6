#include "heddle/testing/node_runner.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "heddle/abi/base.h"
#include "heddle/testing/fake_control.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNode = "node";  // the id of the only one

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    char escaped[8] = {c};
    if (c == '"' || c == '\\')
      std::snprintf(escaped, sizeof escaped, "\\%c", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
    json += escaped;
  }
  return json + "\"";
}

std::string literal(double number) {
  if (!std::isfinite(number))
    throw std::invalid_argument("a workflow has no literal of what is no finite number");
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  std::string json = text;
  return json.find_first_of(".e") == std::string::npos ? json + ".0" : json;
}

// The literal of an input; empty for a tensor, which no workflow can write.
std::string literal(const NodeValue::Content& content) {
  if (const auto* flag = std::get_if<bool>(&content)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&content)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&content)) return literal(*number);
  if (const auto* text = std::get_if<std::string>(&content)) return json_text(*text);
  return "";
}

// A copy of an array that belongs to who takes it.
struct Lent {
  explicit Lent(Array given) : array(std::move(given)) {
    managed.dl_tensor.data = array.values.data();
    managed.dl_tensor.device = {HEDDLE_DL_CPU, 0};
    managed.dl_tensor.ndim = static_cast<std::int32_t>(array.shape.size());
    managed.dl_tensor.dtype = {HEDDLE_DL_FLOAT, 32, 1};
    managed.dl_tensor.shape = array.shape.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { delete static_cast<Lent*>(self->manager_ctx); };
  }
  Array array;
  DLManagedTensor managed{};
};

void check_shape(const std::string& input, const Array& array) {
  std::int64_t count = 1;
  for (const std::int64_t size : array.shape) count *= size;
  if (count != static_cast<std::int64_t>(array.values.size()))
    throw std::invalid_argument("input '" + input + "': a shape of " + std::to_string(count) +
                                " elements is given " + std::to_string(array.values.size()));
}

// Whoever calls this gives all of them to the engine, which frees them.
Inputs tensors_of(const NodeInputs& inputs) {
  for (const auto& [name, value] : inputs) {
    if (const auto* array = std::get_if<Array>(&value.content())) check_shape(name, *array);
    if (const auto* record = std::get_if<NodeValue::Record>(&value.content()))
      for (const auto& [field, array] : *record) check_shape(name + "." + field, array);
  }
  Inputs tensors;
  for (const auto& [name, value] : inputs) {
    const std::string key = std::string(kNode) + "." + name;
    if (const auto* array = std::get_if<Array>(&value.content()))
      tensors[key] = &(new Lent(*array))->managed;
    if (const auto* record = std::get_if<NodeValue::Record>(&value.content())) {
      std::map<std::string, DLManagedTensor*> fields;
      for (const auto& [field, array] : *record) fields[field] = &(new Lent(array))->managed;
      tensors[key] = std::move(fields);
    }
  }
  return tensors;
}

// `shows`: the node has an output, and is none that saves or shows anything. Something has to, or
// there is nothing to run: PreviewAny takes whatever comes.
std::string workflow_of(std::string_view class_type, const NodeInputs& inputs, bool shows) {
  std::string members;
  for (const auto& [name, value] : inputs) {
    const std::string json = literal(value.content());
    if (!json.empty()) members += (members.empty() ? "" : ", ") + json_text(name) + ": " + json;
  }
  const std::string node = json_text(kNode);
  return "{" + node + ": {\"class_type\": " + json_text(class_type) + ", \"inputs\": {" + members +
         "}}" +
         (shows ? ", \"show\": {\"class_type\": \"PreviewAny\", \"inputs\": {\"source\": [" + node +
                      ", 0]}}"
                : "") +
         "}";
}

// The strings of the array `key` in the definition of a class, as Engine::object_info() writes it.
std::vector<std::string> strings_of(const std::string& json, const std::string& key) {
  std::vector<std::string> strings;
  std::size_t at = json.find(json_text(key));
  at = at == std::string::npos ? at : json.find('[', at);
  for (bool inside = false; at != std::string::npos && ++at < json.size();) {
    if (!inside && json[at] == ']') break;
    if (json[at] == '"') {
      inside = !inside;
      if (inside) strings.emplace_back();
    } else if (inside) {
      if (json[at] == '\\') ++at;
      strings.back() += json[at];
    }
  }
  return strings;
}

const heddle_fake_control& fake_control(const std::vector<fs::path>& plugin_dirs) {
  for (const fs::path& folder : plugin_dirs) {
    void* const library = dlopen((folder / "fake.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const auto* entry = static_cast<const heddle_plugin*>(dlsym(library, "heddle_entry"));
    const heddle_list* list = entry == nullptr ? nullptr : entry->provide(HEDDLE_FAKE_CONTROL);
    dlclose(library);  // the engine keeps it
    if (list != nullptr && list->count == 1)
      return *static_cast<const heddle_fake_control*>(list->items[0]);
  }
  throw std::invalid_argument("no folder of the runner's plugins has fake.so, the fake devices");
}

}  // namespace

// ---- what a run made ----

std::string NodeOutputs::of(std::string_view output) const {
  return node_.empty() ? std::string(output) : node_ + "." + std::string(output);
}
std::string NodeOutputs::text(std::string_view output) const { return results_.text(of(output)); }
std::int64_t NodeOutputs::integer(std::string_view output) const {
  return std::stoll(text(output));
}
double NodeOutputs::number(std::string_view output) const { return std::stod(text(output)); }
Array NodeOutputs::array(std::string_view output, std::string_view field) const {
  return {results_.shape(of(output), field), results_.floats(of(output), field)};
}
Image NodeOutputs::image(std::string_view output, std::size_t index) const {
  return results_.image(of(output), index);
}
std::vector<fs::path> NodeOutputs::files() const {
  std::vector<fs::path> paths;
  for (const std::string& file : results_.files()) paths.emplace_back(file);
  return paths;
}
std::string NodeOutputs::shown() const { return results_.ui(); }

// ---- the runner ----

struct NodeRunner::Data {
  RunnerOptions options;
  fs::path folder;
  std::unique_ptr<Engine> engine;

  explicit Data(RunnerOptions given) : options(std::move(given)) {
    std::string name = (fs::temp_directory_path() / "heddle_node_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), name);
    folder = name;
    for (const char* part : {"input", "output", "temp"}) fs::create_directory(folder / part);
  }
  ~Data() {
    engine.reset();
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  Workflow flow_of(std::string_view class_type, const NodeInputs& inputs) const {
    const std::string definition = engine->object_info(class_type);
    const bool shows = !strings_of(definition, "output_name").empty() &&
                       definition.find("\"output_node\":true") == std::string::npos &&
                       definition.find("\"output_node\": true") == std::string::npos;
    return engine->parse(workflow_of(class_type, inputs, shows), std::string(class_type));
  }

  // Outputs by their names, the elements of tensors as bytes, so that results with and without a
  // fault can be held together.
  std::map<std::string, std::string> values_of(const NodeOutputs& made) const {
    std::map<std::string, std::string> values;
    for (const std::string& output : made.outputs_) {
      std::string& value = values[output];
      try {
        const Array array = made.array(output);
        value.assign(reinterpret_cast<const char*>(array.values.data()),
                     array.values.size() * sizeof(float));
      } catch (const EngineError&) {
        value = made.text(output);
      }
    }
    return values;
  }
};

NodeRunner::NodeRunner(RunnerOptions options) : data_(std::make_unique<Data>(std::move(options))) {
  const RunnerOptions& o = data_->options;
  EngineOptions engine;
  engine.plugin_dirs = o.plugin_dirs;
  engine.default_plugin_dir = o.default_plugin_dir;
  engine.model_dirs = o.model_dirs;
  engine.input_dir = data_->folder / "input";
  engine.output_dir = data_->folder / "output";
  engine.devices = {o.device};
  engine.device_options = o.device_options;
  engine.compute = o.compute;
  engine.degrade_after = 0;  // a test that makes a device fail wants it again
  data_->engine = std::make_unique<Engine>(std::move(engine));
}

NodeRunner::~NodeRunner() = default;

namespace {

// What a run tells, kept for the test.
Observer keep(std::vector<std::string>& warnings, std::vector<double>& progress) {
  return [&](const Event& event) {
    if (event.kind == Event::Kind::warning) warnings.emplace_back(event.text);
    if (event.kind == Event::Kind::node_progress) progress.push_back(event.fraction);
  };
}

}  // namespace

NodeOutputs NodeRunner::run(std::string_view class_type, const NodeInputs& inputs) {
  NodeOutputs made;
  made.node_ = kNode;
  const Workflow flow = data_->flow_of(class_type, inputs);
  made.outputs_ = strings_of(data_->engine->object_info(class_type), "output_name");
  StartOptions start;
  start.observer = keep(made.warnings_, made.progress_);
  for (const std::string& output : made.outputs_) start.fetch.push_back(made.of(output));
  start.inputs = tensors_of(inputs);
  start.anew = true;
  made.results_ = data_->engine->start(flow, std::move(start)).wait();
  return made;
}

std::string NodeRunner::refusal(std::string_view class_type, const NodeInputs& inputs) {
  std::string text;
  try {
    const Workflow flow = data_->flow_of(class_type, inputs);
    for (const std::string& error : data_->engine->check(flow, tensors_of(inputs)).errors)
      text += error + "\n";
  } catch (const EngineError& error) {
    text = std::string(error.what()) + "\n";
  }
  return text;
}

NodeOutputs NodeRunner::run_workflow(std::string_view json, const std::vector<std::string>& fetch) {
  NodeOutputs made;
  made.outputs_ = fetch;
  const Workflow flow = data_->engine->parse(json);
  StartOptions start;
  start.observer = keep(made.warnings_, made.progress_);
  start.fetch = fetch;
  start.anew = true;
  made.results_ = data_->engine->start(flow, std::move(start)).wait();
  return made;
}

FaultReport NodeRunner::inject(Fault fault, std::string_view class_type, const NodeInputs& inputs,
                               unsigned most) {
  const std::string& device = data_->options.device;
  if (device.rfind("fake:", 0) != 0)
    throw std::invalid_argument("faults are injected into fake devices (fake:0), not " + device);
  const auto index = static_cast<std::uint32_t>(std::stoul(device.substr(5)));
  const heddle_fake_control& control = fake_control(data_->options.plugin_dirs);
  const auto fail = [&](std::uint64_t nth) {
    // The engine evicts and asks once more: memory that is out stays so until the run is over.
    constexpr std::uint64_t kAllOthers = 1 << 30;
    if (fault == Fault::allocation) control.fail_allocs(index, nth, nth == 0 ? 0 : kAllOthers);
    if (fault == Fault::copy) control.fail_copy(index, nth);
    if (fault == Fault::launch) control.fail_launch(index, nth);
  };
  FaultReport report;
  std::set<std::string> messages;
  const auto expected = data_->values_of(run(class_type, inputs));
  for (unsigned nth = 1; nth <= most; ++nth) {
    const std::string which = "with fault " + std::to_string(nth);
    const std::uint64_t before = control.faults(index);
    // What earlier runs left in the pool would be allocated no more.
    data_->engine->unload();
    fail(nth);
    try {
      const auto values = data_->values_of(run(class_type, inputs));
      const bool struck = control.faults(index) != before;
      fail(0);
      if (!struck) break;
      ++report.survived;
      if (values != expected) report.wrong.push_back(which + ": it succeeds with other results");
    } catch (const EngineError& error) {
      fail(0);
      if (control.faults(index) == before) throw;
      messages.insert(error.what());
    }
    ++report.struck;
    try {
      if (data_->values_of(run(class_type, inputs)) != expected)
        report.wrong.push_back(which + ": the next run has other results");
    } catch (const EngineError& error) {
      report.wrong.push_back(which + ": the next run fails: " + error.what());
    }
  }
  report.messages.assign(messages.begin(), messages.end());
  return report;
}

const fs::path& NodeRunner::folder() const { return data_->folder; }
Engine& NodeRunner::engine() { return *data_->engine; }

}  // namespace heddle::testing
