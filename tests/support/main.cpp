// The one main() of every unit test program.
#ifndef BOOST_TEST_DYN_LINK
#define BOOST_TEST_DYN_LINK
#endif
#define BOOST_TEST_MODULE heddle
#include <boost/test/unit_test.hpp>
