// Models measured by their shapes: the shapes hold as many numbers as were published, the result
// does not depend on how the model is placed, and agrees with plain loops.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>

#include "engine/device/device.h"
#include "engine/plugin/host.h"
#include "engine/plugin/loader.h"
#include "heddle/bench.hpp"
#include "heddle/diffusion/bench_shapes.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// Measured costs, so that nothing is measured first.
struct Measured {
  test::TemporaryFolder folder;
  const test::FakeControl control;

  EngineOptions with_costs(EngineOptions options) const {
    options.costs = folder.path() / "costs.json";
    std::ofstream(options.costs)
        << R"({"devices": {"none": {"flops_per_second": 1e9, "bytes_per_second": 1e9, "launch_seconds": 1e-6}}})";
    return options;
  }
  EngineOptions cpu(unsigned threads) const {
    EngineOptions options = with_costs(test::engine_options());
    options.threads = threads;
    options.compute = {{"cpu", "f32"}};
    return options;
  }
  EngineOptions fakes(std::vector<std::string> devices) const {
    EngineOptions options = with_costs(test::fake_engine_options(
        std::move(devices), R"({"flops": 1e9, "bandwidth": 1e15, "launch_seconds": 1e-12})"));
    options.compute = {{"fake", "f32"}};
    return options;
  }
};

BenchOptions small(const char* model) {
  BenchOptions bench;
  bench.model = model;
  bench.is_small = true;
  const std::string name = model;  // pictures are decoded and made larger in one step
  if (!name.ends_with("-vae") && !name.ends_with("-x4")) bench.steps = 4;
  return bench;
}

