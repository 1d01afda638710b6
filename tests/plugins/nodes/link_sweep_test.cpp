// Whatever comes through a link, to any number and any choice of any node that ships: out of range
// it is refused with the input's name, before the run where it is known before; in range the node
// does its work or says why not. Nodes are those of the catalogue, so new ones are held to it, too.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/tensor/shape.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/plugins/nodes/sweep_providers.h"
#include "tests/plugins/nodes/sweep_values.h"

namespace heddle::test {
namespace {

using engine::cat;

// Above these a run is long or large because that is what was asked for: then it is only planned,
// or cancelled when it has begun.
constexpr double kMostBytesToRun = 2 << 20, kMostBytesToRead = 64 << 20;
constexpr std::uint32_t kMostStepsToRun = 8;
// A value takes many times as long under a sanitizer: there one of eight is tried, elsewhere each.
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
constexpr int kSweepStride = 8;
#else
constexpr int kSweepStride = 1;
#endif

// What the options of a port without a widget of ours say that it may be given.
std::optional<std::string> value_by_options(const heddle_port& port) {
  const engine::Json options = engine::parse_json(port.widget->extra, port.name);
  if (const engine::Json* standard = options.find("default")) {
    const std::string text = engine::write_json(*standard);
    return standard->is_array() ? cat(R"({"__value__": )", text, "}") : text;
  }
  if (port.type == std::string_view("COMFY_DYNAMICCOMBO_V3"))
    return engine::write_json(options.at("options").at(std::size_t{0}).at("key"));
  if (port.type == std::string_view("IMAGECOMPARE")) return "{}";
  return std::nullopt;
}

// Ends the process, with the case at hand, when one of them takes longer than any should.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds patience)
      : thread_([this, patience](const std::stop_token& stop) { watch(stop, patience); }) {}
  void begin(const std::string& name) {
    const std::lock_guard lock(mutex_);
    name_ = name;
    ++count_;
  }

 private:
  void watch(const std::stop_token& stop, std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      const std::uint64_t before = count_;
      changed_.wait_for(lock, stop, patience, [] { return false; });
      if (stop.stop_requested() || count_ != before) continue;
      std::fprintf(stderr, "no end after %lld s: %s\n", static_cast<long long>(patience.count()),
                   name_.c_str());
      std::abort();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string name_;
  std::uint64_t count_ = 0;
  std::jthread thread_;
};

// How a plan or a run ended.
struct Ending {
  bool in_run = false;
  std::optional<engine::Code> code;  // none: it went well
  std::string text;
};

struct SweepFixture {
  NodeFixture nodes;  // its folder of models
  Engine::Data engine{options()};
  Watchdog watchdog{std::chrono::seconds(300)};

  EngineOptions options() const {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    write_vision_models(nodes.folder / "models");
    options.model_dirs.push_back(nodes.folder / "models");
    options.input_dir = std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs";
    options.output_dir = nodes.folder / "swept";
    return options;
  }

  std::vector<engine::NodeTypeRef> shipped() const {
    std::vector<engine::NodeTypeRef> types;
    for (const std::string_view name : engine.plugins.catalog->type_names()) {
      engine::NodeTypeRef type = engine.plugins.catalog->find(name);
      const bool is_of_tests = name.starts_with("test.") || name.starts_with("demo.");
      // Loops begin and end in pairs: tests/execution has them.
      constexpr auto kNot = HEDDLE_NODE_BLOCK | HEDDLE_NODE_LOOP_START | HEDDLE_NODE_LOOP_END;
      if (!is_of_tests && !type->has(kNot) && !reads_checkpoint(*type))
        types.push_back(std::move(type));
    }
    return types;
  }

