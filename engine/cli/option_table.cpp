#include "engine/cli/option_table.h"

#include <algorithm>

namespace heddle::cli {
namespace {

constexpr std::uint32_t kFlows = kRun | kPlan;
constexpr std::uint32_t kGoing = kFlows | kResume;
constexpr std::uint32_t kRuns = kGoing | kServe;
constexpr std::uint32_t kUsers = kRuns | kDevices | kBench;
constexpr std::uint32_t kAsking = kSubmit | kPs | kQueue | kModels;  // a server
constexpr std::uint32_t kAll = kRuns | kNodes | kDevices | kPlugins | kTune | kBench | kConvert;

constexpr OptionSpec kOptions[] = {
    {"set", OptionKind::assignments, "NODE.INPUT=VALUE",
     "give an input another value; 1..8 or [3,5,8] on a number makes several runs, or jobs",
     kFlows | kSubmit | kRunThere},
    {"place", OptionKind::pairs, "NODE=DEVICE",
     "run a node on this device, kind of device or list of devices", kFlows},
    {"parallel", OptionKind::pairs, "NODE=MODE",
     "run a model on several devices in parallel: layers, cfg, data, sequence, tensor, none; or "
     "combined: cfg+sequence",
     kFlows},
    {"only", OptionKind::words, "NODE",
     "run only this node that saves or shows something, and what it needs; several with commas",
     kFlows | kSubmit | kRunThere},
    {"fidelity", OptionKind::word, "exact|rounding",
     "divide models only in ways that keep every byte (default), or also in faster ones that "
     "change the rounding",
     kFlows | kBench},
    {"devices", OptionKind::words, "LIST",
     "devices to use, comma-separated: auto (the default: all of the best kind), cuda, cuda:1, a "
     "UUID, "
     "a PCI address",
     kAll},
    {"budget", OptionKind::pairs, "DEVICE=SIZE",
     "memory to use at most, of a device or each of a kind: cuda:0=14GiB, cuda=60%", kUsers},
    {"reserve", OptionKind::pairs, "DEVICE=SIZE",
     "memory to leave free for other programs: cuda=1GiB; host=2GiB of host memory", kUsers},
    {"host-budget", OptionKind::size, "SIZE",
     "host memory to use at most, CPU devices included (default: half less 2 GB, at least 4 GB)",
     kUsers},
    {"host-floor", OptionKind::size, "SIZE",
     "host memory that has to be there for a run to begin beside others (default: 64MiB)", kUsers},
    {"pinned", OptionKind::size, "SIZE",
     "host memory to pin for devices at most, of the host budget (default: half of it)", kUsers},
    {"models", OptionKind::paths, "DIR",
     "a folder that holds checkpoints/, diffusers/, ...; searched before the program's own",
     kAll | kFetch},
    {"comfyui", OptionKind::path, "DIR",
     "a ComfyUI folder: its models, input, output, user and extra_model_paths.yaml are used",
     kAll | kFetch | kRunThere},
    {"plugins", OptionKind::paths, "DIR",
     "a folder of plugins; they replace those of the same id, and node types those of the same "
     "name",
     kAll},
    {"isolate", OptionKind::words, "PLUGIN",
     "run the nodes of this plugin in worker processes, so that a crash ends one run alone; "
     "several "
     "with commas",
     kAll},
    {"isolate-timeout", OptionKind::number, "SECONDS",
     "end a call of an isolated node that works longer (default: no limit)", kAll},
    {"isolate-memory", OptionKind::word, "SIZE",
     "address space of a worker, beyond what it starts with (default: no limit)", kAll},
    {"isolate-sandbox", OptionKind::flag, "", "workers have no network and start no programs",
     kAll},
    {"python-nodes", OptionKind::paths, "DIR",
     "nodes in Python: a folder of packs, as ComfyUI's custom_nodes, or a pack", kAll},
    {"python", OptionKind::path, "FILE",
     "the Python that they run in (default: that of $VIRTUAL_ENV, else python3)", kAll},
    {"object-info", OptionKind::paths, "FILE",
     "definitions of node types that no plugin brings, as ComfyUI's /object_info gives them",
     kConvert},
    {"input", OptionKind::path, "DIR",
     "where pictures to load are (default: input, or that of --comfyui)", kAll | kRunThere},
    {"output", OptionKind::path, "DIR",
     "where files are written (default: output, or that of --comfyui)", kRuns | kRunThere},
    {"cache", OptionKind::path, "DIR",
     "where results are kept between runs, in conditionings/; none: nowhere (default: "
     "$XDG_CACHE_HOME/heddle)",
     kRuns},
    {"cache-limit", OptionKind::word, "SIZE",
     "bytes of results to keep there at most (default: 1GiB)", kRuns},
    {"prompt-limit", OptionKind::word, "SIZE", "bytes of a prompt at most (default: 64KiB)", kRuns},
    {"costs", OptionKind::path, "FILE",
     "measured costs to place by, as tune writes them (default: $XDG_CACHE_HOME/heddle/costs.json)",
     kRuns | kTune | kBench},
    {"threads", OptionKind::number, "N", "threads of a CPU device (default: all cores)", kAll},
    {"compute", OptionKind::pairs, "DEVICE=TYPE",
     "type to compute with on a device or kind: f32, bf16 or fp16", kAll},
    {"attention-dtype", OptionKind::word, "TYPE",
     "what attentions multiply in: default (the compute type), or fp8_e4m3fn, 8 bits with a scale "
     "of each block, where a device has it",
     kAll},
    {"linear-dtype", OptionKind::word, "TYPE",
     "what matrices of int8 files are multiplied in: default (widened to the compute type), or "
     "int8: whole numbers with a scale of each row, where a device has it",
     kAll},
    {"options", OptionKind::assignments, "KIND=JSON",
     "options of a kind of device, as its plugin knows them: cpu={\"threads\": 2}", kAll},
    {"memory-wait", OptionKind::number, "SECONDS",
     "wait so long for memory that other programs hold, before weights are streamed (default: 0)",
     kGoing},
    {"checkpoint-every", OptionKind::number, "N",
     "write a checkpoint at every Nth step of a node that has steps, for resume (default: none; 1 "
     "with "
     "--checkpoint); serve: of every job, beside the queue",
     kGoing | kServe},
    {"checkpoint", OptionKind::path, "FILE",
     "the file of the checkpoint (default: NAME.checkpoint, of the workflow's name; resume: the "
     "one "
     "that it is given)",
     kGoing},
    {"trace", OptionKind::path, "FILE", "write a timeline of the run, for a trace viewer", kGoing},
    {"svg", OptionKind::path, "FILE", "draw the plan with Graphviz; NAME.dot: only write its input",
     kPlan},
    {"min-memory", OptionKind::flag, "", "print the minimum memory that the workflow needs", kPlan},
    {"listen", OptionKind::words, "ADDRESS",
     "where to listen, comma-separated (default: 127.0.0.1): addresses, and unix:/path for a "
     "socket; others than those of this machine alone need --api-key, --api-keys or --insecure",
     kServe},
    {"port", OptionKind::number, "N", "the port to listen at (default: 8188)", kServe},
    {"front-end", OptionKind::word, "DIR",
     "a folder with ComfyUI's front end to serve; pip: where pip installed "
     "comfyui-frontend-package",
     kServe},
    {"queue", OptionKind::path, "FILE",
     "where jobs are kept (default: $XDG_STATE_HOME/heddle/queue.db)", kServe},
    {"user", OptionKind::path, "DIR",
     "where the front end's settings and workflows are kept (default: that of --comfyui, or "
     "$XDG_STATE_HOME/heddle/user)",
     kServe},
    {"jobs", OptionKind::number, "N", "jobs that run at a time at most (default: 4)", kServe},
    {"traces", OptionKind::path, "DIR",
     "write a timeline of every job there, for a trace viewer: ID.json", kServe},
    {"packs", OptionKind::path, "DIR",
     "a folder of Python packs, as ComfyUI's custom_nodes: the front end gets their scripts and "
     "workflows, though none of their nodes runs here (default: none)",
     kServe},
    {"preview-method", OptionKind::word, "METHOD",
     "how pictures of jobs under way are made: none, auto (by a linear map), or taesd, by a small "
     "decoder where the models folders have its file (default: auto); a job may ask for another",
     kServe},
    {"interrupted", OptionKind::word, "WHAT",
     "jobs that ran when the server ended: resume from their checkpoints, run again, or fail "
     "(resume, again, fail; default: resume)",
     kServe},
    {"shutdown-seconds", OptionKind::number, "N",
     "how long jobs have to come to their next checkpoint when the server is told to end "
     "(default: 10)",
     kServe},
    {"keep-temp-days", OptionKind::number, "N",
     "remove temporary files, as previews are, after so many days (default: they stay)", kServe},
    {"keep-temp-size", OptionKind::size, "SIZE",
     "bytes of all temporary files; beyond, the oldest go", kServe},
    {"keep-output-days", OptionKind::number, "N",
     "remove files of the output folder after so many days (default: they stay)", kServe},
    {"keep-output-size", OptionKind::size, "SIZE",
     "bytes of the output folder; beyond, its oldest files go", kServe},
    {"keep-history-days", OptionKind::number, "N",
     "forget jobs so many days behind their end (default: the last 10,000 stay)", kServe},
    {"keep-free", OptionKind::size, "SIZE",
     "keep so much of the disk free: temporary files go first, then output, if one of its limits "
     "is "
     "given",
     kServe},
    {"api-key", OptionKind::word, "KEY",
     "a key that every request has to bring; better as HEDDLE_API_KEY, which others cannot read",
     kServe | kAsking | kDevices | kRun | kRunThere},
    {"api-keys", OptionKind::path, "FILE",
     "a file of the keys of users and administrators, as `heddle key` writes it; serve: each "
     "request has to bring one of them",
     kServe | kKey},
    {"admin", OptionKind::flag, "", "add: a key that may do everything", kKey},
    {"tls-cert", OptionKind::path, "FILE",
     "serve over TLS with this certificate and those that lead to its root, in PEM", kServe},
    {"tls-key", OptionKind::path, "FILE", "the private key of --tls-cert, in PEM", kServe},
    {"path-prefix", OptionKind::word, "PATH",
     "the path under which a proxy serves this server, as /studio", kServe},
    {"trusted-proxy", OptionKind::words, "ADDRESS",
     "proxies whose X-Forwarded-* headers are believed, comma-separated: addresses, networks as "
     "10.0.0.0/8, or unix, for all who come over a Unix socket",
     kServe},
    {"rate-limit", OptionKind::number, "N",
     "requests a minute of a key, or of an address without one; further ones get 429 (default: no "
     "limit)",
     kServe},
    {"log-format", OptionKind::word, "text|json", "how the log is written (default: text)", kServe},
    {"log-requests", OptionKind::flag, "", "log every request, with its X-Request-Id", kServe},
    {"enable-cors-header", OptionKind::word, "ORIGIN",
     "let pages of this site ask, too, as https://a.example; *: of all sites", kServe},
    {"multi-user", OptionKind::flag, "", "a folder for each user, whom the front end asks for",
     kServe},
    {"insecure", OptionKind::flag, "", "listen where others can ask, without a key", kServe},
    {"server", OptionKind::word, "URL",
     "the server to ask (default: http://127.0.0.1:8188; devices and run: this machine, without a "
     "server; run takes it from the command line alone)",
     kAsking | kDevices | kRun | kRunThere},
    {"priority", OptionKind::word, "N", "jobs of higher priority run first (default: 0)",
     kSubmit | kQueue},
    {"front", OptionKind::flag, "", "before all other jobs of its priority; move: before all",
     kSubmit | kQueue},
    {"back", OptionKind::flag, "", "move: behind all other jobs", kQueue},
    {"before", OptionKind::word, "ID", "move: before this job", kQueue},
    {"from-start", OptionKind::flag, "", "retry: without results that are kept of earlier jobs",
     kQueue},
    {"tag", OptionKind::word, "TAG", "a name that jobs can be found by; cancel: jobs of it",
     kSubmit | kQueue},
    {"batch", OptionKind::word, "ID", "jobs that belong together; cancel: jobs of it",
     kSubmit | kQueue},
    {"repeats", OptionKind::number, "N", "so many jobs of each workflow (default: 1)", kSubmit},
    {"zip", OptionKind::flag, "",
     "of several lists of --set take the first values together, then the second ones, instead of "
     "every combination",
     kSubmit},
    {"background", OptionKind::flag, "",
     "behind all jobs that are not, and paused while they need its place; for half an hour",
     kSubmit},
    {"paused", OptionKind::flag, "", "the job waits until it is resumed", kSubmit},
    {"wait", OptionKind::flag, "", "wait until the jobs have ended, and tell what they made",
     kSubmit},
    {"all", OptionKind::flag, "", "cancel: all jobs", kQueue},
    {"but-running", OptionKind::flag, "", "cancel: only those that wait", kQueue},
    {"json", OptionKind::flag, "", "JSON on stdout: one object a line, for programs",
     kAll | kFetch | kAsking | kRunThere | kKey},
    {"log-level", OptionKind::word, "debug|info|warning|error",
     "leave out messages of the log below this level (default: info)",
     kAll | kFetch | kAsking | kRunThere | kKey},
    {"quiet", OptionKind::flag, "", "no progress and no summary (plan: no warnings)",
     kGoing | kTune | kBench | kFetch | kSubmit | kRunThere | kKey},
};

}  // namespace

std::span<const OptionSpec> all_options() { return kOptions; }

const OptionSpec* find_option(std::string_view name) {
  const auto found = std::ranges::find(kOptions, name, &OptionSpec::name);
  return found == std::end(kOptions) ? nullptr : &*found;
}

std::string environment_name(const OptionSpec& option) {
  std::string name = "HEDDLE_";
  for (const char c : option.name) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return name;
}

}  // namespace heddle::cli
