// heddle/engine.hpp - run workflows from your own program. Link with libheddle.
//
//   heddle::Engine engine({.model_dirs = {"models"}});
//   heddle::Workflow flow = engine.load("graphs/scene.json");
//   flow.set("prompt.text", "a lighthouse at sea");  // NODE.INPUT: title, id, or a class used once
//   std::cout << engine.plan(flow);                  // what would run where, without running it
//   heddle::Results results = engine.start(flow).wait();
//   results.image("decode.IMAGE").save_ppm("lighthouse.ppm");
//
// Any thread. Failures are thrown as EngineError; only std types cross, data behind one pointer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heddle/device_info.hpp"
#include "heddle/dlpack.h"
#include "heddle/fidelity.hpp"
#include "heddle/isolation.hpp"
#include "heddle/picture_conversion.hpp"
#include "heddle/planned_call.hpp"
#include "heddle/plugin_info.hpp"
#include "heddle/run_event.hpp"

namespace heddle {

// What failed, where, what to do about it. code: a heddle_code of abi/base.h.
class EngineError : public std::runtime_error {
 public:
  EngineError(int code, std::vector<std::string> trail, const std::string& what)
      : std::runtime_error(what), code_(code), trail_(std::move(trail)) {}
  int code() const { return code_; }
  // Outermost first: "node '6' (KSampler)", "step 7", "double.2 on cpu:0".
  const std::vector<std::string>& trail() const { return trail_; }

