// What ABI 1.0 froze (v1/), held against the headers of today as C++ has them; frozen.c does the
// same in C. Tables keep their size. Records that begin with their size may grow at the end.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "heddle/abi/batch_ops.h"
#include "heddle/abi/delta_ops.h"
#include "heddle/abi/device.h"
#include "heddle/abi/frame_ops.h"
#include "heddle/abi/front_end.h"
#include "heddle/abi/joined_model.h"
#include "heddle/abi/model.h"
#include "heddle/abi/norm_ops.h"
#include "heddle/abi/ops.h"
#include "heddle/abi/picture_files.h"
#include "heddle/abi/row_ops.h"
#include "heddle/abi/send.h"
#include "heddle/abi/weight_change.h"

extern "C" const char* heddle_abi_renamed(void);

namespace {

#define TABLE(type, bytes) static_assert(sizeof(type) == (bytes), #type);
#define RECORD(type, bytes) static_assert(sizeof(type) >= (bytes), #type);
#define MEMBER(type, member, at, bytes)                                                        \
  static_assert(offsetof(type, member) == (at) && sizeof(((type*)nullptr)->member) == (bytes), \
                #type "." #member);
#define NUMBER(name, value) static_assert(std::int64_t(name) == std::int64_t(value), #name);
#include "tests/abi/v1/calls.inc"
#include "tests/abi/v1/devices.inc"
#include "tests/abi/v1/nodes_models.inc"
#include "tests/abi/v1/numbers.inc"

struct FrozenName {
  const char *macro, *today, *then;
};
const std::vector<FrozenName> kFrozenNames{
#define NAME(macro, text) {#macro, macro, text},
#include "tests/abi/v1/names.inc"
};

}  // namespace

BOOST_AUTO_TEST_CASE(names_of_services_extensions_kinds_and_ops_are_those_of_1_0) {
  BOOST_TEST(kFrozenNames.size() >= 70u);
  for (const FrozenName& name : kFrozenNames)
    BOOST_TEST(std::string(name.today) == name.then, name.macro);
  BOOST_TEST((heddle_abi_renamed() == nullptr));
}
