#include "engine/device/device_desc.h"

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/device/kernel_table.h"
#include "heddle/abi/device_sharing.h"

namespace engine = heddle::engine;

namespace {

// Never called: a desc is only looked at.
heddle_device_desc complete_desc() {
  heddle_device_desc desc{};
  desc.size = sizeof desc;
  desc.kind = "test";
  desc.count = [] { return std::uint32_t{0}; };
  desc.open = [](const heddle_host*, heddle_device_index, const heddle_value*,
                 heddle_device**) -> heddle_status* { return nullptr; };
  desc.close = [](heddle_device*) {};
  desc.info = [](heddle_device*, heddle_device_info*) -> heddle_status* { return nullptr; };
  desc.alloc = [](heddle_device*, std::size_t, void**) -> heddle_status* { return nullptr; };
  desc.free = [](heddle_device*, void*) {};
  desc.stream_make = [](heddle_device*, heddle_stream**) -> heddle_status* { return nullptr; };
  desc.stream_free = [](heddle_stream*) {};
  desc.event_make = [](heddle_device*, heddle_event**) -> heddle_status* { return nullptr; };
  desc.event_free = [](heddle_event*) {};
  desc.record = [](heddle_stream*, heddle_event*) -> heddle_status* { return nullptr; };
  desc.wait_on_stream = desc.record;
  desc.wait = [](heddle_event*) -> heddle_status* { return nullptr; };
  desc.done = [](heddle_event*) { return 1; };
  desc.can_copy = [](heddle_device*, heddle_device*) { return 0; };
  desc.copy = [](heddle_stream*, heddle_device*, void*, heddle_device*, const void*,
                 std::size_t) -> heddle_status* { return nullptr; };
  desc.weight_layout = [](heddle_device*, heddle_use, const heddle_tensor_info*,
                          heddle_weight_layout*) -> heddle_status* { return nullptr; };
  desc.make_weight = [](heddle_device*, heddle_stream*, heddle_use, const heddle_weight_layout*,
                        std::uint32_t, const heddle_view* const*,
                        void*) -> heddle_status* { return nullptr; };
  return desc;
}

std::string refusal_of(const heddle_device_desc& desc) {
  try {
    engine::check_device_desc(desc, "org.example.test");
  } catch (const engine::Error& error) {
    BOOST_TEST((error.code() == engine::Code::invalid_argument));
    return error.what();
  }
  return "";
}

const std::string kRebuild = ". Build the plugin again with this engine's SDK";

// The extensions as a device would give them, and how it would be without one function: by name,
// then by offset in the table.
std::map<std::string_view, const void*> given_extensions;
const void* give_extension(const char* name) {
  const auto found = given_extensions.find(name);
  return found == given_extensions.end() ? nullptr : found->second;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_desc)

BOOST_AUTO_TEST_CASE(a_desc_with_all_that_is_required_is_taken) {
  BOOST_TEST(refusal_of(complete_desc()) == "");
  const engine::DeviceExtensions none = engine::extensions_of(complete_desc());
  BOOST_TEST((none.pinned == nullptr && none.native == nullptr && none.capture == nullptr &&
              none.links == nullptr && none.timing == nullptr && none.cancel == nullptr &&
              none.identity == nullptr && none.context == nullptr && none.uses == nullptr));
}

BOOST_AUTO_TEST_CASE(every_required_function_that_is_missing_is_named) {
#define WITHOUT(function)                                                                         \
  {                                                                                               \
    heddle_device_desc desc = complete_desc();                                                    \
    desc.function = nullptr;                                                                      \
    BOOST_TEST(refusal_of(desc) ==                                                                \
               "plugin 'org.example.test': the device kind 'test' lacks the function '" #function \
               "', which every device needs" +                                                    \
                   kRebuild);                                                                     \
  }
  WITHOUT(count);
  WITHOUT(open);
  WITHOUT(close);
  WITHOUT(info);
  WITHOUT(alloc);
  WITHOUT(free);
  WITHOUT(stream_make);
  WITHOUT(stream_free);
  WITHOUT(event_make);
  WITHOUT(event_free);
  WITHOUT(record);
  WITHOUT(wait_on_stream);
  WITHOUT(wait);
  WITHOUT(done);
  WITHOUT(can_copy);
  WITHOUT(copy);
  WITHOUT(weight_layout);
  WITHOUT(make_weight);
#undef WITHOUT
  // Nothing between the name and the first optional member was left out above.
  BOOST_TEST(offsetof(heddle_device_desc, kernels) ==
             offsetof(heddle_device_desc, count) + 18 * sizeof(void*));
}

BOOST_AUTO_TEST_CASE(a_desc_that_is_too_small_or_has_no_name_is_refused) {
  heddle_device_desc desc = complete_desc();
  desc.size = 100;
  BOOST_TEST(refusal_of(desc) ==
             "plugin 'org.example.test': the desc of a device kind has 100 bytes, the first "
             "revision has 176" +
                 kRebuild);
  desc = complete_desc();
  desc.kind = nullptr;
  BOOST_TEST(refusal_of(desc) == "plugin 'org.example.test': a device kind has no name" + kRebuild);
}

BOOST_AUTO_TEST_CASE(an_extension_that_lacks_a_function_is_named_with_it) {
  heddle_device_desc desc = complete_desc();
  desc.extension = give_extension;
  const auto check = [&]<std::size_t size>(const char* name, const char* const(&functions)[size]) {
    const void* table[size];
    for (std::size_t missing = 0; missing < size; ++missing) {
      for (std::size_t i = 0; i < size; ++i) table[i] = i == missing ? nullptr : &desc;
      given_extensions = {{name, table}};
      BOOST_TEST(
          refusal_of(desc) ==
          std::string("plugin 'org.example.test': the device kind 'test' has the extension '") +
              name + "' without its function '" + functions[missing] + "'" + kRebuild);
    }
    for (const void*& function : table) function = &desc;
    BOOST_TEST(refusal_of(desc) == "");
  };
  check(HEDDLE_DEVICE_PINNED, {"alloc", "free"});
  check(HEDDLE_DEVICE_NATIVE, {"stream"});
  check(HEDDLE_DEVICE_CAPTURE, {"begin", "end", "replay", "free", "bytes"});
  check(HEDDLE_DEVICE_LINKS, {"link"});
  check(HEDDLE_DEVICE_TIMING, {"elapsed"});
  check(HEDDLE_DEVICE_CANCEL, {"set"});
  check(HEDDLE_DEVICE_IDENTITY, {"identify"});
  check(HEDDLE_DEVICE_CONTEXT, {"is_made", "release"});
  check(HEDDLE_DEVICE_SHARING, {"is_possible", "alloc", "share", "map", "unmap", "taken"});
}

BOOST_AUTO_TEST_CASE(a_use_that_a_plugin_does_not_know_is_told_as_that_of_a_vector) {
  heddle_device_desc desc = complete_desc();
  const auto told = [&](heddle_use use) {
    return engine::told_use(engine::extensions_of(desc), use);
  };
  BOOST_TEST(told(HEDDLE_USE_LINEAR_FP8) == HEDDLE_USE_LINEAR_FP8);
  BOOST_TEST(told(HEDDLE_USE_BIAS) == HEDDLE_USE_VECTOR);
  const heddle_device_uses uses{.last = HEDDLE_USE_BIAS, .reserved = 0};
  desc.extension = give_extension;
  given_extensions = {{HEDDLE_DEVICE_USES, &uses}};
  BOOST_TEST(told(HEDDLE_USE_BIAS) == HEDDLE_USE_BIAS);
  BOOST_TEST(told(HEDDLE_USE_BIAS + 1) == HEDDLE_USE_VECTOR);
}

BOOST_AUTO_TEST_CASE(an_extension_of_another_revision_is_not_taken) {
  heddle_device_desc desc = complete_desc();
  desc.extension = give_extension;
  given_extensions = {{"heddle.device.pinned/1", &desc}};
  BOOST_TEST((engine::extensions_of(desc).pinned == nullptr));
}

BOOST_AUTO_TEST_CASE(members_that_were_added_later_read_as_zero) {
  heddle_device_desc desc = complete_desc();
  desc.extension = give_extension;
  desc.size = offsetof(heddle_device_desc, extension);
  const heddle_device_desc whole = engine::whole_desc(desc);
  BOOST_TEST((whole.make_weight == desc.make_weight));
  BOOST_TEST((whole.extension == nullptr));
}

BOOST_AUTO_TEST_CASE(a_kernel_that_lacks_something_is_refused_with_what_it_is) {
  const auto refusal = [](const heddle_kernel* kernel) -> std::string {
    try {
      engine::KernelTable::check(kernel, "org.example.test");
    } catch (const engine::Error& error) {
      return error.what();
    }
    return "";
  };
  heddle_kernel whole{};
  whole.size = sizeof whole;
  whole.op = "linear/1";
  whole.device_kind = "cuda";
  whole.name = "quick";
  whole.fits = [](heddle_device*, const heddle_op_call*) { return 1; };
  whole.launch = [](heddle_device*, heddle_stream*, const heddle_op_call*,
                    void*) -> heddle_status* { return nullptr; };
  BOOST_TEST(refusal(&whole) == "");
  const std::string plugin = "plugin 'org.example.test': ",
                    is = plugin + "the kernel 'quick' of 'linear/1' for 'cuda' lacks ";
  BOOST_TEST(refusal(nullptr) == plugin + "it lists a kernel that is NULL" + kRebuild);
  heddle_kernel kernel = whole;
  kernel.size = 48;
  BOOST_TEST(refusal(&kernel) ==
             plugin + "the desc of a kernel has 48 bytes, the first revision has 56" + kRebuild);
  kernel = whole, kernel.launch = nullptr;
  BOOST_TEST(refusal(&kernel) == is + "the function 'launch'" + kRebuild);
  kernel = whole, kernel.fits = nullptr;
  BOOST_TEST(refusal(&kernel) == is + "the function 'fits'" + kRebuild);
  kernel = whole, kernel.device_kind = nullptr;
  BOOST_TEST(refusal(&kernel) ==
             plugin + "the kernel 'quick' of 'linear/1' for '?' lacks its device kind" + kRebuild);
  kernel = whole, kernel.op = nullptr;
  BOOST_TEST(refusal(&kernel) ==
             plugin + "the kernel 'quick' of '?' for 'cuda' lacks the name of its op" + kRebuild);
  kernel = whole, kernel.name = nullptr;
  BOOST_TEST(refusal(&kernel) ==
             plugin + "the kernel '?' of 'linear/1' for 'cuda' lacks its name" + kRebuild);
}

BOOST_AUTO_TEST_SUITE_END()
