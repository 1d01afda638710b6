// The one main() of every unit test program.
#ifndef BOOST_TEST_DYN_LINK
#define BOOST_TEST_DYN_LINK
#endif
#define BOOST_TEST_NO_MAIN
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "tests/support/case_watch.h"

int main(int argc, char** argv) {
  // Where the processor has matrix tiles, the cpu device would compute in bf16 by default.
  setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
  const heddle::test::CaseWatch watch;
  return watch.exit_code(boost::unit_test::unit_test_main([] { return true; }, argc, argv));
}
