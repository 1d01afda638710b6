// Plugins that must be refused, or told of; FAULT says what is wrong with this one.
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <heddle/abi/device.h>
#include <heddle/node.hpp>

namespace {
[[maybe_unused]] const heddle_list* provide(const char*) { return nullptr; }
}  // namespace

#if defined(FAULT_OTHER_ABI)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin), 7, 3, "bad.abi", "1", &provide, nullptr, nullptr};
#elif defined(FAULT_NEWER_MINOR)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{sizeof(heddle_plugin),
                                                          HEDDLE_ABI_MAJOR,
                                                          HEDDLE_ABI_MINOR + 1,
                                                          "bad.minor",
                                                          "1",
                                                          &provide,
                                                          nullptr,
                                                          nullptr};
#elif defined(FAULT_INIT_FAILS)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "bad.init",
    "1",
    &provide,
    [](const heddle_host* host) {
      return host->fail(host, HEDDLE_UNSUPPORTED, "the moon is in the wrong phase");
    },
    nullptr};
#elif defined(FAULT_INIT_THROWS)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "bad.throws",
    "1",
    &provide,
    [](const heddle_host*) -> heddle_status* { throw std::runtime_error("boom"); },
    nullptr};
#elif defined(FAULT_NO_ENTRY)
extern "C" HEDDLE_EXPORT int something_else() { return 1; }
#elif defined(FAULT_UNDEFINED)
extern "C" int a_function_nobody_has();
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "bad.undefined",
    "1",
    &provide,
    [](const heddle_host*) -> heddle_status* {
      return a_function_nobody_has() != 0 ? nullptr : nullptr;
    },
    nullptr};
#elif defined(FAULT_SMALL)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    4, HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, "bad.small", "1", &provide, nullptr, nullptr};
#elif defined(FAULT_BAD_NODE)
namespace {
const heddle_node_desc nameless{.size = sizeof(heddle_node_desc), .version = 1};
const void* const items[] = {&nameless};
const heddle_list list{1, items};
}  // namespace
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "bad.node",
    "1",
    [](const char* kind) { return kind[7] == 'n' ? &list : nullptr; },
    nullptr,
    nullptr};
#elif defined(FAULT_NO_PROVIDE)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{sizeof(heddle_plugin),
                                                          HEDDLE_ABI_MAJOR,
                                                          HEDDLE_ABI_MINOR,
                                                          "bad.provide",
                                                          "1",
                                                          nullptr,
                                                          nullptr,
                                                          nullptr};
#elif defined(FAULT_BAD_MODEL)
namespace {
const heddle_model_desc matchless{
    .size = sizeof(heddle_model_desc), .version = 1, .family = "odd", .role = "diffusion_model"};
const void* const items[] = {&matchless};
const heddle_list list{1, items};
}  // namespace
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "bad.model",
    "1",
    [](const char* kind) { return kind == std::string_view(HEDDLE_MODELS) ? &list : nullptr; },
    nullptr,
    nullptr};
#elif defined(FAULT_BAD_DEVICE)
// Its node is as it should be, its device is not.
namespace {
const heddle_node_desc node{
    .size = sizeof(heddle_node_desc),
    .version = 1,
    .type = "bad.beside",
    .execute = [](void*, heddle_ctx*) -> heddle_status* { return nullptr; }};
const heddle_device_desc device{.size = sizeof(heddle_device_desc), .version = 1, .kind = "bad"};
const void* const nodes[] = {&node};
const void* const devices[] = {&device};
const heddle_list node_list{1, nodes}, device_list{1, devices};
}  // namespace
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "bad.device",
    "1",
    [](const char* kind) -> const heddle_list* {
      if (kind == std::string_view(HEDDLE_NODES)) return &node_list;
      return kind == std::string_view(HEDDLE_DEVICES) ? &device_list : nullptr;
    },
    nullptr,
    nullptr};
