// heddle/infer.hpp - what a node's outputs will be, before it runs. Part of heddle/node.hpp.
#pragma once

#include "ports.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// One question: what will the outputs be?
class Infer {
 public:
  Infer(heddle_infer* raw, const heddle_node_desc& desc) : raw_(raw), desc_(desc) {}
  // The value of an input where it is known before running.
  template <class T>
  std::optional<T> operator[](const Input<T>& input) const {
    const heddle_value* v = service<heddle_infer_service>().value(
        raw_, port_position(&input.port, desc_.inputs, desc_.input_count));
    return v == nullptr ? std::optional<T>() : std::optional<T>(Wire<T>::read(v));
  }
  // Paths as in heddle_infer_service.
  template <class T>
  std::optional<heddle_tensor_info> tensor(const Input<T>& input,
                                           const std::string& path = "") const {
    heddle_tensor_info info{};
    info.size = sizeof info;
    if (service<heddle_infer_service>().in(
            raw_, port_position(&input.port, desc_.inputs, desc_.input_count), path.c_str(),
            &info) == 0)
      return {};
    return info;
  }
  template <class T>
  std::optional<Shape> shape(const Input<T>& input, const std::string& path = "") const {
    const std::optional<heddle_tensor_info> info = tensor(input, path);
    return info ? std::optional(Shape(info->shape, info->shape + info->rank)) : std::nullopt;
  }
  // A part of a value that is known before running; empty when it is not.
  template <class T>
  Value part(const Input<T>& input, const std::string& path) const {
    return Value::share(service<heddle_infer_service>().part(
        raw_, port_position(&input.port, desc_.inputs, desc_.input_count), path.c_str()));
  }
  template <class T>
  void out(const Output<T>& output, const std::string& path, heddle_dtype dtype,
           const Shape& shape) {
    const heddle_tensor_info info = tensor_info(dtype, shape);
    check(service<heddle_infer_service>().out(
        raw_, port_position(&output.port, desc_.outputs, desc_.output_count), path.c_str(), &info));
  }
  template <class T>
  void known(const Output<T>& output, const std::string& path, const Value& value) {
    check(service<heddle_infer_service>().known(
        raw_, port_position(&output.port, desc_.outputs, desc_.output_count), path.c_str(),
        value.raw()));
  }
  // Its tensors are inputs', or parts of them, and take no memory of their own.
  template <class T>
  void shares(const Output<T>& output) {
    check(service<heddle_infer_service>().shares(
        raw_, port_position(&output.port, desc_.outputs, desc_.output_count)));
  }
  void cost(double flops, double bytes, std::uint64_t scratch = 0) {
    service<heddle_cost_service>().add(raw_, flops, bytes, scratch);
  }
  // Bytes in host memory, wherever the node is placed.
  void host_scratch(std::uint64_t bytes) {
    service<heddle_cost_service>().host_scratch(raw_, bytes);
  }

  // A call of a model that execute() is going to make: shapes by input name, as they will be given
  // to open() and step().
  struct Named {
    std::string name;
    heddle_dtype dtype;
    Shape shape;
  };
  struct Set {
    std::vector<Named> constants, steps;
  };
  void call(const Value& model, const std::vector<Set>& sets,
            const std::vector<Named>& schedule = {}, std::uint32_t steps = 1) {
    tell(service<heddle_cost_service>().call, model, sets, schedule, steps);
  }
  // As heddle_cost_service::least_call.
  void least_call(const Value& model, const std::vector<Set>& sets) {
    tell(service<heddle_cost_service>().least_call, model, sets, {}, 1);
  }

  heddle_infer* raw() const { return raw_; }

 private:
  void tell(heddle_status* (*how)(heddle_infer*, const heddle_infer_call*), const Value& model,
            const std::vector<Set>& sets, const std::vector<Named>& schedule, std::uint32_t steps) {
    const NamedList scheduled(schedule);
    std::vector<std::pair<NamedList, NamedList>> lists;
    for (const Set& set : sets) lists.emplace_back(NamedList(set.constants), NamedList(set.steps));
    std::vector<heddle_infer_set> raw_sets;
    for (const auto& [constants, changing] : lists)
      raw_sets.push_back({sizeof(heddle_infer_set), constants.count(), changing.count(),
                          constants.data(), changing.data()});
    std::vector<const heddle_infer_set*> pointers;
    for (const heddle_infer_set& set : raw_sets) pointers.push_back(&set);
    const heddle_infer_call asked{sizeof(heddle_infer_call),
                                  std::uint32_t(sets.size()),
                                  steps,
                                  scheduled.count(),
                                  model.raw(),
                                  pointers.data(),
                                  scheduled.data()};
    check(how(raw_, &asked));
  }

  // The C form of a list of named shapes; it looks into the list it was made of.
  class NamedList {
   public:
    explicit NamedList(const std::vector<Named>& list) {
      for (const Named& n : list)
        infos_.push_back(
            {sizeof(heddle_named_info), n.name.c_str(), tensor_info(n.dtype, n.shape)});
      for (const heddle_named_info& info : infos_) pointers_.push_back(&info);
    }
    std::uint32_t count() const { return std::uint32_t(infos_.size()); }
    const heddle_named_info* const* data() const { return pointers_.data(); }

   private:
    std::vector<heddle_named_info> infos_;
    std::vector<const heddle_named_info*> pointers_;
  };

  heddle_infer* raw_;
  const heddle_node_desc& desc_;
};

}  // namespace heddle
