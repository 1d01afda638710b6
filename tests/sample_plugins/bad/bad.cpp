// Plugins that must be refused; FAULT says what is wrong with this one.
#include <stdexcept>

#include <heddle/abi/node.h>

namespace {
[[maybe_unused]] const heddle_list* provide(const char*) { return nullptr; }
}  // namespace

#if defined(FAULT_OTHER_ABI)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{sizeof(heddle_plugin), 7, 3, "bad.abi", "1", nullptr, nullptr, &provide};
#elif defined(FAULT_INIT_FAILS)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin), HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, "bad.init", "1",
    [](const heddle_host* host) { return host->fail(host, HEDDLE_UNSUPPORTED, "the moon is in the wrong phase"); }, nullptr, &provide};
#elif defined(FAULT_INIT_THROWS)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{sizeof(heddle_plugin), HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, "bad.throws", "1",
                                                          [](const heddle_host*) -> heddle_status* { throw std::runtime_error("boom"); }, nullptr, &provide};
#elif defined(FAULT_NO_ENTRY)
extern "C" HEDDLE_EXPORT int something_else() { return 1; }
#elif defined(FAULT_UNDEFINED)
extern "C" int a_function_nobody_has();
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{sizeof(heddle_plugin), HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, "bad.undefined", "1",
                                                          [](const heddle_host*) -> heddle_status* { return a_function_nobody_has() != 0 ? nullptr : nullptr; }, nullptr, &provide};
#elif defined(FAULT_SMALL)
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{4, HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, "bad.small", "1", nullptr, nullptr, &provide};
#elif defined(FAULT_BAD_NODE)
namespace {
const heddle_node_desc nameless{.size = sizeof(heddle_node_desc), .version = 1};
const void* const items[] = {&nameless};
const heddle_list list{1, items};
}  // namespace
extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{sizeof(heddle_plugin), HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, "bad.node", "1", nullptr, nullptr,
                                                          [](const char* kind) { return kind[7] == 'n' ? &list : nullptr; }};
#endif
