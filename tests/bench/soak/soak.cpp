// Minutes of mixed runs on all devices at once, which have to leave everything as it was.
//
//   soak [--minutes M] [--devices LIST] [--plugins PATH]... [--models DIR]... [--large SHAPE]
//        [--small] [--at-once N] [--take SIZE] [--seed N] [--options KIND=JSON] [--fault KIND]
//
// Several threads run workflows of two models, the one that ships and one whose weights are drawn
// (--large, as `heddle bench` calls it; none: no such): in several sizes, on one device, in layers,
// in sets or as the planner likes; some are cancelled at any time, some have a budget, and run by
// themselves then, because it is the device's and counts what others hold. A second program takes
// up to --take of each device meanwhile and gives it back, again and again.
//
// Afterwards there must have been no error, every work must have given the same bytes each time,
// and the devices must have as much free memory as before. The exit code is 0 then, else 1: what
// was wrong stands on lines that begin with "wrong:". --small is for devices that are not fast: a
// small model of the shape, small pictures, two steps. --fault breaks something on fake devices,
// so that it can be seen that it is noticed: "launch" (a kernel fails), "memory" (some of it is not
// given back), "bytes" (one result is another).
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "engine/plugin/loader.h"
#include "heddle/abi/base.h"
#include "heddle/engine.hpp"
#include "heddle/testing/fake_control.h"
#include "tests/bench/soak/jobs.h"
#include "tests/bench/soak/neighbour.h"

namespace heddle::soak {

namespace {

using engine::cat;
using Clock = std::chrono::steady_clock;

// A run that takes longer hangs.
constexpr std::chrono::minutes kPatience{5};
// Drivers and libraries keep a little more after some works than after others.
constexpr std::uint64_t kKept = std::uint64_t{256} << 20;

struct Options {
  double minutes = 7;
  std::vector<std::string> devices;
  std::vector<std::filesystem::path> plugins, models;
  std::map<std::string, std::string> device_options;
  std::string large = "flux-dev", fault;
  bool is_small = false, is_neighbour = false;
  unsigned at_once = 0;  // 0: two for each device
  std::uint64_t take = 0, seed = 1;
};

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What came of the runs. Thread-safe.
class Tally {
 public:
  // nullptr: it was cancelled.
  void add(const Job& job, double seconds, const std::vector<float>* result) {
    const std::string found =
        result == nullptr
            ? ""
            : engine::hex(engine::Hasher().add(std::as_bytes(std::span(*result))).finish());
    const std::lock_guard lock(mutex_);
    Kind& kind = kinds_[job.kind];
    ++kind.runs;
    kind.seconds += seconds;
    if (result == nullptr) {
      ++kind.cancelled;
      return;
    }
    const auto [known, is_new] = checksums_.try_emplace(job.work, found);
    if (!is_new) ++compared_;
    if (known->second != found)
      complain(cat(job.work, " is ", found, " (", job.kind, "), was ", known->second));
  }
  void wrong(const std::string& what) {
    const std::lock_guard lock(mutex_);
    complain(what);
  }
  void print(double seconds) const {
    const std::lock_guard lock(mutex_);
    unsigned runs = 0, cancelled = 0;
    for (const auto& [name, kind] : kinds_) {
      std::printf("%6u %-56s %8.2f s each, %u cancelled\n", kind.runs, name.c_str(),
                  kind.seconds / kind.runs, kind.cancelled);
      runs += kind.runs;
      cancelled += kind.cancelled;
    }
    std::printf("%u runs in %.0f s, %u of them cancelled; %zu works, compared %u times; %u wrong\n",
                runs, seconds, cancelled, checksums_.size(), compared_, wrong_);
  }
  bool is_good() const {
    const std::lock_guard lock(mutex_);
    return wrong_ == 0 && compared_ > 0;
  }