 private:
  int code_;
  std::vector<std::string> trail_;
};

// Memory of the program's own for tensors on the host. Both functions are called by any thread,
// several at once, and must not throw. allocate gives a null pointer when it has nothing left: that
// run fails with HEDDLE_OUT_OF_MEMORY.
struct HostAllocator {
  void* (*allocate)(void* user, std::size_t bytes,
                    std::size_t alignment) = nullptr;  // alignment: a power of two
  void (*free)(void* user, void* data, std::size_t bytes) = nullptr;
  void* user = nullptr;
};

// Bytes, or a share of a memory: 14ull << 30, MemorySize::of_all(0.6).
struct MemorySize {
  std::uint64_t bytes = 0;
  double share = 0;  // 0 to 1; where it is not 0 it counts
  constexpr MemorySize() = default;
  constexpr MemorySize(std::uint64_t size)
      : bytes(size) {}  // NOLINT: a number of bytes is meant as one
  static constexpr MemorySize of_all(double share) {
    MemorySize size;
    size.share = share;
    return size;
  }
};

// Over 15 members: what an embedder may choose, each by itself and with a default.
struct EngineOptions {
  // Searched after the program's own; a node type of a later one replaces.
  std::vector<std::filesystem::path> plugin_dirs = {};
  // In place of all that is searched otherwise: what ships with libheddle, else with the program,
  // then the user's own and HEDDLE_PLUGIN_PATH.
  std::filesystem::path default_plugin_dir = {};
  // Each holds checkpoints/, diffusers/, ...; searched in this order, then graphs/models.
  std::vector<std::filesystem::path> model_dirs = {};
  // Empty: comfyui_dir's, else "input" and "output".
  std::filesystem::path input_dir = {}, output_dir = {};
  // A ComfyUI folder; what is named by itself comes before it.
  std::filesystem::path comfyui_dir = {};
  // "auto", "cuda", "cuda:1", a UUID, a PCI address; empty: "auto", all of the best kind there is.
  // Wherever a device is named, it may be named in any of these ways.
  std::vector<std::string> devices = {};
  unsigned threads = 0;                             // of a CPU device; 0: all cores
  std::map<std::string, std::string> compute = {};  // device or kind -> "f32", "bf16", "fp16"
  // Multiplied in, where a device has it: attentions, "fp8_e4m3fn"; matrices of int8 files, "int8".
  std::string attention_dtype = {}, linear_dtype = {};
  // By device or kind: to be used at most, to be left free for other programs ("host": its memory).
  std::map<std::string, MemorySize> budgets = {}, reserves = {};
  bool reference_kernels = false;  // the plain loops alone: slow, for comparisons
  // Measured ones, to place by; empty: figures of devices, or guesses.
  std::filesystem::path costs = {};
  std::uint64_t cache_bytes = 0;  // of outputs kept between runs; 0: a quarter of the memory
  // Results that are worth it (HEDDLE_NODE_CACHE_ON_DISK) are kept here for later processes, which
  // then need not make them again, nor open what they are made of; the folder is made when there is
  // one. Empty: none are. Beyond the limit those used longest ago go.
  std::filesystem::path cache_dir = {};
  std::uint64_t cache_dir_bytes = std::uint64_t{1} << 30;
  // Device kind -> JSON object: options of its plugin's own.
  std::map<std::string, std::string> device_options = {};
  // The next two are of the whole process: the newest engine that gives one has it, and when that
  // engine goes, the default (stderr, the C library) is back. What an allocator gave goes back to
  // it however late. `level`: a heddle_level of abi/base.h; called by any thread, several at once.
  std::function<void(int level, std::string_view message)> log = {};
  // Of tensors in host memory; the memory of devices is their plugins' affair.
  HostAllocator allocator = {};
  // A device that fails in so many runs one after another is degraded: nothing new is placed on it
  // for so long, then the next run probes it, and uses it again when that goes well. 0 runs: never.
  unsigned degrade_after = 3;
  double degraded_seconds = 60;
  std::function<double()> clock =
      {};  // monotonic seconds, for this; any thread; empty: the system's
  // Of host memory, CPU devices included; else half of it less 2 GB, at least 4 GB.
  std::optional<MemorySize> host_budget = {};
  // Of host memory, pinned for devices at most; else half of the host budget.
  std::optional<MemorySize> pinned = {};
  // Host memory that has to be there for a run to begin beside others: nobody counts what its
  // threads, files and pictures take. Else 64 MiB, or a 64th of the host budget if that is less.
  std::optional<MemorySize> host_floor = {};
  double memory_poll_seconds = 2;  // between two questions to a driver how much is free, by `clock`
  // A model that nothing has used for so long is unloaded from every device. 0: never.
  double idle_seconds = 0;
  // Bytes of a text that a model reads (HEDDLE_PORT_PROMPT); a longer one is refused. Tokens,
  // windows and the conditioning grow with it: of CLIP-L at worst 3 KB a byte. The default is
  // twenty times what anybody writes by hand.
  std::uint64_t prompt_limit = std::uint64_t{64} << 10;
  Fidelity fidelity = Fidelity::exact;  // of plans, and of runs that say nothing else
  Isolation isolation = {};             // plugins that run in processes of their own
};

// A parsed workflow. A value: copy it, change it, keep it.
class Workflow {
 public:
  // NODE.INPUT; value: JSON of the input's type, else text. `from` is who says so, as messages
  // about it shall name it: "--set", "settings.ini:3"; nobody where it is empty.
  void set(std::string_view input, std::string_view value, std::string_view from = {});
  void place(std::string_view node, std::string_view device, std::string_view from = {});
  void parallel(std::string_view node, std::string_view mode, std::string_view from = {});
  // Run these output nodes and what they need; none: all of them. check(), plan() and start() go by
  // it. ComfyUI's key "partial_execution_targets", a list of ids, does the same.
  void only(const std::vector<std::string>& nodes, std::string_view from = {});
  std::string text() const;  // canonical JSON

  // Read without an engine, to see what it asks for before one is made; Engine::adopt() gives it to
  // one. What ComfyUI's interface saved has neither nodes nor inputs before that.
  static Workflow load(const std::filesystem::path&);
  static Workflow parse(std::string_view json, std::string_view name = "workflow");
  struct Node {
    std::string id, title, class_type;
    std::vector<std::string> inputs;  // that it gives or links
    std::string device, parallel;     // its hints; empty: none
  };
  // By id, by title, or by a class used once; nothing when none or several are meant.
  std::optional<Node> find(std::string_view name) const;
  std::map<std::string, std::uint64_t> budgets() const;  // that it allows devices, in bytes
  struct Data;

