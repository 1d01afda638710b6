#include <algorithm>

#include "engine/facade/data.h"
#include "engine/resources/measure.h"

namespace heddle {

namespace {

// While it lives, no run starts.
class Tuning {
 public:
  explicit Tuning(Engine::Data& data) : data_(data) {
    const std::lock_guard lock(data.mutex);
    const bool is_busy = data.is_tuning || std::ranges::any_of(data.runs, [](const auto& weak) {
                           const auto run = weak.lock();
                           return run != nullptr && !run->is_over;
                         });
    if (is_busy)
      throw engine::Error(
          engine::Code::unsupported,
          "the devices are at work, which would spoil the figures. Measure them when nothing runs");
    data.is_tuning = true;
  }
  ~Tuning() {
    const std::lock_guard lock(data_.mutex);
    data_.is_tuning = false;
  }
  Tuning(const Tuning&) = delete;

 private:
  Engine::Data& data_;
};

}  // namespace

std::string Engine::tune(const std::function<void(const std::string&)>& progress) {
  return translate_errors([&] {
    const Tuning tuning(*data_);
    const engine::Environment& environment = *data_->environment;
    return engine::write_costs(engine::measure(
               environment.devices, environment.costs, environment.pinned_bytes,
               progress ? progress : [](const std::string&) {})) +
           "\n";
  });
}

}  // namespace heddle