  // What the input is given where it is not the swept one; nothing: its default.
  std::optional<std::string> small_value(const engine::NodeType& type, const heddle_port& port) {
    if (port.name == std::string_view("initial_mask") && takes_sam3(type.name()))
      return kFirstMask;  // not required, but there has to be something to follow
    if ((port.flags & HEDDLE_PORT_HIDDEN) != 0) return std::nullopt;
    // Of those before a part there have to be more than there are pictures here.
    if (port.name == std::string_view("previous_frames")) return std::nullopt;
    const bool is_shown =
        port.type == std::string_view("IMAGE") || port.type == std::string_view("AUDIO");
    if (is_shown && refuses_what_is_shown(type.name())) return std::nullopt;
    if (port.type == std::string_view("AUDIO_ENCODER_OUTPUT") && refuses_small_sounds(type.name()))
      return std::nullopt;
    // Its pictures are for an autoencoder of cells of 16 pixels.
    if (is_shown && type.name() == "HunyuanVideo15SuperResolution") return std::nullopt;
    if (port.widget != nullptr) {
      if (auto literal = small_literal(port.name)) {
        const heddle_widget& widget = *port.widget;
        if (literal->front() == '"' || !(widget.min < widget.max)) return literal;
        const double small = std::stod(*literal);
        return widget.min <= small && small <= widget.max
                   ? literal
                   : cat(std::clamp(small, widget.min, widget.max));
      }
      const std::int32_t kind = port.widget->kind;
      const bool is_optional = (port.flags & HEDDLE_PORT_OPTIONAL) != 0;
      if (kind == 0 && is_optional) return std::nullopt;
      if (kind == 0)
        if (const auto given = value_by_options(port)) return given;
      if (kind != 0 && kind != HEDDLE_WIDGET_FILE && kind != HEDDLE_WIDGET_FOLDER)
        return std::nullopt;
      if (kind != 0) {
        const std::vector<std::string> files = engine.plugins.catalog->choices(*port.widget);
        if (!files.empty()) return engine::write_json(engine::Json(files.front()));
      }
    }
    if (port.type == std::string_view("LATENT") && takes_video_latents(type.name()))
      return kVideoLatents;
    if (port.type == std::string_view("LATENT") && takes_video_autoencoders(type.name()))
      return kOwnVideoLatents;
    if (port.type == std::string_view("CLIP") && takes_language_models(type.name()))
      return kLanguageModel;
    if (port.type == std::string_view("MODEL") && takes_patched_models(type.name()))
      return kPatchedModel;
    if (port.type == std::string_view("MODEL") && takes_unets(type.name())) return kUnetModel;
    if (port.type == std::string_view("MODEL") && takes_minimax(type.name())) return kMinimaxModel;
    if (port.type == std::string_view("MODEL") && takes_sam3(type.name())) return kSam3Model;
    if (port.type == std::string_view("MODEL") && takes_rtdetr(type.name())) return kRtdetrModel;
    if (port.type == std::string_view("VAE") && takes_patched_models(type.name()))
      return kPatchedVae;
    if (port.type == std::string_view("VAE") && takes_video_autoencoders(type.name()))
      return kVideoVae;
    if (port.type == std::string_view("VAE") && takes_wan_autoencoders(type.name())) return kWanVae;
    if (port.type == std::string_view("VAE") && takes_sound_autoencoders(type.name()))
      return kSoundVae;
    if (const char* link = clip_link(type.name(), port.type)) return link;
    if (const char* link = talk_link(type.name(), port.type)) return link;
    if (const char* link = fun_link(type.name(), port.type)) return link;
    if (const char* link = style_link(type.name(), port.type)) return link;
    if (const char* link = llava_link(type.name(), port.type)) return link;
    if (const char* link = posed_link(type.name(), port.type)) return link;
    for (const SweepProvider& provider : kProviders)
      if (port.type == std::string(provider.type)) return provider.link;
    // What has inputs of its own is given these.
    const std::string_view type_name = port.type;
    const bool has_own = type_name == "COMFY_AUTOGROW_V3" || type_name == "COMFY_DYNAMICGROUP_V3";
    if (has_own || (port.flags & HEDDLE_PORT_OPTIONAL) != 0) return std::nullopt;
    BOOST_ERROR("the sweep does not know what to give to the input "
                << port.name << " of " << type.name() << ", a " << port.type
                << ". Add a node that makes a small one to provider_nodes() and kProviders, or a "
                   "file to the folder of models.");
    return std::nullopt;
  }