 private:
  friend class Engine;
  std::shared_ptr<const Data> data_;
};

struct Image {
  int width = 0, height = 0, channels = 0;
  std::vector<float> pixels;  // row-major, channels innermost, 0 to 1
  void save_ppm(const std::filesystem::path&) const;
};

struct Stage {
  std::string node, class_type;
  double seconds = 0;
  bool cached = false;
  double planned_seconds = 0;  // as the plan estimated its calls of models; 0: nothing was known
  double planned_load_seconds = 0;  // of loading weights besides, when they are not there yet
};

// A run between two steps of a sampler, in a file: StartOptions::checkpoint writes it. It holds all
// that the run goes on from, but no model file. A value.
class RunCheckpoint {
 public:
  // Read without an engine. Throws for a file that is torn, or no checkpoint.
  static RunCheckpoint load(const std::filesystem::path&);
  Workflow workflow() const;
  std::string note() const;  // StartOptions::checkpoint_note
  struct Data;

 private:
  friend class Engine;
  std::shared_ptr<const Data> data_;
};

class Results {
 public:
  std::vector<std::string> files() const;  // written by this run
  std::vector<Stage> stages() const;       // in the order they finished
  // Lines for people: where the plan's estimate and the run differ by more than a fifth, and one
  // line of advice. Often empty.
  std::vector<std::string> remarks() const;
  // What nodes show, as JSON in the shape of "outputs" in ComfyUI's history: {"9": {"images":
  // [{"filename": ...}]}, "12": {"text": [...]}}, by node id. Nodes that did not run because
  // nothing had changed are among them.
  std::string ui() const;
  // Values asked for by StartOptions::fetch: NODE.OUTPUT.
  Image image(std::string_view output, std::size_t index = 0) const;
  std::string text(std::string_view output) const;
  std::vector<float> floats(std::string_view output, std::string_view field = "")
      const;  // of a tensor, or of a record's field
  std::vector<std::int64_t> shape(std::string_view output, std::string_view field = "") const;
  // A row-major copy in host memory. Yours, to change and to keep longer than anything here: call
  // its deleter in the end.
  DLManagedTensor* tensor(std::string_view output, std::string_view field = "") const;
  struct Data;

 private:
  friend class Engine;
  std::shared_ptr<const Data> data_;
};

// One run. Dropping the last copy cancels it and waits.
class Run {
 public:
  std::uint64_t id() const;  // of no other run in this process; never 0
  Results wait();            // throws what the run threw
  bool wait_for(std::chrono::milliseconds);
  void cancel();  // at once, at a row or tile of what runs, where devices know that; ends a pause
  void pause();   // no node and no step of a model begins any more; those that have begun end
  // The same, and the run's memory is given back: samplers stop at their next step, and their state
  // is kept in host memory; a node without steps ends first. resume() places the run anew, on
  // devices of the same kinds. The results are those of a run without a pause.
  void pause_and_release();
  void resume();
  // Ids of the devices that its plan keeps busy: each with at least half of the work that the
  // busiest has.
  std::vector<std::string> devices() const;
  struct Data;

