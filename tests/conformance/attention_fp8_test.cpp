// Attention in 8 bits, on devices that are asked for it: how far it is from the exact one, against
// what its rounding explains (make_attention_fp8_goldens.py, which computes both in NumPy).
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>

#include "goldens.h"
#include "heddle/device.hpp"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

namespace {

struct Fp8AttentionCase {
  std::string name;
  std::int64_t queries, keys, heads, width;
  double factor;
};

const Fp8AttentionCase kFp8AttentionCases[] = {
    {"narrow", 20, 300, 2, 64, 1},
    {"wide", 12, 333, 2, 128, 1},
    {"sharp", 12, 270, 1, 128, 4},
    {"long", 8, 2500, 1, 64, 1},
};

// The operands of the script, from the same hash.
std::uint32_t mix(std::uint32_t n) {
  n = (n ^ (n >> 16)) * 0x85ebca6bu;
  n = (n ^ (n >> 13)) * 0xc2b2ae35u;
  return n ^ (n >> 16);
}

double number(std::uint32_t seed, std::int64_t i) {
  double sum = 0;
  for (std::uint32_t part = 0; part < 4; ++part)
    sum += mix(static_cast<std::uint32_t>(i) * 4 + part + seed * 0x1000000u) / 4294967296.0;
  return (sum - 2) * std::sqrt(3.0);
}

// One of three that lie beside each other in a row, as a fused projection leaves them. With a mean
// in each channel, `mean` times numbers of another seed.
HostTensor operand(std::uint32_t seed, heddle_dtype dtype, Shape shape, double factor, double mean,
                   std::uint32_t mean_seed) {
  const std::int64_t channels = shape[2] * shape[3], count = shape[1] * channels, batch = shape[0];
  HostTensor made = HostTensor::slice(dtype, std::move(shape), 8);
  for (std::int64_t i = 0; i < batch * count; ++i)
    made.set(i, number(seed, i % count) * factor +
                    (mean == 0 ? 0 : mean * number(mean_seed, i % channels)));
  return made;
}

OpCase case_of(const Fp8AttentionCase& one, std::uint32_t index, heddle_dtype dtype,
               std::int64_t batch = 1) {
  const std::uint32_t seed = 16 * index;
  const Shape keys{batch, one.keys, one.heads, one.width},
      queries{batch, one.queries, one.heads, one.width};
  return {.name = one.name,
          .op = HEDDLE_OP_ATTENTION,
          .in = {operand(seed, dtype, queries, one.factor, 0, 0),
                 operand(seed + 1, dtype, keys, 1, 2, seed + 3),
                 operand(seed + 2, dtype, keys, 1, 0.5, seed + 4), std::nullopt},
          .out = {HostTensor(dtype, queries)},
          .attrs = bytes_of(
              heddle_attention_attrs{1 / std::sqrt(static_cast<double>(one.width)), 0, 0})};
}

double rms_between(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < b.count(); ++i) sum += std::pow(a.get(i) - b.get(i), 2);
  return std::sqrt(sum / static_cast<double>(b.count()));
}

OptionMap with_fp8_attention() {
  OptionMap options = settings().options;
  options.insert_or_assign("attention_dtype", std::string("fp8_e4m3fn"));
  return options;
}

// Other devices may not know the option.
bool knows_fp8_attention(const Plugin& plugin) {
  const std::string kind = plugin.device().kind;
  const bool knows = opens_with(plugin, with_fp8_attention());
  BOOST_TEST((knows || (kind != "cpu" && kind != "cuda")), kind << " refuses the option");
  return knows;
}

// The first number of a head at a row of the first item, of bf16.
void make_nan(HostTensor& tensor, std::int64_t row, std::int64_t head) {
  const heddle_tensor_info& info = tensor.info();
  std::byte* const at =
      tensor.memory().data() + tensor.origin() + 2 * (row * info.stride[1] + head * info.stride[2]);
  at[0] = std::byte{0xc0};
  at[1] = std::byte{0x7f};
}

