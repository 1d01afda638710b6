// Every allocation and every copy fails once, one after another, in whole runs of a model of three
// blocks: a run either gives the bytes that it always gives or ends with an error that says what
// failed where. Nothing is left of it, and the next run is right.
#include <boost/test/unit_test.hpp>
#include <optional>

#include "engine/base/error.h"
#include "engine/files/weight_patches.h"
#include "engine/graph/model.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/counting_allocator.h"
#include "tests/support/layers_model.h"
#include "tests/support/memory_use.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::CallPlacement;
using engine::CallSpec;
using engine::Code;
using engine::Model;
using engine::Node;
using engine::ParallelMode;

BOOST_AUTO_TEST_SUITE(every_fault)

namespace {

constexpr int kWide = 80, kDeep = 3;  // weights of 25 KiB: too large to stay in any case
constexpr std::uint64_t kMemory = 1 << 20, kAll = 1 << 20;
constexpr int kSteps = 2, kSets = 2;
// The other device is idle, and would else lend its memory: then no weight is made in a step.
constexpr const char* kLendsNothing = R"("peer": false)";

CallPlacement alone(const Model&) { return {ParallelMode::none, {0}, {}, {}, {}}; }
CallPlacement halves(const Model& model) {
  CallPlacement placement{ParallelMode::layers, {0, 1}, {}, {}, {}};
  const std::size_t count = model.graph->nodes.size();
  for (std::size_t n = 0; n < count; ++n) placement.of_block.push_back(n < count / 2 ? 0 : 1);
  return placement;
}
CallPlacement two_sets(const Model&) { return {ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}}; }

struct Mode {
  CallPlacement (*parallelize)(const Model&);
  std::uint32_t devices;
  double part;          // of what a run takes that finds room for everything; 0: the least
  std::string options;  // of the fakes, besides their memory
  bool is_patched = false;
};

struct Fault {
  const char* name;
  std::function<void(std::uint32_t device, std::uint64_t nth)> set;
  Code code;      // of the error that it may end with
  bool survived;  // always
};

struct Counts {
  int struck = 0, survived = 0;
};

class Runs {
 public:
  explicit Runs(const Mode& mode)
      : mode_(mode),
        layers_({"fake:0", "fake:1"},
                engine::cat(R"({"memory": )", kMemory, mode.options.empty() ? "" : ", ",
                            mode.options, "}"),
                kWide, kDeep),
        flow_(layers_.flow(kSteps, kSets)) {
    if (mode.is_patched) patch();
    good_ = run();
    limit();
    BOOST_TEST_REQUIRE((run() == good_));
    before_ = held();
  }

  // The nth of all there are fails, for every n to the end, or as the stride goes.
  Counts check(const Fault& fault) {
    Counts counts;
    for (std::uint32_t device = 0; device < mode_.devices; ++device)
      for (std::uint64_t nth = first();; nth += test::kStride)
        BOOST_TEST_CONTEXT(fault.name << " number " << nth << " on fake:" << device) {
          held();  // nothing is there already
          control_->reset();
          fault.set(device, nth);
          const bool is_good = run_or_fail(fault, engine::cat("fake:", device));
          const bool has_struck = control_->faults(device) > 0;
          forget_faults();
          if (!has_struck) {
            BOOST_TEST(is_good);
            break;
          }
          ++counts.struck;
          counts.survived += is_good ? 1 : 0;
          check_next_run();
        }
    finish(fault, counts);
    return counts;
  }
  Counts check_host_memory() {
    const Fault fault{"allocation of host memory", {}, Code::out_of_memory, false};
    Counts counts;
    for (std::uint64_t nth = first();; nth += test::kStride)
      BOOST_TEST_CONTEXT(fault.name << " number " << nth) {
        held();
        host_.fail(nth);
        const bool is_good = run_or_fail(fault, "host memory");
        const bool has_struck = !host_.is_armed();
        host_.fail(0);
        if (!has_struck) {
          BOOST_TEST(is_good);
          break;
        }
        ++counts.struck;
        counts.survived += is_good ? 1 : 0;
        check_next_run();
      }
    finish(fault, counts);
    return counts;
  }