  // What has to be there of one that grows: "images.image0", or that has rows: "loras.0.lora_name".
  std::vector<std::pair<std::string, std::string>> grown(const heddle_port& port) {
    std::vector<std::pair<std::string, std::string>> sockets;
    if (port.name == std::string_view("loras"))  // a row that is not enabled
      return {{"loras.0.lora_name", "\"none\""}, {"loras.0.enabled", "false"}};
    if (port.type != std::string_view("COMFY_AUTOGROW_V3")) return sockets;
    const engine::Json pattern = engine::parse_json(port.widget->extra, port.name).at("template");
    const engine::Json* prefix = pattern.find("prefix");
    const engine::Json* entry = pattern.at("input").find("required");
    if (prefix == nullptr || entry == nullptr) return sockets;
    const std::string type = entry->members().begin()->value.at(std::size_t{0}).as_string();
    for (const SweepProvider& provider : kProviders)
      if (type == provider.type)
        sockets.emplace_back(cat(port.name, ".", prefix->as_string(), 0), provider.link);
    return sockets;
  }

  // The node as "out", with the value linked to one of its inputs from a node of this class.
  std::string workflow(const engine::NodeType& type, std::string_view swept,
                       const std::string& source, const std::string& value) {
    std::string inputs;
    const auto add = [&](std::string_view name, const std::string& what) {
      inputs += cat(inputs.empty() ? "" : ", ", "\"", name, "\": ", what);
    };
    for (std::uint32_t i = 0; i < type.input_count(); ++i) {
      const heddle_port& port = type.input(i);
      if (port.name == swept)
        add(port.name, R"(["value", 0])");
      else if (const auto given = small_value(type, port))
        add(port.name, *given);
      if (refuses_what_is_shown(type.name())) continue;
      for (const auto& [name, link] : grown(port)) add(name, link);
    }
    const bool has_video = engine.plugins.catalog->find("CreateVideo") != nullptr;
    std::string text =
        cat("{", provider_nodes(), has_video ? kVideoNodes : "", R"(, "out": {"class_type": ")",
            type.name(), R"(", "inputs": {)", inputs, "}}");
    if (!swept.empty())
      text += cat(R"(, "value": {"class_type": ")", source, R"(", "inputs": {"text": ")", value,
                  "\"}}");
    if (!type.has(HEDDLE_NODE_SINK)) text += std::string(", ") + NodeFixture::kLook;
    return text + "}";
  }

  // Plans strictly, and says what that told.
  Ending plan(const std::string& text, std::optional<Ready>& ready) {
    return ending(false, [&] { ready = prepared(text, Describe::strictly); });
  }
  // Runs; with `stops` until the node tells of progress.
  Ending run(const std::string& text, bool stops) {
    std::optional<Ready> ready;
    const Ending before = ending(false, [&] { ready = prepared(text, Describe::for_a_run); });
    if (before.code) return before;
    return ending(true, [&] {
      engine::RunRequest request;
      request.graph = &ready->graph;
      request.plan = &ready->plan;
      engine::RunControl control;
      Stopper stopper(control, stops);
      engine::execute(request, *engine.environment, stopper, control);
    });
  }

  // Whether it is quick and small enough to be run, and short enough to be run to its end.
  static bool is_small(const Ready& ready) {
    double bytes = 0;
    for (const engine::NodeSpec& node : ready.inferred.nodes)
      for (const engine::ValueSpec& output : node.outputs)
        for (const auto& [path, info] : output.tensors) bytes += double(engine::dense_bytes(info));
    return bytes <= kMostBytesToRun;
  }
  // Whether its calls have few steps and read little: an encoder of a clip is called once for each
  // few frames.
  static bool is_short(const Ready& ready) {
    double bytes = 0;
    for (const engine::NodeSpec& node : ready.inferred.nodes)
      for (const engine::CallSpec& call : node.calls) {
        if (call.step_count > kMostStepsToRun) return false;
        for (const engine::CallSpec::Set& set : call.sets)
          for (const auto& [name, info] : set.constants) bytes += double(engine::dense_bytes(info));
      }
    return bytes <= kMostBytesToRead;
  }

 private:
  class Stopper final : public engine::Observer {
   public:
    Stopper(engine::RunControl& control, bool stops) : control_(control), stops_(stops) {}
    void node_progress(const engine::Node& node, double, std::string_view) override {
      if (stops_ && node.id == "out") control_.cancel();
    }

   private:
    engine::RunControl& control_;
    const bool stops_;
  };

  Ready prepared(const std::string& text, Describe how) {
    const Workflow::Data flow{engine::parse_workflow(text, "sweep.json"), engine.plugins.catalog};
    return engine.prepare(flow, {how});
  }
  template <class F>
  static Ending ending(bool in_run, F&& work) {
    try {
      work();
      return {in_run, std::nullopt, ""};
    } catch (const engine::Error& error) {
      return {in_run, error.code(), error.full()};
    } catch (const std::bad_alloc&) {
      return {in_run, engine::Code::out_of_memory, "host memory is exhausted"};
    }
  }
};