const heddle_kernel* fp8_kernel(const TestDevice& device, const OpCase& op_case) {
  for (const heddle_kernel* kernel : device.fitting(op_case))
    if (std::string(kernel->name) == "f8") return kernel;
  return nullptr;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_fp8)

BOOST_AUTO_TEST_CASE(its_error_is_that_of_the_rounding, *needs_ops({HEDDLE_OP_ATTENTION})) {
  const Plugin plugin(settings().plugin);
  if (!knows_fp8_attention(plugin)) return;
  const TestDevice device(plugin, with_fp8_attention());
  const std::map<std::string, HostTensor> goldens =
      read_tensors(std::filesystem::path(settings().goldens)
                       .replace_filename("attention_fp8.safetensors")
                       .string());
  std::uint32_t index = 0;
  for (const Fp8AttentionCase& one : kFp8AttentionCases) {
    OpCase op_case = case_of(one, index++, HEDDLE_BF16);
    const heddle_kernel* const kernel = fp8_kernel(device, op_case);
    if (kernel == nullptr) {  // the CPU always has it, a card may have none
      BOOST_TEST((std::string(device.desc().kind) != "cpu"), one.name << ": no kernel in 8 bits");
      continue;
    }
    BOOST_TEST((device.fitting(op_case).front() == kernel), "another kernel is preferred");
    device.run(op_case, kernel);
    const HostTensor& exact = goldens.at(one.name + ".exact");
    const double rms = goldens.at(one.name + ".rms").get(0),
                 found = rms_between(op_case.out[0], exact);
    BOOST_TEST_MESSAGE(one.name << ": " << found << ", NumPy's " << rms);
    BOOST_TEST(found <= 1.2 * rms, one.name << ": the error is " << found << ", NumPy's " << rms);
    // And it is in 8 bits: what is exact would be nearer than half of that.
    BOOST_TEST(found >= 0.5 * rms, one.name << ": the error is " << found << ", NumPy's " << rms);
    BOOST_TEST(op_case.out[0].untouched_outside());
  }
}

BOOST_AUTO_TEST_CASE(an_item_has_the_bytes_that_it_has_alone, *needs_ops({HEDDLE_OP_ATTENTION})) {
  const Plugin plugin(settings().plugin);
  if (!knows_fp8_attention(plugin)) return;
  const TestDevice device(plugin, with_fp8_attention());
  OpCase both = case_of(kFp8AttentionCases[1], 1, HEDDLE_BF16, 2);
  for (std::int64_t i = 0; i < both.in[1]->count() / 2; ++i)  // or both were the same
    both.in[1]->set(i, both.in[1]->get(i) * 1.5);
  const heddle_kernel* const kernel = fp8_kernel(device, both);
  if (kernel == nullptr) return;
  device.run(both, kernel);
  const std::vector<std::byte> first = both.out[0].elements();
  device.run(both, kernel);
  BOOST_TEST((both.out[0].elements() == first), "another run has other bytes");
  for (std::int64_t item = 0; item < 2; ++item) {
    OpCase alone = both;
    for (std::size_t i = 0; i < 3; ++i) alone.in[i] = both.in[i]->items(item, 1);
    alone.out[0] = both.out[0].items(item, 1);
    device.run(alone, kernel);
    BOOST_TEST((alone.out[0].elements() == both.out[0].items(item, 1).elements()),
               "item " << item << " alone has other bytes");
  }
  BOOST_TEST((both.out[0].items(0, 1).elements() != both.out[0].items(1, 1).elements()));
}