 private:
  friend class Engine;
  std::shared_ptr<Data> data_;
};

// A value for an input. A tensor stands where the workflow has a link, or for an input that has
// none: bare, or as a record of named tensors, as an input of the type LATENT wants it ({"samples",
// tensor}). Tensors are host memory, row-major; they are not copied, so nobody changes them until
// the deleter is called. What depends on one is computed anew in every run. In the workflow that
// saved files carry, the node's _meta names such inputs as "given".
using InputValue = std::variant<bool, std::int64_t, double, std::string, DLManagedTensor*,
                                std::map<std::string, DLManagedTensor*>>;
using Inputs = std::map<std::string, InputValue>;  // by NODE.INPUT

// Over 15 members: what whoever starts a run may say of it.
struct StartOptions {
  Observer observer = {};
  std::vector<std::string> fetch = {};  // NODE.OUTPUT: values wanted in the results
  // For this run alone. start() takes every tensor, also when it throws: the deleters are called
  // when the run, and what it made of them, is done with them.
  Inputs inputs = {};
  bool among_many = false;  // one of many started together: each keeps to few devices, all spread
  // Run::id() of an earlier run of this engine, or 0. What asks for the output folder waits until
  // that run, and the one before it, is over: the files of a row of runs are named as if the runs
  // had come one after another. A run that waits so keeps what it has made; one that is paused
  // keeps all behind it waiting.
  std::uint64_t writes_after = 0;
  bool partly = false;  // of a workflow with errors, run the outputs that can run, as ComfyUI does;
                        // check() tells the others. Throws where none can
  PreviewMethod previews = PreviewMethod::none;  // of work under way, for the observer
  std::filesystem::path trace = {};  // a timeline goes there, in Chrome's trace format; empty: none
  bool trace_steps = false;          // with whole steps instead of blocks: as fast as without it
  // Of runs that wait for memory the one with the highest begins first. Where those that hold it
  // have a lower one, as few as will do are paused and released, and go on when there is room.
  int priority = 0;
  // Seconds to wait for memory that other programs hold. Then weights that have no room are
  // streamed; where that will not do, the run fails with HEDDLE_OUT_OF_MEMORY.
  double memory_wait_seconds = 0;
  // A file that the run is kept in for Engine::resume(): written whole or not at all, at every so
  // many boundaries between steps of samplers, when a node has ended that called a model or wrote
  // files, and when the run releases its memory. Removed when it has succeeded, unless whoever asks
  // keeps_checkpoint. Empty: none. Hashes of model files stay in EngineOptions::cache_dir.
  std::filesystem::path checkpoint = {};
  unsigned checkpoint_every = 1;
  bool keeps_checkpoint = false;
  std::string checkpoint_note = {};       // is kept with it
  std::optional<Fidelity> fidelity = {};  // nothing: EngineOptions::fidelity
  bool anew = false;  // takes no result that is kept of earlier runs: its own take their place
};

// Model files are mapped. So that one which is cut short fails the run that reads it, and not the
// process, the first installs a handler for SIGBUS; other faults go to the handler before it. A
// program that installs one later hands what is not its own to the one that sigaction() gave back.
class Engine {
 public:
  explicit Engine(EngineOptions options = {});  // loads plugins, opens devices
  ~Engine();                                    // cancels and joins every run
  Engine(const Engine&) = delete;

  // ComfyUI's API format, the form that its interface saves, or a picture or video with either.
  Workflow load(const std::filesystem::path&) const;
  Workflow parse(std::string_view json, std::string_view name = "workflow") const;
  // One that was read without an engine: now set() knows the types that its classes declare.
  Workflow adopt(Workflow) const;
  // In the API format. `object_info`: texts of /object_info that count before plugins, last first.
  std::string convert(const Workflow&, const std::vector<std::string>& object_info = {}) const;

  // All problems of a workflow, a line each; empty: it can run.
  struct Problems {
    std::vector<std::string> errors, warnings;
    std::vector<std::string> outputs;  // ids of the nodes that StartOptions::partly would run for
    std::string answer;       // ComfyUI's, JSON: "node_errors"; "error" where no output can run
    std::size_t lacking = 0;  // so many errors, the first, name what is not there, each once
  };
  // Takes the tensors of inputs as start() does, and gives them back before the call returns.
  Problems check(const Workflow&, Inputs = {}) const;
  std::string plan(const Workflow&, Inputs = {}) const;  // as text; throws what check() finds
  std::string plan_json(const Workflow&, Inputs = {}) const;
  // The least budget of each device with which the workflow gives the bytes that it always gives,
  // by node and why; beside it, where that is less, the least with which a node works in tiles. As
  // text, or as JSON: "min_bytes" and "tiled_min_bytes".
  std::string plan_min_memory(const Workflow&, bool as_json = false) const;
  std::vector<PlannedCall> planned_calls(
      const Workflow&, Inputs = {}) const;                   // what plan() tells of calls of models
  std::string plan_dot(const Workflow&, Inputs = {}) const;  // as a drawing, for Graphviz
  Run start(const Workflow&, StartOptions = {});
  // Goes on with a run of another process, on devices of the kinds that it was on: the results are
  // those of a run that was never stopped. Its inputs are those that it was begun with; `fetch` and
  // all else is asked for anew. Throws for what would give another picture, naming it: another
  // build of a plugin, a model file with another content, another kind of device.
  Run resume(const RunCheckpoint&, StartOptions = {});

