// Small nodes for tests of the executor: numbers, tensors, lazy inputs, sinks, failures, deferred
// completion.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <heddle/call.hpp>
#include <heddle/expansion.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>
#include <mutex>
#include <new>
#include <thread>

#include "call_nodes.h"
#include "planned_loop.h"

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;

struct Add {
  static constexpr heddle::Info info{"test.add", 1, "Add", "test"};
  static constexpr Input<std::int64_t> a{"a", {.number = 0}};
  static constexpr Input<std::int64_t> b{"b", {.number = 1}};
  static constexpr Output<std::int64_t> sum{"sum"};
  static constexpr auto ports = heddle::ports(a, b, sum);
  void execute(Context& ctx) { ctx[sum] = ctx[a] + ctx[b]; }
};

// Adds two, by asking for two nodes that add one each.
struct AddTwo {
  static constexpr heddle::Info info{"test.add_two", 1, "Add two", "test", "", HEDDLE_NODE_EXPANDS};
  static constexpr Input<std::int64_t> a{"a", {.number = 0}};
  static constexpr Output<std::int64_t> sum{"sum"};
  static constexpr auto ports = heddle::ports(a, sum);
  static void execute(Context& ctx) {
    heddle::Expansion graph(ctx);
    const auto one = graph.node("test.add").set("a", ctx[a]);
    graph.give(sum, graph.node("test.add").link("a", one.out()).out());
  }
};