void check_refused(const Ending& ending, const heddle_port& port, const std::string& what) {
  const std::string named = cat("input ", engine::quote(port.name), ": ");
  BOOST_TEST((ending.code == engine::Code::invalid_argument), what << ": " << ending.text);
  BOOST_TEST(ending.text.find(named) != std::string::npos, what << ": " << ending.text);
  BOOST_TEST(ending.text.find("node 'out'") != std::string::npos, what << ": " << ending.text);
}
void check_typed(const Ending& ending, const std::string& what) {
  BOOST_TEST((ending.code != engine::Code::internal), what << ": " << ending.text);
}

// One value, once known before the run and once not.
void check_value(SweepFixture& sweep, const engine::NodeType& type, const heddle_port& port,
                 const SweepValue& value) {
  const std::string what = cat(type.name(), ".", port.name, " = ", value.text);
  sweep.watchdog.begin(what);
  BOOST_TEST_CHECKPOINT(what);
  const std::string raw = sweep.workflow(type, port.name, "test.raw", value.text);
  const std::string known = sweep.workflow(type, port.name, "test.known", value.text);
  std::optional<Ready> ready;
  const Ending planned = sweep.plan(known, ready);
  if (!value.fits) {
    // How often a node of lists is called, and with what, nobody knows before it runs; but those
    // that are run while planning.
    const bool has_lists =
        (type.takes_lists() || type.makes_lists()) && !type.has(HEDDLE_NODE_DESCRIBES);
    if (!has_lists) check_refused(planned, port, what + ", planned");
    const Ending started = sweep.run(known, true);
    check_refused(started, port, what + ", known");
    BOOST_TEST(started.in_run == has_lists,
               what << " was refused " << (started.in_run ? "when it ran" : "before it ran"));
    const Ending ran = sweep.run(raw, true);
    check_refused(ran, port, what + ", run");
    BOOST_TEST(ran.in_run, what << " was known before the run");
    return;
  }
  check_typed(planned, what + ", planned");
  if (planned.code || !SweepFixture::is_small(*ready)) return;
  const bool stops = !SweepFixture::is_short(*ready);
  ready.reset();
  check_typed(sweep.run(known, stops), what + ", known, run");
  check_typed(sweep.run(raw, stops), what + ", run");
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(link_sweep, SweepFixture)

BOOST_AUTO_TEST_CASE(every_number_of_every_node_is_checked_whoever_made_it) {
  int inputs = 0, turn = 0;
  for (const engine::NodeTypeRef& type : shipped()) {
    std::vector<const heddle_port*> numbers;
    for (std::uint32_t i = 0; i < type->input_count(); ++i)
      if (!type->check(i).is_judged() &&
          (is_int_port(type->input(i)) || is_float_port(type->input(i))))
        numbers.push_back(&type->input(i));
    if (numbers.empty()) continue;
    // Else nothing that follows would get as far as the node.
    watchdog.begin(std::string(type->name()));
    const Ending plain = run(workflow(*type, "", "", ""), false);
    BOOST_TEST(!plain.code, type->name() << " does not run with small values: " << plain.text);
    for (const heddle_port* port : numbers) {
      ++inputs;
      for (const SweepValue& value : numbers_for(*port))
        if (turn++ % kSweepStride == 0) check_value(*this, *type, *port, value);
    }
  }
  BOOST_TEST(inputs > 90);
}

BOOST_AUTO_TEST_CASE(every_choice_of_every_node_is_checked_whoever_made_it) {
  int inputs = 0, turn = 0;
  for (const engine::NodeTypeRef& type : shipped())
    for (std::uint32_t i = 0; i < type->input_count(); ++i) {
      const heddle_port& port = type->input(i);
      if (!is_choice_port(port) || type->check(i).is_judged()) continue;
      ++inputs;
      for (const char* odd : {"s:no such choice", "s:", "i:0", "f:nan"})
        if (turn++ % kSweepStride == 0) check_value(*this, *type, port, {odd, false});
    }
  BOOST_TEST(inputs > 10);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