 private:
  struct Kind {
    unsigned runs = 0, cancelled = 0;
    double seconds = 0;
  };
  void complain(const std::string& what) {
    ++wrong_;
    std::printf("wrong: %s\n", what.c_str());
    std::fflush(stdout);
  }
  mutable std::mutex mutex_;
  std::map<std::string, Kind> kinds_;             // mutex_
  std::map<std::string, std::string> checksums_;  // mutex_; by work
  unsigned compared_ = 0, wrong_ = 0;             // mutex_
};

void run(Engine& engine, const Job& job, Tally& tally) {
  const auto begin = Clock::now();
  try {
    Run run = engine.start(workflow_of(job, engine),
                           {.fetch = {job.output}, .among_many = job.among_many});
    if (job.cancel_after >= 0 &&
        !run.wait_for(std::chrono::milliseconds(std::int64_t(1000 * job.cancel_after))))
      run.cancel();
    if (!run.wait_for(kPatience)) {
      std::printf("wrong: %s (%s) hangs\n", job.work.c_str(), job.kind.c_str());
      std::fflush(stdout);
      std::_Exit(1);  // nobody can wait for it
    }
    const std::vector<float> result = run.wait().floats(job.output, job.field);
    tally.add(job, since(begin), &result);
  } catch (const EngineError& error) {
    if (error.code() == HEDDLE_CANCELLED && job.cancel_after >= 0)
      tally.add(job, since(begin), nullptr);
    else
      tally.wrong(cat(job.work, " (", job.kind, "): ", error.what()));
  }
}

// Bytes that are free on each device when the engine has evicted everything.
std::map<std::string, std::uint64_t> free_bytes(Engine& engine, Tally& tally) {
  engine.unload();
  std::map<std::string, std::uint64_t> bytes;
  for (const DeviceInfo& device : engine.devices()) {
    if (device.memory_ours > 0)
      tally.wrong(cat(device.id, ": ", engine::format_bytes(device.memory_ours),
                      " are held for nothing: ",
                      device.memory.held.empty() ? "pools" : device.memory.held.front().kind));
    // Host memory is everybody's: there only what is ours counts.
    if (device.kind != "cpu") bytes[device.id] = device.memory_free;
  }
  return bytes;
}

const heddle_fake_control& fakes() {
  for (const engine::Provided& provided : engine::provided_by_all(HEDDLE_FAKE_CONTROL))
    return *static_cast<const heddle_fake_control*>(provided.desc);
  throw engine::Error(engine::Code::not_found, "--fault is for fake devices, and there are none");
}

void add_fault(const std::string& fault, Tally& tally, const Job& job) {
  if (fault == "launch") {
    fakes().fail_launch(0, 500);
  } else if (fault == "memory") {
    fakes().set_foreign_bytes(0, 2 * kKept);
  } else if (fault == "bytes") {
    const std::vector<float> other{1};
    tally.add(job, 0, &other);
  } else if (!fault.empty()) {
    throw engine::Error(engine::Code::invalid_argument, cat("there is no --fault ", fault));
  }
}

int soak(const Options& options) {
  EngineOptions engine_options;
  engine_options.plugin_dirs = options.plugins;
  engine_options.devices = options.devices;
  engine_options.device_options = options.device_options;
  engine_options.cache_bytes = 1;    // every run computes
  engine_options.degrade_after = 0;  // a device that fails is to fail, and not to be left out
  JobOptions job_options{{},
                         options.large == "none" ? "" : options.large,
                         options.is_small,
                         options.is_small ? 0.5 : 3};
  {
    const Engine engine(engine_options);
    for (const DeviceInfo& device : engine.devices()) job_options.devices.push_back(device.id);
  }
  const unsigned at_once =
      options.at_once > 0 ? options.at_once : 2 * unsigned(job_options.devices.size());
  const Engine holds_plugins(engine_options);
  Jobs jobs(job_options, options.seed);
  engine_options.model_dirs = options.models;
  for (const std::filesystem::path& folder : jobs.model_dirs())
    engine_options.model_dirs.push_back(folder);
  Engine engine(engine_options);
  Tally tally;
  // What libraries load with a first use stays, and what each work makes is known from here on.
  for (const Job& job : jobs.first()) run(engine, job, tally);
  const auto before = free_bytes(engine, tally);
  std::printf("%zu works known, %u at once on %s\n", jobs.first().size(), at_once,
              engine::join(job_options.devices, ", ").c_str());
  std::fflush(stdout);

  std::vector<std::filesystem::path> plugins;
  for (const PluginInfo& plugin : engine.plugins())
    if (plugin.refused.empty()) plugins.emplace_back(plugin.path);
  Neighbour neighbour({plugins, job_options.devices, options.take, options.seed});
  add_fault(options.fault, tally, jobs.first().front());
  const auto begin = Clock::now();
  std::mutex drawing;
  std::shared_mutex running;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < at_once; ++t)
      threads.emplace_back([&] {
        while (since(begin) < 60 * options.minutes) {
          std::unique_lock turn(drawing);
          const Job job = jobs.next();
          std::unique_lock alone(running, std::defer_lock);
          std::shared_lock beside(running, std::defer_lock);
          // Nobody begins anything before this has begun.
          if (job.budget > 0) {
            alone.lock();
            engine.unload();  // a budget below what pools still hold is refused
          } else {
            beside.lock();
          }
          turn.unlock();
          run(engine, job, tally);
        }
      });
  }
  const double seconds = since(begin);
  if (const std::string fault = neighbour.end(); !fault.empty()) tally.wrong(fault);
  if (options.fault == "memory") add_fault(options.fault, tally, {});

  const auto after = free_bytes(engine, tally);
  for (const auto& [device, bytes] : before) {
    const std::uint64_t now = after.at(device);
    std::printf("%s: %s free before, %s after\n", device.c_str(),
                engine::format_bytes(bytes).c_str(), engine::format_bytes(now).c_str());
    if (now + kKept < bytes) tally.wrong(cat(device, ": memory has not come back"));
  }
  tally.print(seconds);
  return tally.is_good() ? 0 : 1;
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--small" || name == "--neighbour") {
      (name == "--small" ? options.is_small : options.is_neighbour) = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    const std::size_t sign = value.find('=');
    if (name == "--minutes")
      options.minutes = std::stod(value);
    else if (name == "--devices")
      options.devices = parts_of(value);
    else if (name == "--plugins")
      options.plugins.emplace_back(value);
    else if (name == "--models")
      options.models.emplace_back(value);
    else if (name == "--large")
      options.large = value;
    else if (name == "--at-once")
      options.at_once = unsigned(std::stoul(value));
    else if (name == "--take")
      options.take = engine::parse_bytes(value).value();
    else if (name == "--seed")
      options.seed = std::stoull(value);
    else if (name == "--fault")
      options.fault = value;
    else if (name == "--options" && sign != std::string::npos)
      options.device_options[value.substr(0, sign)] = value.substr(sign + 1);
    else
      throw engine::Error(engine::Code::invalid_argument, cat("what is ", name, " ", value, "?"));
  }
  return options;
}

}  // namespace

}  // namespace heddle::soak

int main(int argc, char** argv) {
  using namespace heddle::soak;
  try {
    const Options options = options_of(argc, argv);
    if (options.is_neighbour)
      return be_neighbour({options.plugins, options.devices, options.take, options.seed});
    return soak(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 2;
  }
}
