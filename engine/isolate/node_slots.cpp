#include "engine/isolate/node_slots.h"

#include <array>
#include <atomic>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

std::array<std::atomic<NodeProxy*>, kNodeSlots> proxies;

NodeProxy& proxy(std::size_t number) { return *proxies[number].load(std::memory_order_acquire); }

struct SlotFunctions {
  decltype(heddle_node_desc::execute) execute;
  decltype(heddle_node_desc::create) create;
  decltype(heddle_node_desc::destroy) destroy;
  decltype(heddle_node_desc::need) need;
  decltype(heddle_node_desc::fingerprint) fingerprint;
  decltype(heddle_node_desc::infer) infer;
  decltype(heddle_validator::validate) validate;
};

template <std::size_t number>
constexpr SlotFunctions functions_of() {
  return {
      [](void* self, heddle_ctx* ctx) { return proxy(number).execute(self, ctx); },
      [](const heddle_host*, void** self) { return proxy(number).create(self); },
      [](void* self) { proxy(number).destroy(self); },
      [](void* self, heddle_ctx* ctx) { return proxy(number).need(self, ctx); },
      [](void* self, heddle_ctx* ctx, std::uint64_t* hash) {
        return proxy(number).fingerprint(self, ctx, hash);
      },
      [](const heddle_host*, heddle_infer* question) { return proxy(number).infer(question); },
      [](const heddle_host*, heddle_validation* question) {
        return proxy(number).validate(question);
      },
  };
}

template <std::size_t... numbers>
constexpr std::array<SlotFunctions, sizeof...(numbers)> all_functions(
    std::index_sequence<numbers...>) {
  return {functions_of<numbers>()...};
}

constexpr std::array<SlotFunctions, kNodeSlots> kFunctions =
    all_functions(std::make_index_sequence<kNodeSlots>());

std::size_t take_slot(NodeProxy& proxy) {
  for (std::size_t i = 0; i < kNodeSlots; ++i) {
    NodeProxy* none = nullptr;
    if (proxies[i].compare_exchange_strong(none, &proxy)) return i;
  }
  throw Error(Code::unsupported, cat("more than ", kNodeSlots,
                                     " node types run isolated. Leave plugins out of --isolate"));
}

}  // namespace

NodeSlot::NodeSlot(NodeProxy& proxy) : number_(take_slot(proxy)) {}

NodeSlot::~NodeSlot() { proxies[number_] = nullptr; }

void NodeSlot::set_functions(heddle_node_desc& desc, heddle_validator& validator) const {
  const SlotFunctions& functions = kFunctions[number_];
  desc.execute = functions.execute;
  desc.create = functions.create;
  desc.destroy = functions.destroy;
  desc.need = functions.need;
  desc.fingerprint = functions.fingerprint;
  desc.infer = functions.infer;
  validator.validate = functions.validate;
}

}  // namespace heddle::engine
