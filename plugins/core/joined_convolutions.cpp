#include "joined_convolutions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <heddle/weight_change.hpp>

namespace heddle::loaders {
namespace {

constexpr std::int64_t kTaps = 9, kMiddle = 4;

// The parts of one, read when its weights are made.
class TrainedConvolution {
 public:
  TrainedConvolution(const Checkpoint& file, std::string module)
      : file_(file),
        module_(std::move(module)),
        out_(file.size(module_ + ".sk.weight", 0)),
        in_(file.size(module_ + ".sk.weight", 1)),
        widened_(file.size(module_ + ".conv.0.weight", 0)),
        filtered_(file.size(module_ + ".conv.1.weight", 0)) {}

  // (out, in, 3, 3).
  void weight(float* to) const {
    const auto widen = numbers(".conv.0.weight", widened_ * in_),
               filter = numbers(".conv.1.weight", filtered_ * widened_ * kTaps),
               narrow = numbers(".conv.2.weight", out_ * filtered_),
               around = numbers(".sk.weight", out_ * in_);
    const std::int64_t each = in_ * kTaps;
    std::vector<double> wide(std::size_t(filtered_ * each), 0.0);
    for (std::int64_t n = 0; n < filtered_; ++n)
      for (std::int64_t m = 0; m < widened_; ++m)
        for (std::int64_t c = 0; c < in_; ++c)
          for (std::int64_t k = 0; k < kTaps; ++k)
            wide[std::size_t(n * each + c * kTaps + k)] +=
                filter[std::size_t((n * widened_ + m) * kTaps + k)] *
                widen[std::size_t(m * in_ + c)];
    for (std::int64_t f = 0; f < out_; ++f) {
      std::vector<double> sums(std::size_t(each), 0.0);
      for (std::int64_t n = 0; n < filtered_; ++n)
        for (std::int64_t i = 0; i < each; ++i)
          sums[std::size_t(i)] +=
              narrow[std::size_t(f * filtered_ + n)] * wide[std::size_t(n * each + i)];
      for (std::int64_t c = 0; c < in_; ++c)
        sums[std::size_t(c * kTaps + kMiddle)] += around[std::size_t(f * in_ + c)];
      std::transform(sums.begin(), sums.end(), to + f * each,
                     [](double sum) { return float(sum); });
    }
  }
  void bias(float* to) const {
    const auto before = numbers(".conv.0.bias", widened_), own = numbers(".conv.1.bias", filtered_),
               last = numbers(".conv.2.bias", out_), around = numbers(".sk.bias", out_),
               filter = numbers(".conv.1.weight", filtered_ * widened_ * kTaps),
               narrow = numbers(".conv.2.weight", out_ * filtered_);
    std::vector<double> wide(own);
    for (std::int64_t n = 0; n < filtered_; ++n)
      for (std::int64_t i = 0; i < widened_ * kTaps; ++i)
        wide[std::size_t(n)] +=
            filter[std::size_t(n * widened_ * kTaps + i)] * before[std::size_t(i / kTaps)];
    for (std::int64_t f = 0; f < out_; ++f) {
      double sum = last[std::size_t(f)] + around[std::size_t(f)];
      for (std::int64_t n = 0; n < filtered_; ++n)
        sum += narrow[std::size_t(f * filtered_ + n)] * wide[std::size_t(n)];
      to[f] = float(sum);
    }
  }

 private:
  std::vector<double> numbers(const char* name, std::int64_t count) const {
    std::vector<double> read(std::size_t(count), 0.0);
    check(service<heddle_checkpoint_service>().numbers(file_.raw(), (module_ + name).c_str(),
                                                       std::uint32_t(count), read.data()));
    return read;
  }

  const Checkpoint file_;
  const std::string module_;
  const std::int64_t out_, in_, widened_, filtered_;
};

}  // namespace

Value with_joined_convolutions(const Value& model) {
  const Value modules = model_settings(model).field("joined_convolutions");
  if (modules.count() == 0) return model;
  const Checkpoint file = model_checkpoint(model);
  std::vector<WeightChange> changes;
  for (std::uint32_t i = 0; i < modules.count(); ++i) {
    const auto module = modules.item(i).as<std::string>();
    const auto trained = std::make_shared<const TrainedConvolution>(file, module);
    changes.push_back({{module + ".eval_conv.weight"},
                       "joined " + module,
                       [trained](std::int64_t, std::int64_t, float* to) { trained->weight(to); }});
    changes.push_back({{module + ".eval_conv.bias"},
                       "joined " + module,
                       [trained](std::int64_t, std::int64_t, float* to) { trained->bias(to); }});
  }
  return with_changes(model, file, std::move(changes));
}

}  // namespace heddle::loaders
