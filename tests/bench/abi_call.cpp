// What a call through the ABI costs beside a direct virtual call: reading an integer of a value by
// heddle.value/0 (a function of a table, a status, an out-parameter), and the same of an object
// with a virtual function that does as much. Printed are nanoseconds a call, medians of nine, of
// the clock, and how often the second is the first.
//
//   abi_call_bench
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "engine/plugin/host.h"
#include "heddle/abi/value.h"

namespace {

constexpr int kCalls = 20'000'000;

struct Readable {
  virtual ~Readable() = default;
  virtual bool get_int(std::int64_t* out) const = 0;
};
struct Number final : Readable {
  explicit Number(std::int64_t value) : value(value) {}
  // Kept out of the loop: a compiler that guesses which class it is would measure no call at all.
  [[gnu::noinline]] bool get_int(std::int64_t* out) const override {
    asm volatile("");
    *out = value;
    return true;
  }
  std::int64_t value;
};

// The compiler must not know what stands behind it.
template <class T>
T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

template <class Call>
double nanoseconds(Call call) {
  std::array<double, 9> all{};
  for (double& one : all) {
    std::int64_t sum = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) sum += call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (sum != std::int64_t{7} * kCalls) std::printf("wrong sum\n");
    one = took.count() / kCalls;
  }
  std::nth_element(all.begin(), all.begin() + 4, all.end());
  return all[4];
}

}  // namespace

int main() {
  const heddle_host* const host = heddle::engine::plugin_host();
  const auto* const values =
      static_cast<const heddle_value_service*>(host->service(host, HEDDLE_SERVICE_VALUE));
  heddle_value* const value = values->make_int(7);
  const std::unique_ptr<Readable> object = std::make_unique<Number>(7);
  const double by_virtual = nanoseconds([&] {
    std::int64_t out = 0;
    hidden(object.get())->get_int(&out);
    return out;
  });
  const double by_abi = nanoseconds([&] {
    std::int64_t out = 0;
    host->status_free(hidden(values)->get_int(value, &out));
    return out;
  });
  const double by_abi_checked = nanoseconds([&] {
    std::int64_t out = 0;
    if (heddle_status* const status = hidden(values)->get_int(value, &out))
      host->status_free(status);
    return out;
  });
  std::printf("virtual call                   %6.2f ns\n", by_virtual);
  std::printf("heddle.value/0 get_int         %6.2f ns, %.2f times\n", by_abi_checked,
              by_abi_checked / by_virtual);
  std::printf("the same, status freed always  %6.2f ns, %.2f times\n", by_abi, by_abi / by_virtual);
  values->release(value);
}