#elif defined(FAULT_OLD_ABI)
// As the SDK of ABI 0.1 built it: the members stand in another order, and none of its code fits.
// Who calls it ends the process.
namespace old {
[[noreturn]] heddle_status* init(const heddle_host*) { std::abort(); }
[[noreturn]] void deinit() { std::abort(); }
[[noreturn]] const heddle_list* provide(const char*) { std::abort(); }
struct Entry {
  std::uint32_t size, abi_major, abi_minor;
  const char *id, *version;
  heddle_status* (*init)(const heddle_host*);
  void (*deinit)();
  const heddle_list* (*provide)(const char*);
};
extern "C" HEDDLE_EXPORT const Entry old_entry __asm__("heddle_entry") = {
    sizeof(Entry), 0, 1, "bad.old", "1", &init, &deinit, &provide};
}  // namespace old
#elif defined(FAULT_NO_SERVICE)
struct UnknownService {};
template <>
inline constexpr const char* heddle::service_name<UnknownService> = "heddle.telepathy/3";
namespace {
struct Reader {  // needs the service where it runs, so the plugin does
  static constexpr heddle::Info info{"bad.reader", 1, "Reader", "test"};
  static constexpr heddle::Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(out);
  void execute(heddle::Context& ctx) {
    ctx[out] = std::int64_t(&heddle::service<UnknownService>() != nullptr);
  }
};
}  // namespace
HEDDLE_PLUGIN("bad.no_service", "1", Reader)
#elif defined(FAULT_TWICE)
namespace {
template <int Number>
struct Twin {
  static constexpr heddle::Info info{"bad.twin", Number, "Twin", "test"};
  static constexpr heddle::Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(out);
  void execute(heddle::Context& ctx) { ctx[out] = std::int64_t{Number}; }
};
}  // namespace
HEDDLE_PLUGIN("bad.twice", "1", Twin<1>, Twin<2>)
#elif defined(FAULT_DEFAULTS)
// It is loaded, with a warning for each.
namespace {
constexpr const char* kMethods[] = {"good", "better", nullptr};
struct Beyond {
  static constexpr heddle::Info info{"bad.beyond", 1, "Beyond", "test"};
  static constexpr heddle::Input<std::int64_t> steps{"steps",
                                                     {.number = 200, .min = 1, .max = 100}};
  static constexpr heddle::Input<double> scale{"scale", {.number = -0.5, .min = 0, .max = 1}};
  static constexpr heddle::Input<std::string> method{"method",
                                                     {.text = "best", .choices = kMethods}};
  static constexpr heddle::Input<std::int64_t> well{"well", {.number = 100, .min = 1, .max = 100}};
  static constexpr heddle::Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(steps, scale, method, well, out);
  void execute(heddle::Context& ctx) { ctx[out] = ctx[steps] + ctx[well]; }
};
}  // namespace
HEDDLE_PLUGIN("bad.defaults", "1", Beyond)
#elif defined(FAULT_TAKES_OVER)
// Not bad, but to be told: its kernel says that it fits better than the device's own.
namespace {
constexpr heddle_kernel kFill{
    sizeof(heddle_kernel),
    "fill/1",
    "cpu",
    "a stranger's",
    [](heddle_device*, const heddle_op_call*) -> std::int32_t { return 1000000; },
    [](heddle_device*, heddle_stream*, const heddle_op_call*, void*) {
      return heddle::services.host->fail(heddle::services.host, HEDDLE_UNSUPPORTED, "it cannot");
    },
    nullptr};
struct Kernels {
  static constexpr std::string_view kind = HEDDLE_KERNELS;
  static const heddle_list* list() { return heddle::descs<kFill>(); }
};
}  // namespace
HEDDLE_PLUGIN("bad.takes_over", "1", Kernels)
#elif defined(FAULT_OPTIONAL_SERVICE)
// Not bad at all: it does without.
struct UnknownService {};
template <>
inline constexpr const char* heddle::service_name<UnknownService> = "heddle.telepathy/3";
namespace {
struct Guesser {
  static constexpr heddle::Info info{"test.guesser", 1, "Guesser", "test"};
  static constexpr heddle::Output<bool> out{"out"};
  static constexpr auto ports = heddle::ports(out);
  void execute(heddle::Context& ctx) {
    ctx[out] = heddle::optional_service<UnknownService>() != nullptr;
  }
};
}  // namespace
HEDDLE_PLUGIN("test.guesser", "1", Guesser)
#endif