  const test::FakeControl& control() const { return control_; }

 private:
  std::vector<std::byte> run() {
    return layers_.runs.run(
        flow_, "loop", [this](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
          return mode_.parallelize(model);
        });
  }
  std::uint64_t first() { return std::uint64_t(test::first_of_stride(sweeps_++)); }
  test::MemoryInUse held() {
    layers_.used();
    return test::memory_in_use(layers_.runs.environment(), host_.live_bytes());
  }

  // Every weight is changed by a matrix of rank 2.
  void patch() {
    std::vector<test::FileTensor> tensors;
    std::vector<engine::WeightPatch> patches;
    const std::vector<float> up(kWide * 2, 0.02f), down(kWide * 2, -0.01f);
    tensors.push_back({"up", "F32", {kWide, 2}, test::bytes_of_floats(up)});
    tensors.push_back({"down", "F32", {2, kWide}, test::bytes_of_floats(down)});
    for (int l = 0; l < kDeep; ++l)
      patches.push_back({"up", "down", 0.5, {{engine::cat("layers.", l, ".weight")}}});
    const engine::Checkpoint file = engine::open_checkpoint(
        layers_.folder.write("patches.safetensors", test::safetensors_bytes(tensors)));
    const std::vector<std::byte> plain = run();
    auto& build = layers_.runs.environment().build_model;
    build = [old = build, file, patches](std::string_view role, const engine::Checkpoint& of,
                                         const heddle_value* config, const engine::Hints& hints) {
      auto changed = std::make_shared<Model>(*engine::get_model(*old(role, of, config, hints)));
      changed->patches =
          engine::WeightPatches::extend(nullptr, *changed->checkpoint, file, patches);
      changed->identity =
          engine::Hasher().add(changed->identity).add(changed->patches->identity()).finish();
      return engine::make_value(std::shared_ptr<const Model>(std::move(changed)));
    };
    BOOST_TEST_REQUIRE((run() != plain));
  }

  bool fits(std::uint32_t device, std::uint64_t bytes) {
    held();
    const engine::Ledger::Cap cap(layers_.state(device).ledger(), bytes);
    try {
      return run() == good_;
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == Code::out_of_memory), error.full());
      return false;
    }
  }
  // What each device may hold.
  void limit() {
    if (mode_.part >= 1) return;
    std::vector<std::uint64_t> limits;
    for (std::uint32_t d = 0; d < mode_.devices; ++d) {
      held();
      control_->reset();
      run();
      const std::uint64_t all = control_->peak_bytes(d);
      std::uint64_t least = 0, enough = all;
      while (enough - least > 256) {
        const std::uint64_t middle = (least + enough) / 2;
        (fits(d, middle) ? enough : least) = middle;
      }
      const std::uint64_t limit = std::max(enough, std::uint64_t(double(all) * mode_.part));
      // One that holds a single weight has nothing to stream.
      limits.push_back(limit < all - all / 8 ? limit : kMemory);
    }
    BOOST_TEST(std::ranges::min(limits) < kMemory);
    held();
    for (std::uint32_t d = 0; d < mode_.devices; ++d)
      caps_.emplace_back(layers_.state(d).ledger(), limits[d]);
    control_->reset();
    run();
    for (std::uint32_t d = 0; d < mode_.devices; ++d)
      BOOST_TEST(control_->peak_bytes(d) <= limits[d]);
  }

  // Whether the run is good. Otherwise it has ended with an error, which is as it should be.
  bool run_or_fail(const Fault& fault, const std::string& device) {
    try {
      const std::vector<std::byte> bytes = run();
      BOOST_TEST((bytes == good_), "other bytes");
      return true;
    } catch (const engine::Error& error) {
      const std::string text = error.full();
      BOOST_TEST(!fault.survived, text);
      BOOST_TEST((error.code() == fault.code), text);
      // The test itself reads what a run has made.
      BOOST_TEST((error.trail().empty() || text.find("node '") != std::string::npos), text);
      BOOST_TEST(text.find(device) != std::string::npos, text);
    } catch (const std::exception& error) {
      BOOST_ERROR("an exception that is no Error: " << error.what());
    }
    return false;
  }
  void forget_faults() {
    for (std::uint32_t d = 0; d < 2; ++d) {
      layers_.state(d).settle();
      BOOST_TEST(control_->freed_in_use(d) == 0u);
    }
    control_->reset();
  }
  void check_next_run() {
    test::MemoryInUse left = held();
    // What failed work may still read stays until work on that device was waited for with success.
    left.host_bytes = before_.host_bytes;
    BOOST_TEST(left == before_);
    std::vector<std::byte> again;
    try {
      again = run();
    } catch (const std::exception& error) {
      BOOST_ERROR("the next run: " << error.what());
    }
    BOOST_TEST((again == good_));
    BOOST_TEST(held() == before_);
  }
  static void finish(const Fault& fault, const Counts& counts) {
    BOOST_TEST(counts.struck > 0);
    BOOST_TEST_MESSAGE("  " << fault.name << ": " << counts.struck << " faults, " << counts.survived
                            << " survived");
  }

  const Mode mode_;
  int sweeps_ = 0;
  const test::FakeControl control_;
  test::CountingAllocator host_;
  test::LayersModel layers_;
  const std::string flow_;
  std::vector<engine::Ledger::Cap> caps_;
  std::vector<std::byte> good_;
  test::MemoryInUse before_;
};

