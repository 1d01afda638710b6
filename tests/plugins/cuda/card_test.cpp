// What follows from a card's clocks and widths, held against NVIDIA's data sheets.
#include "plugins/cuda/card.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::cuda;

namespace {

// Dense products in bf16 with sums in f32, and the memory's bandwidth, as they are published.
struct Published {
  Card card;
  double flops, bytes;
};

Card card(const char* name, int capability, int multiprocessors, double mhz, double memory_mhz,
          int bits) {
  Card made;
  made.name = name;
  made.major = capability / 10;
  made.minor = capability % 10;
  made.multiprocessors = multiprocessors;
  made.clock = mhz * 1e6;
  made.memory_clock = memory_mhz * 1e6;
  made.memory_bits = bits;
  return made;
}

const Published kPublished[] = {
    {card("NVIDIA A100-SXM4-40GB", 80, 108, 1410, 1215, 5120), 312e12, 1555e9},
    {card("NVIDIA GeForce RTX 3090", 86, 82, 1695, 9751, 384), 71e12, 936e9},
    {card("NVIDIA RTX A6000", 86, 84, 1800, 8001, 384), 154.8e12, 768e9},
    {card("NVIDIA GeForce RTX 4090", 89, 128, 2520, 10501, 384), 165.2e12, 1008e9},
    {card("NVIDIA L40S", 89, 142, 2520, 9001, 384), 362e12, 864e9},
    {card("NVIDIA H100 80GB HBM3", 90, 132, 1830, 2619, 5120), 989e12, 3350e9},
    {card("NVIDIA B200", 100, 148, 1850, 3996, 8192), 2250e12, 8000e9},
    {card("NVIDIA GeForce RTX 5090", 120, 170, 2407, 14001, 512), 209.5e12, 1792e9},
};

bool has(const Card& of, const char* text) {
  return fallbacks_of(of).find(text) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(card_facts)

BOOST_AUTO_TEST_CASE(what_a_card_does_follows_from_its_clocks_and_widths) {
  for (const Published& p : kPublished) {
    BOOST_TEST_CONTEXT(p.card.name) {
      BOOST_TEST(flops_per_second(p.card, HEDDLE_BF16) == 0.75 * p.flops,
                 boost::test_tools::tolerance(0.06));
      BOOST_TEST(bytes_per_second(p.card) == 0.9 * p.bytes, boost::test_tools::tolerance(0.06));
    }
  }
  BOOST_TEST(flops_per_second(kPublished[0].card, HEDDLE_F32) == 0.75 * 19.5e12,
             boost::test_tools::tolerance(0.06));
  BOOST_TEST(bytes_per_second(Card()) == 0);  // unknown
}

BOOST_AUTO_TEST_CASE(a_card_tells_what_it_lacks_and_what_is_done_instead) {
  BOOST_TEST(fallbacks_of(kPublished[5].card) == "");  // 9.0, which this test is built for
  BOOST_TEST(architecture_of(kPublished[3].card) == "compute capability 8.9");
  for (const int newer : {6, 7})
    BOOST_TEST(has(kPublished[newer].card, "compiles the kernels from PTX"));
  BOOST_TEST(has(kPublished[3].card, "cublaslt widened"));
  BOOST_TEST(!has(kPublished[0].card, "compiles the kernels from PTX"));  // 8.0 is built, too
  BOOST_TEST(!has(kPublished[1].card, "compiles the kernels from PTX"));  // and runs on 8.6
  BOOST_TEST(!has(kPublished[3].card, "compiles the kernels from PTX"));  // and on 8.9
  BOOST_TEST(has(kPublished[6].card, "only where cuBLASLt has them"));
  BOOST_TEST(has(card("NVIDIA T4", 75, 40, 1590, 5001, 256), "not supported"));
  for (const Published& p : kPublished) BOOST_TEST(fallbacks_of(p.card).size() < 512u);
  BOOST_TEST(most_shared_bytes(kPublished[1].card) == 99u << 10);
  BOOST_TEST(most_shared_bytes(kPublished[5].card) == 227u << 10);
}

BOOST_AUTO_TEST_SUITE_END()