BOOST_AUTO_TEST_CASE(zeros_infinities_and_least_numbers, *needs_ops({HEDDLE_OP_ATTENTION})) {
  const Plugin plugin(settings().plugin);
  if (!knows_fp8_attention(plugin)) return;
  const TestDevice device(plugin, with_fp8_attention());
  OpCase op_case = case_of(kFp8AttentionCases[1], 1, HEDDLE_BF16);
  HostTensor &q = *op_case.in[0], &k = *op_case.in[1], &v = *op_case.in[2];
  const std::int64_t width = q.info().shape[3], row = q.info().shape[2] * width,
                     keys = k.info().shape[1];
  for (std::int64_t i = 0; i < row; ++i) q.set(i, 0);            // sees all keys alike
  for (std::int64_t i = 0; i < row; ++i) q.set(row + i, 1e-38);  // and so does this one
  for (std::int64_t i = 0; i < 64 * row; ++i) v.set(i, 0.25);    // of the first block
  const heddle_kernel* const kernel = fp8_kernel(device, op_case);
  if (kernel == nullptr) return;
  device.run(op_case, kernel);
  for (std::int64_t i = 0; i < row; ++i) {
    double mean = 0;
    for (std::int64_t j = 0; j < keys; ++j) mean += v.get(j * row + i) / static_cast<double>(keys);
    for (const std::int64_t query : {std::int64_t{0}, std::int64_t{1}})
      BOOST_TEST(std::fabs(op_case.out[0].get(query * row + i) - mean) <= 0.02);
  }
  // What is no number stays none: of its row, of its head.
  make_nan(q, 2, 0);
  device.run(op_case, kernel);
  BOOST_TEST(std::isnan(op_case.out[0].get(2 * row)));
  BOOST_TEST(std::isfinite(op_case.out[0].get(3 * row)));
  make_nan(k, 5, 1);
  device.run(op_case, kernel);
  BOOST_TEST(std::isfinite(op_case.out[0].get(3 * row)));
  BOOST_TEST(std::isnan(op_case.out[0].get(3 * row + width)));
}

BOOST_AUTO_TEST_CASE(other_attentions_are_as_without_it, *needs_ops({HEDDLE_OP_ATTENTION})) {
  const Plugin plugin(settings().plugin);
  if (!knows_fp8_attention(plugin)) return;
  const TestDevice device(plugin, with_fp8_attention());
  const Fp8AttentionCase& wide = kFp8AttentionCases[1];
  const auto in_8_bits = [&](const OpCase& op_case) {
    return fp8_kernel(device, op_case) != nullptr;
  };
  OpCase causal = case_of(wide, 1, HEDDLE_BF16), capped = causal, biased = causal;
  const bool has_kernel = in_8_bits(causal);
  causal.attrs = bytes_of(heddle_attention_attrs{0.125, 1, 0});
  capped.attrs = bytes_of(heddle_attention_attrs{0.125, 0, 50});
  biased.in[3] = HostTensor(HEDDLE_F32, {1, 1, wide.queries, wide.keys});
  const OpCase few = case_of({"few keys", 20, 255, 2, 128, 1}, 0, HEDDLE_BF16),
               odd = case_of({"another width", 20, 300, 2, 96, 1}, 0, HEDDLE_BF16);
  for (const OpCase* one :
       std::initializer_list<const OpCase*>{&causal, &capped, &biased, &few, &odd}) {
    BOOST_TEST(!in_8_bits(*one), one->name);
    BOOST_TEST(!device.fitting(*one).empty());
  }
  // The model's name tells devices that compute otherwise apart.
  const std::string name = device.info().name;
  BOOST_TEST((name.find("attention in fp8_e4m3fn") != std::string::npos) == has_kernel, name);
  const TestDevice plain(plugin, settings().options);
  BOOST_TEST((fp8_kernel(plain, case_of(wide, 1, HEDDLE_BF16)) == nullptr));
  BOOST_TEST((std::string(plain.info().name).find("fp8") == std::string::npos));
  BOOST_TEST(!opens_with(plugin, {{"attention_dtype", std::string("fp8")}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