  // Measures the devices and the links between them; gives the text of a costs file
  // (EngineOptions::costs), which keeps what the engine's own says of other devices. Seconds for
  // each device. Throws while a run is under way; no run starts meanwhile.
  std::string tune(const std::function<void(const std::string&)>& progress = {});

  std::vector<DeviceInfo> devices() const;
  std::string devices_json() const;
  MemoryReport host_memory() const;  // CPU devices have parts of it
  // Which devices get work; `device` names one or several, as EngineOptions::devices. A device that
  // is disabled gets nothing new; runs that are planned on it and have begun finish there, others
  // are planned again. What it holds stays.
  void enable(std::string_view device);
  void disable(std::string_view device);
  // Disables it; when the runs that have it are over it gives back all that it holds: weights,
  // cached values, pools, pinned memory, streams and the context of its driver (which other code
  // of the process may share: with CUDA it is reset, unless it was there before this engine used
  // it). A run that has it and is paused, or is paused before it is over, lets go: the pause
  // becomes one of Run::pause_and_release(), so that resume() places the run anew, on devices that
  // are left; where none is, it fails. Between two nodes what it has made goes to host memory, as
  // far as it is still wanted; in a node that keeps no state the run goes on to that node's end
  // first. Only a run that waits to write behind a paused one (StartOptions::writes_after) keeps
  // the device. devices() tells "draining", then "drained". Waits until then, or so long; not to be
  // called by a run's observer without a time. False: it is not drained yet, or was enabled
  // meanwhile.
  bool drain(std::string_view device, std::optional<std::chrono::milliseconds> wait = {});

  // Evicts what nobody uses now, and gives the bytes that went back. device: a name or a kind; "":
  // all. model: as MemoryUsage::owner, or its first word, pinned or not, HEDDLE_CANCELLED where it
  // is being loaded for 10 s; "": all but what is pinned, cached values and free pool memory, too.
  std::uint64_t unload(std::string_view device = {}, std::string_view model = {});
  // Forgets the results that are kept for later runs, but those in cache_dir. Gives their bytes.
  std::uint64_t drop_cached();
  // Unloads what has been idle for EngineOptions::idle_seconds. The engine does so itself now and
  // then, unless EngineOptions::clock is given: then its time passes when this is called.
  void unload_idle();

  // The bytes of a picture file of the first picture in `file`, whatever format that has; a plugin
  // does it. Throws for what is no picture, is broken, or has more pixels than are allowed.
  std::string convert_picture(std::string_view file, const PictureConversion& conversion) const;

  std::vector<PluginInfo> plugins() const;
  std::vector<std::string> node_types() const;
  // The type that a class declares for an input: "INT", "INT,FLOAT"; and the folder of which it
  // chooses a file or a folder: "loras", "input". Empty when there is none.
  std::string input_type(std::string_view class_type, std::string_view input) const;
  std::string input_folder(std::string_view class_type, std::string_view input) const;
  std::string object_info(std::string_view class_type)
      const;  // JSON in the shape of ComfyUI's /object_info; "" : all classes
  std::string version() const;

  // Folders of model files that node types ask for or that are there ("loras"); of one, or of
  // "input", "output", "temp": its places, as they are searched, and the names of its files there.
  std::vector<std::string> folder_names() const;
  std::vector<std::filesystem::path> folder_places(std::string_view folder) const;
  std::vector<std::string> folder_files(std::string_view folder) const;
  struct Data;

 private:
  friend class Models;
  Run begin(std::shared_ptr<Run::Data> run);
  std::unique_ptr<Data> data_;
};

}  // namespace heddle