// Ends a branch; writes nothing.
struct Keep {
  static constexpr heddle::Info info{"test.keep", 1,  "Keep",
                                     "test",      "", HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<heddle::Value> value{"value", HEDDLE_PORT_PASS};
  static constexpr Output<heddle::Value> out{"out"};
  static constexpr auto ports = heddle::ports(value, out);
  void execute(Context& ctx) { ctx[out] = ctx[value]; }
};

// Saves a tensor's bytes, or a number as text, in the output folder: "1", "2" and so on, the first
// name that is free.
struct Save {
  static constexpr heddle::Info info{
      "test.save", 1, "Save", "test", "", HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_IMPURE};
  static constexpr Input<heddle::Value> value{"value", HEDDLE_PORT_HOST};
  static constexpr auto ports = heddle::ports(value);
  void execute(Context& ctx) {
    heddle_value* folder = nullptr;
    heddle::check(heddle::service<heddle_folders_service>().output(ctx.raw(), "output", &folder));
    const std::filesystem::path place = heddle::Value::adopt(folder).as<std::string>();
    int number = 1;
    while (std::filesystem::exists(place / std::to_string(number))) ++number;
    const std::string path = place / std::to_string(number);
    std::ofstream file(path, std::ios::binary);
    if (const heddle::Value v = ctx[value]; v.is(HEDDLE_KIND_TENSOR)) {
      const std::vector<float> all = ctx.read<float>(v.as<Tensor>());
      file.write(reinterpret_cast<const char*>(all.data()),
                 std::streamsize(all.size() * sizeof(float)));
    } else {
      file << v.as<std::int64_t>();
    }
    heddle::wrote(ctx, path);
  }
};

// Gives a or b, and lets only that one be computed.
struct Choose {
  static constexpr heddle::Info info{"test.choose", 1, "Choose", "test"};
  static constexpr Input<bool> first{"first", {.number = 1}};
  static constexpr Input<std::int64_t> a{"a", HEDDLE_PORT_LAZY};
  static constexpr Input<std::int64_t> b{"b", HEDDLE_PORT_LAZY};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(first, a, b, out);
  void need(Context& ctx) {
    if (ctx[first])
      ctx.want(a);
    else
      ctx.want(b);
  }
  void execute(Context& ctx) { ctx[out] = ctx[first] ? ctx[a] : ctx[b]; }
};

struct Fail {
  static constexpr heddle::Info info{"test.fail", 1, "Fail", "test"};
  static constexpr Input<std::string> how{"how", {.text = "error"}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(how, out);
  void execute(Context& ctx) {
    if (ctx[how] == "error") throw heddle::Error(HEDDLE_INVALID_ARGUMENT, "it was asked to fail");
    if (ctx[how] == "exception") throw std::runtime_error("a foreign exception");
    if (ctx[how] == "number") throw 5;
    // "nothing": the output is not set
  }
};

// Waits until the run is cancelled: tests cancel it.
struct Wait {
  static constexpr heddle::Info info{"test.wait", 1, "Wait", "test", "", HEDDLE_NODE_IMPURE};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(out);
  void execute(Context& ctx) {
    ctx.progress(0.5, "waiting");
    while (!ctx.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw heddle::Error(HEDDLE_CANCELLED, "cancelled");
  }
};

// Shows three pictures of two pixels, when somebody looks; gives how many.
struct Draw {
  static constexpr heddle::Info info{"test.draw", 1, "Draw", "test", "", HEDDLE_NODE_IMPURE};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(out);
  void execute(Context& ctx) {
    std::int64_t shown = 0;
    for (std::uint32_t step = 1; step <= 3; ++step) {
      if (!ctx.wants_preview()) continue;
      std::uint8_t pixels[6];
      for (std::uint32_t i = 0; i < 6; ++i) pixels[i] = std::uint8_t('a' + step - 1 + i / 3);
      ctx.preview({sizeof(heddle_preview), 2, 1, step, 3, pixels});
      ++shown;
    }
    ctx[out] = shown;
  }
};

// A tensor on the device, counted up from `start`.
struct Ramp {
  static constexpr heddle::Info info{"test.ramp", 1, "Ramp", "test"};
  static constexpr Input<double> start{"start", {.number = 0}};
  static constexpr Input<std::int64_t> count{"count", {.number = 4}};
  static constexpr Input<std::int64_t> items{"items", {.number = 1, .min = 1, .max = 100}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(start, count, items, out);
  void execute(Context& ctx) {
    std::vector<float> values(static_cast<std::size_t>(ctx[count] * ctx[items]));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(ctx[start]) + float(i);
    ctx[out] = ctx.upload({ctx[items], 1, ctx[count]}, HEDDLE_F32, values.data());
  }
};

// Calls a model for a number of steps: x <- out, with one or two sets.
struct Loop {
  static constexpr heddle::Info info{"test.loop", 1, "Loop", "test"};
  static constexpr Input<heddle::Value> model{"model", 0, "", "MODEL"};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<std::int64_t> steps{"steps", {.number = 2, .min = 1, .max = 100}};
  static constexpr Input<std::int64_t> sets{"sets", {.number = 1, .min = 1, .max = 2}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(model, x, steps, sets, out);
  void execute(Context& ctx) {
    const auto n = std::uint32_t(ctx[steps]);
    std::vector<float> schedule(n);
    for (std::uint32_t i = 0; i < n; ++i) schedule[i] = 1.0f + float(i);
    std::vector<heddle::Value> constants;
    for (std::int64_t s = 0; s < ctx[sets]; ++s) {
      const float bias = 0.5f * float(s + 1);
      constants.push_back(
          heddle::Record()
              .set("bias", heddle::value_of(ctx.upload({1, 1, 1}, HEDDLE_F32, &bias)))
              .value());
    }
    const heddle::Value scheduled =
        heddle::Record()
            .set("t", heddle::value_of(ctx.upload({n, 1, 1}, HEDDLE_F32, schedule.data())))
            .value();
    heddle::Session session(ctx, ctx[model], constants, scheduled, n);
    std::vector<Tensor> now(constants.size(), ctx[x]);
    for (std::uint32_t i = 0; i < n; ++i) {
      std::vector<heddle::Value> in;
      for (const Tensor& t : now)
        in.push_back(heddle::Record().set("x", heddle::value_of(Tensor(t))).value());
      const std::vector<heddle::Value> results = session.step(i, in);
      for (std::size_t s = 0; s < now.size(); ++s) now[s] = results[s].field("y").as<Tensor>();
      ctx.progress(double(i + 1) / n, "step");
    }
    ctx[out] = now.size() == 1 ? now[0] : heddle::ops::add(ctx, now[0], now[1]);
  }
};

// ---- a model of blocks: y = (x W^T + bias + t), layer after layer  ----

struct Layer {
  static constexpr heddle::Info info{"test.layer", 1, "Layer", "test", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> shift{"shift"};
  static constexpr heddle::Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> y{"y"};
  static constexpr auto ports = heddle::ports(x, shift, weight, y);
  static void execute(Context& ctx) {
    const Tensor product = heddle::ops::linear(ctx, ctx[x], ctx[weight], {});
    ctx[y] = heddle::ops::add(ctx, product, ctx[shift]);
  }
};

struct Shift {
  static constexpr heddle::Info info{"test.shift", 1, "Shift", "test", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> bias{"bias"};
  static constexpr Input<Tensor> t{"t"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(bias, t, out);
  static void execute(Context& ctx) { ctx[out] = heddle::ops::add(ctx, ctx[bias], ctx[t]); }
};

struct Layers {
  static constexpr heddle::Family family{"test.layers", "test", 1, "Linear layers."};
  static int match(const heddle::Checkpoint& file, const heddle::Value&) {
    return file.has("layers.0.weight") ? 10 : 0;
  }
  static void build(const heddle::Checkpoint& file, const heddle::Value&, heddle::Blocks& graph) {
    heddle::Source hidden = graph.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const heddle::Source bias = graph.input("bias", HEDDLE_INPUT_LOOP_INVARIANT),
                         t = graph.input("t", HEDDLE_INPUT_PRECOMPUTED);
    const heddle::Source shift =
        graph.add<Shift>("shift").link(Shift::bias, bias).link(Shift::t, t)[Shift::out];
    for (int i = 0; i < file.count("layers.", ".weight"); ++i)
      hidden = graph.add<Layer>("layer." + std::to_string(i))
                   .link(Layer::x, hidden)
                   .link(Layer::shift, shift)
                   .weight(Layer::weight, "layers." + std::to_string(i) + ".weight")[Layer::y];
    graph.output("y", hidden);
    graph.setting("width", file.size("layers.0.weight", 0));
  }
};

// A family with a slip of the pen: the tensor in its file says which.
struct Slips {
  static constexpr heddle::Family family{"test.slips", "test", 1, "Builds what cannot be built."};
  static constexpr Input<Tensor> shfit{"shfit"};
  static constexpr Output<Tensor> z{"yy"};
  struct Lyer : Layer {
    static constexpr heddle::Info info{"test.lyer", 1, "Lyer", "test", "", HEDDLE_NODE_BLOCK};
  };
  static int match(const heddle::Checkpoint& file, const heddle::Value&) {
    return file.name(0).starts_with("slip.") ? 10 : 0;
  }
  static void build(const heddle::Checkpoint& file, const heddle::Value&, heddle::Blocks& graph) {
    const heddle::Source x = graph.input("x", HEDDLE_INPUT_PER_STEP);
    if (file.has("slip.type")) graph.add<Lyer>("layer");
    heddle::Block layer = graph.add<Layer>("layer");
    if (file.has("slip.input")) layer.link(shfit, x);
    layer.link(Layer::x, x);
    graph.output("y", layer[z]);
  }
};

struct LoadLayers {
  static constexpr heddle::Info info{"test.load", 1,  "Load",
                                     "test",      "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> path{"path", {.text = ""}};
  static constexpr Output<heddle::Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(path, model);
  void execute(Context& ctx) {
    ctx[model] = heddle::build_model(ctx, "test", heddle::Checkpoint::open(ctx[path]), {});
  }
};

// Another model of the same file and weights.
struct Rebuild {
  static constexpr heddle::Info info{"test.rebuild", 1,  "Rebuild",
                                     "test",         "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<heddle::Value> model{"model", 0, "", "MODEL"};
  static constexpr Input<std::string> as{"as", {.text = ""}};
  static constexpr Output<heddle::Value> rebuilt{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, as, rebuilt);
  void execute(Context& ctx) {
    const std::string text = ctx[as];
    ctx[rebuilt] = heddle::rebuilt_model(
        ctx, ctx[model], heddle::made_value(heddle::Wire<std::string>::write(text)));
  }
};

// A value that no memory has room for.
struct Vast {
  static constexpr heddle::Info info{"test.vast", 1, "Vast", "test", "", HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> how{"how", {.number = 0, .min = 0, .max = 2}};
  static constexpr Output<std::string> text{"text"};
  static constexpr auto ports = heddle::ports(how, text);
  void execute(Context& ctx) {
    const std::string_view vast("", std::size_t{1} << 62);
    if (ctx[how] == 0) ctx[text] = vast;  // NULL to the engine
    if (ctx[how] == 1)
      (void)heddle::made_value(heddle::Wire<std::string>::write(vast));  // std::bad_alloc
    if (ctx[how] == 2)
      heddle::check(heddle::service<heddle_io_service>().set_output(ctx.raw(), 0, nullptr));
  }
};

// The text of a file, known before a run.
struct ReadText {
  static constexpr heddle::Info info{"test.read", 1,  "Read",
                                     "test",      "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> path{"path", {.text = ""}};
  static constexpr Output<std::string> text{"text"};
  static constexpr auto ports = heddle::ports(path, text);
  void execute(Context& ctx) {
    std::ifstream file(ctx[path], std::ios::binary);
    ctx[text] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::uint64_t fingerprint(Context& ctx) {
    std::uint64_t hash = 0;
    heddle::check(
        heddle::service<heddle_folders_service>().identify(ctx.raw(), ctx[path].c_str(), &hash));
    return hash;
  }
};

// The same, read when the run comes to it.
struct ReadLate {
  static constexpr heddle::Info info{"test.read_late", 1,  "Read late",
                                     "test",           "", HEDDLE_NODE_HOST};
  static constexpr Input<std::string> path{"path", {.text = ""}};
  static constexpr Output<std::string> text{"text"};
  static constexpr auto ports = heddle::ports(path, text);
  void execute(Context& ctx) {
    std::ifstream file(ctx[path], std::ios::binary);
    ctx[text] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::uint64_t fingerprint(Context& ctx) {
    std::uint64_t hash = 0;
    heddle::check(
        heddle::service<heddle_folders_service>().identify(ctx.raw(), ctx[path].c_str(), &hash));
    return hash;
  }
};

// Two texts as numbers, on the device; worth keeping.
struct Spell {
  static constexpr heddle::Info info{"test.spell", 1,  "Spell",
                                     "test",       "", HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<std::string> text{"text", {.text = ""}};
  static constexpr Input<std::string> more{"more", {.text = ""}};
  static constexpr Output<heddle::Value> out{"out"};
  static constexpr auto ports = heddle::ports(text, more, out);
  void execute(Context& ctx) {
    const std::string both = ctx[text] + ctx[more];
    const std::vector<float> letters(both.begin(), both.end());
    const Tensor tensor = ctx.upload({std::int64_t(letters.size())}, HEDDLE_F32, letters.data());
    ctx[out] = heddle::Record()
                   .set("letters", heddle::value_of(tensor))
                   .set("text", heddle::value_of(both))
                   .value();
  }
};

HEDDLE_PLUGIN("org.heddle.tests.arithmetic", "1.0.0", Add, AddTwo, Keep, Save, Choose, Fail, Later,
              Where, Wait, Draw, Ramp, Told, Loop, PlannedLoop, Layer, Shift, Layers, Slips,
              LoadLayers, Rebuild, Vast, ReadText, ReadLate, Spell)