// All kinds of faults in a mode.
void check_every_fault(const Mode& mode) {
  Runs runs(mode);
  const test::FakeControl& control = runs.control();
  const auto allocations = [&](std::uint64_t times) {
    return [&control, times](std::uint32_t device, std::uint64_t nth) {
      control->fail_allocs(device, nth, times);
    };
  };
  // The driver is asked once more, after others have made room.
  runs.check({"allocation", allocations(1), Code::out_of_memory, true});
  const Counts twice = runs.check({"two allocations", allocations(2), Code::out_of_memory, false});
  // A session begins anew, with less; what the workflow's nodes bring themselves has no smaller
  // form.
  BOOST_TEST(2 * twice.survived >= twice.struck);
  runs.check({"all allocations from", allocations(kAll), Code::out_of_memory, false});
  runs.check({"copy",
              [&](std::uint32_t device, std::uint64_t nth) { control->fail_copy(device, nth); },
              Code::io, false});
  runs.check({"weight",
              [&](std::uint32_t device, std::uint64_t nth) { control->fail_weight(device, nth); },
              Code::io, false});
  runs.check({"refused call",
              [&](std::uint32_t device, std::uint64_t nth) { control->refuse(device, nth); },
              Code::io, false});
  runs.check_host_memory();
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_a_model_that_stays_on_its_device) {
  check_every_fault({alone, 1, 1, "", false});
}
BOOST_AUTO_TEST_CASE(of_a_model_with_room_for_sixty_percent) {
  check_every_fault({alone, 1, 0.6, kLendsNothing, false});
}
BOOST_AUTO_TEST_CASE(of_a_model_with_room_for_thirty_percent_if_that_will_do) {
  check_every_fault({alone, 1, 0.3, R"("shuffle": 1, "peer": false)", false});
}
BOOST_AUTO_TEST_CASE(of_a_model_with_the_least_room) {
  check_every_fault({alone, 1, 0, kLendsNothing, false});
}
BOOST_AUTO_TEST_CASE(of_a_patched_model_with_room_for_sixty_percent) {
  check_every_fault({alone, 1, 0.6, R"("shuffle": 2, "peer": false)", true});
}
BOOST_AUTO_TEST_CASE(of_layers_on_two_devices) {
  check_every_fault({halves, 2, 1, R"("shuffle": 3)", false});
}
BOOST_AUTO_TEST_CASE(of_streamed_layers_on_two_devices_without_a_way_between_them) {
  check_every_fault({halves, 2, 0.6, R"("peer": false)", false});
}
BOOST_AUTO_TEST_CASE(of_streamed_sets_on_two_devices) {
  check_every_fault({two_sets, 2, 0.6, R"("shuffle": 4)", false});
}

BOOST_AUTO_TEST_SUITE_END()