std::map<std::string, std::uint64_t> numbers_of_shapes() {
  const Engine engine(test::engine_options());  // holds the plugins
  std::map<std::string, std::uint64_t> counts;
  for (const engine::Provided& provided : engine::provided_by_all(HEDDLE_BENCH_SHAPES)) {
    const auto& desc = *static_cast<const heddle_bench_shape_desc*>(provided.desc);
    std::uint64_t& count = counts[desc.name];
    const heddle_bench_request request{sizeof request, 0, 0, 0, 0, 0};
    const heddle_bench_sink sink{sizeof sink, &count,
                                 [](void* to, const heddle_bench_tensor* tensor) {
                                   std::uint64_t product = 1;
                                   for (std::uint32_t i = 0; i < tensor->rank; ++i)
                                     product *= std::uint64_t(tensor->shape[i]);
                                   *static_cast<std::uint64_t*>(to) += product;
                                 },
                                 [](void*, const heddle_bench_workflow*) {}};
    engine::throw_status(desc.make(engine::plugin_host(), &desc, &request, &sink), desc.name);
  }
  return counts;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(bench, Measured)

// Of the published files (tests/plugins/goldens/true_files.json, unet_files.json, ltx_files.json),
// without scales of quantised ones and without what no model takes.
BOOST_AUTO_TEST_CASE(shapes_hold_as_many_numbers_as_were_published) {
  const std::map<std::string, std::uint64_t> published{
      {"flux-dev", 11'901'408'320},
      {"flux-schnell", 11'891'178'560},
      {"chroma", 8'899'983'424},
      {"chroma-radiance", 9'506'132'227},
      {"flux2-dev", 32'223'281'152},
      {"flux2-klein-9b", 9'078'581'248},
      {"flux2-klein-4b", 3'875'544'576},
      {"flux3-klein", 5'548'681'984},
      {"flux3-klein-base", 5'538'458'368},
      {"qwen-image", 20'430'401'088},
      {"qwen-image-layered", 20'430'407'232},
      {"qwen-image-2.1", 7'115'124'736},
      {"z-image", 6'154'908'736},
      {"lumina2", 2'609'769'152},
      {"krea2", 12'820'073'036},
      {"sd3-medium", 2'084'951'104},
      {"sd3.5-medium", 2'469'663'936},
      {"sd3.5-large", 8'146'280'768},
      {"sd15", 859'520'964},
      {"sdxl", 2'567'463'684},
      {"lotus", 867'556'804},
      {"sd-x4-upscaler", 473'398'020},
      {"wan-1.3b", 1'418'996'800},
      {"wan-14b", 14'288'491'584},
      {"wan2.2-5b", 4'999'787'712},
      {"ltxv-2b", 1'923'385'472},
      {"ltxv-13b", 13'042'569'344},
      {"ltx2-19b", 18'876'174'592},
      {"ltx2.3-22b", 21'005'004'544},
      {"ltx2.5-22b", 21'004'025'600},
      {"minimax-h3", 20'111'438'728},
      {"hunyuan-video", 12'821'012'544},
      {"hunyuan-video-1.5", 8'326'608'160},
      {"seedvr2-3b", 3'392'100'416},
      {"seedvr2-7b", 8'240'232'512},
      // Of the autoencoders of videos the decoders.
      {"flux-vae", 83'819'683},
      {"wan-vae", 73'295'603},
      {"wan2.2-vae", 555'051'580},
      {"hunyuan-video-vae", 146'136'339},
      {"seedvr2-vae", 150'601'731},
      {"ltx2.3-vae", 407'169'328},
      {"esrgan-x4", 16'697'987},
      {"span-x4", 1'840'488},
      {"swinir-x4", 11'715'559},
      {"hat-x4", 20'772'507},
      {"dat-x4", 14'886'579}};
  const auto counts = numbers_of_shapes();
  for (const auto& [name, count] : published) BOOST_TEST(counts.at(name) == count, name);
  for (const auto& [name, count] : counts)
    if (name != "tiny-scenes") BOOST_TEST(published.count(name) == 1u, name << ": " << count);
}

BOOST_AUTO_TEST_CASE(a_report_tells_of_every_step) {
  const BenchReport report = measure_model(fakes({"fake:0"}), small("tiny-scenes"));
  BOOST_TEST(report.step_seconds.size() == 4u);
  BOOST_TEST(report.branches == 2u);
  BOOST_TEST(report.devices == std::vector<std::string>{"fake:0"},
             boost::test_tools::per_element());
  BOOST_TEST(report.step_flops > 0);
  // By the simulated clock: the ops' arithmetic at the speed that was given, and nothing else takes
  // time.
  for (const double seconds : report.step_seconds)
    BOOST_TEST(seconds == report.step_flops * 1e-9, boost::test_tools::tolerance(0.2));
  // Inputs, and nothing of the weights.
  BOOST_TEST(report.moved_bytes < report.weight_bytes / 100);
  BOOST_TEST(report.peak_bytes.at("fake:0") > report.weight_bytes);
  BOOST_TEST(report.result.size() == 16u * 8 * 8);
}

// Of an autoencoder and an upscaler no block depends on a step: what they do is the one step.
BOOST_AUTO_TEST_CASE(a_model_without_steps_is_measured_as_one) {
  for (const char* const model : {"flux-vae", "esrgan-x4"}) BOOST_TEST_CONTEXT(model) {
      const BenchReport report = measure_model(fakes({"fake:0"}), small(model));
      BOOST_TEST(report.step_seconds.size() == 4u);
      for (const double seconds : report.step_seconds)
        BOOST_TEST(seconds == report.step_flops * 1e-9, boost::test_tools::tolerance(0.2));
    }
}

BOOST_AUTO_TEST_CASE(the_checksum_is_that_of_the_bytes_however_the_model_is_placed) {
  const BenchReport alone = measure_model(fakes({"fake:0"}), small("flux-dev"));
  BenchOptions divided = small("flux-dev");
  divided.parallel = "layers";
  const BenchReport layers = measure_model(fakes({"fake:0", "fake:1"}), divided);
  BOOST_TEST(layers.checksum == alone.checksum);
  BOOST_TEST(layers.parallel == "layers");
  BOOST_TEST(layers.devices.size() == 2u);
  BOOST_TEST(layers.moved_bytes > alone.moved_bytes);
  BenchOptions other = small("flux-dev");
  other.steps = 2;
  BOOST_TEST(measure_model(fakes({"fake:0"}), other).checksum != alone.checksum);
}

// Matrices divided: sums are added up in another order, so the last bits differ. Layers and sets
// change none.
BOOST_AUTO_TEST_CASE(qwen_image_is_divided_in_every_way) {
  const BenchReport alone = measure_model(fakes({"fake:0"}), small("qwen-image"));
  BOOST_TEST(alone.branches == 2u);
  for (const std::string mode : {"layers", "cfg", "sequence", "tensor"}) BOOST_TEST_CONTEXT(mode) {
      BenchOptions divided = small("qwen-image");
      divided.parallel = mode;
      const BenchReport report = measure_model(fakes({"fake:0", "fake:1"}), divided);
      BOOST_TEST(report.parallel == mode);
      BOOST_TEST(report.devices.size() == 2u);
      const double error = test::relative_error(report.result, alone.result);
      BOOST_TEST(error < 1e-5);
      if (mode == "layers" || mode == "cfg") BOOST_TEST(report.checksum == alone.checksum);
      if (mode == "tensor") BOOST_TEST(report.checksum != alone.checksum);
    }
}

BOOST_AUTO_TEST_CASE(weights_are_loaded_as_the_type_that_is_asked_for) {
  BenchOptions bench = small("flux-dev");
  const BenchReport drawn = measure_model(cpu(1), bench);
  bench.weight_dtype = "fp8_e4m3fn_fast";
  const BenchReport fp8 = measure_model(cpu(1), bench);
  BOOST_TEST(fp8.weight_bytes == drawn.weight_bytes);  // of the file
  BOOST_TEST(fp8.checksum != drawn.checksum);
  bench.weight_dtype = "fp7";
  BOOST_CHECK_THROW(measure_model(cpu(1), bench), EngineError);
  BenchOptions vae = small("flux-vae");
  vae.weight_dtype = "fp8_e4m3fn";
  BOOST_CHECK_EXCEPTION(measure_model(cpu(1), vae), EngineError, [](const EngineError& error) {
    return std::string(error.what()).find("loaded as they are drawn") != std::string::npos;
  });
}

// Whole numbers of 8 bits, widened or multiplied as they are: near each other, and the same bytes
// wherever the blocks stand.
BOOST_AUTO_TEST_CASE(matrices_are_drawn_and_multiplied_in_int8) {
  BenchOptions bench;
  bench.model = "tiny-scenes";
  bench.width = bench.height = 128;
  bench.steps = 2;
  const BenchReport drawn = measure_model(cpu(1), bench);
  for (const char* type : {"int8", "int8_convrot"}) BOOST_TEST_CONTEXT(type) {
      bench.weight_dtype = type;
      bench.parallel.clear();
      EngineOptions whole = cpu(1);
      const BenchReport widened = measure_model(whole, bench);
      BOOST_TEST(widened.weight_bytes < 0.6 * double(drawn.weight_bytes));
      whole.linear_dtype = "int8";
      const BenchReport multiplied = measure_model(whole, bench);
      BOOST_TEST(multiplied.checksum != widened.checksum);
      const double error = test::relative_error(multiplied.result, widened.result);
      BOOST_TEST_MESSAGE(type << ": relative error " << error);
      BOOST_TEST(error < 0.05);
      whole.reference_kernels = true;
      // The last bits of other kernels decide which way numbers are rounded: over some layers that
      // makes as much as rounding is at all.
      BOOST_TEST(test::relative_error(measure_model(whole, bench).result, widened.result) < 0.05);
      whole.reference_kernels = false;
      whole.devices = {"cpu:0", "cpu:1"};
      bench.parallel = "layers";
      const BenchReport apart = measure_model(whole, bench);
      BOOST_TEST(apart.devices.size() == 2u);
      BOOST_TEST(apart.checksum == multiplied.checksum);
    }
  BenchOptions narrow = small("flux-vae");
  narrow.weight_dtype = "int8";
  BOOST_CHECK_EXCEPTION(measure_model(cpu(1), narrow), EngineError, [](const EngineError& error) {
    return std::string(error.what()).find("whole blocks of 256") != std::string::npos;
  });
}

// Copying takes longer than computing, and from pageable memory four times as long.
BOOST_AUTO_TEST_CASE(streamed_steps_take_what_was_planned_from_pinned_memory_and_without) {
  EngineOptions options = test::fake_engine_options({"fake:0"}, R"({"flops": 1e12,
      "bandwidth": 1e15, "launch_seconds": 1e-12, "links": {
      "host": {"bandwidth": 4e8, "latency": 1e-7}, "pageable": {"bandwidth": 1e8, "latency": 1e-7}}})");
  options.compute = {{"fake", "f32"}};
  options.costs = folder.path() / "both.json";
  std::ofstream(options.costs) << R"({"devices": {"fake": {"launch_seconds": 1e-12}}, "links": {
      "host -> fake": {"bytes_per_second": 1e8, "latency_seconds": 1e-7},
      "pinned host -> fake": {"bytes_per_second": 4e8, "latency_seconds": 1e-7}}})";
  const BenchReport whole = measure_model(options, small("flux-dev"));
  options.budgets["fake:0"] = MemorySize{std::uint64_t{3000} << 10};  // of 8 MiB
  const BenchReport pinned = measure_model(options, small("flux-dev"));
  options.pinned = MemorySize{0};
  const BenchReport pageable = measure_model(options, small("flux-dev"));
  BOOST_TEST(pinned.checksum == whole.checksum);
  BOOST_TEST(pageable.checksum == whole.checksum);
  BOOST_TEST(pinned.median_seconds > 10 * whole.median_seconds);
  BOOST_TEST(pageable.median_seconds == 4 * pinned.median_seconds,
             boost::test_tools::tolerance(0.01));
  // How much passes in a step, placement estimates without the rounding of pools.
  BOOST_TEST(pageable.planned_seconds - pinned.planned_seconds ==
                 pageable.median_seconds - pinned.median_seconds,
             boost::test_tools::tolerance(0.2));
}

BOOST_AUTO_TEST_CASE(threads_change_no_byte_and_plain_loops_agree) {
  EngineOptions plain = cpu(2);
  plain.reference_kernels = true;
  for (const auto& [model, doc] : bench_models(cpu(1))) BOOST_TEST_CONTEXT(model) {
      const BenchReport one = measure_model(cpu(1), small(model.c_str())),
                        two = measure_model(cpu(2), small(model.c_str()));
      BOOST_TEST(one.checksum == two.checksum);
      const std::vector<float> wanted = measure_model(plain, small(model.c_str())).result;
      BOOST_TEST_REQUIRE(one.result.size() == wanted.size());
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        difference += (double(one.result[i]) - wanted[i]) * (double(one.result[i]) - wanted[i]);
        size += double(wanted[i]) * wanted[i];
      }
      BOOST_TEST(size > 0);
      BOOST_TEST(difference < 1e-8 * size);
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_measured_is_said) {
  const auto refusal = [&](BenchOptions bench) {
    return test::engine_refusal([&] { measure_model(cpu(1), bench); });
  };
  BOOST_TEST(refusal({.model = "flux-def"}).find("flux-dev") != std::string::npos);
  BenchOptions odd = small("flux-dev");
  odd.width = 100;
  BOOST_TEST(refusal(odd).find("100 x 64") != std::string::npos);
  odd = small("flux-vae");
  odd.steps = 2;
  BOOST_TEST(refusal(odd).find("one step") != std::string::npos);
  odd = small("flux-dev");
  odd.branches = 3;
  BOOST_TEST(refusal(odd).find("3 sets") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
