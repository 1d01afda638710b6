#include "engine/isolate/worker_call.h"

#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/tensor/gather.h"

namespace heddle::engine {

namespace {

[[noreturn]] void refuse(std::string_view what) {
  throw Error(Code::unsupported,
              cat(what, ", which a node in a worker cannot do. Leave its plugin out of --isolate"));
}

}  // namespace

WorkerCall::WorkerCall(WorkerLane& lane, const heddle_node_desc& desc, BytesReader& from)
    : lane_(lane), end_(lane.memory()), desc_(desc), outputs_(desc.output_count) {
  about_.node = from.text();
  about_.compute = from.number<heddle_dtype>();
  about_.preview = from.number<std::int32_t>();
  about_.element = from.number<std::uint64_t>();
  if (const std::string_view device = from.text(); !device.empty())
    device_ = &lane.memory().devices().open(device);
  end_.use_device(device_);
  if (device_ != nullptr) about_.failed_waits = device_->device().failed_waits();
  for (std::uint32_t left = from.count(); left > 0; --left)
    inputs_.push_back(read_value(from, end_));
  for (std::uint32_t left = from.count(); left > 0; --left) {
    std::string name(from.text());
    extras_.emplace_back(std::move(name), read_value(from, end_));
  }
}

void WorkerCall::write_outputs(BytesWriter& to) {
  to.number(std::uint32_t(outputs_.size()));
  for (const Value& output : outputs_) write_value(to, output.get(), end_);
  to.flag(new_nodes_ != nullptr);
  if (new_nodes_ != nullptr) write_new_nodes(to, *new_nodes_, end_);
}

void WorkerCall::write_wanted(BytesWriter& to) const {
  to.number(std::uint32_t(wanted_.size()));
  for (const std::string& name : wanted_) to.text(name);
}

heddle_status* WorkerCall::wait_until_complete() {
  auto finished = finished_.lock();
  finished.wait(has_finished_, [](const Finished& f) { return f.is_complete; });
  return finished->status;
}

const heddle_value* WorkerCall::hold(Value value) {
  const auto held = held_.lock();
  return held->emplace_back(std::move(value)).get();
}

const heddle_value* WorkerCall::input(std::uint32_t index) {
  return index < inputs_.size() ? inputs_[index].get() : nullptr;
}

void WorkerCall::set_output(std::uint32_t index, Value value) {
  if (index >= outputs_.size())
    throw Error(Code::invalid_argument,
                cat(desc_.type, " has ", outputs_.size(), " outputs, it set number ", index));
  outputs_[index] = std::move(value);
}

heddle_tensor* WorkerCall::weight(std::uint32_t) {
  throw Error(Code::unsupported, "only blocks of a model have weights");
}

heddle_shard WorkerCall::shard(std::uint32_t) {
  throw Error(Code::unsupported, "only blocks of a model are divided");
}

void WorkerCall::want(std::string_view input) { wanted_.emplace_back(input); }

bool WorkerCall::cancelled() const {
  if (!lane_.is_cancelled()) return false;
  if (!has_heard_cancelled_.exchange(true)) lane_.tell(LaneMessage::heard_cancelled, {});
  return true;
}

void WorkerCall::progress(double fraction, std::string_view note) {
  BytesWriter body;
  body.number(fraction);
  body.text(note);
  lane_.tell(LaneMessage::progress, body);
}

void WorkerCall::wrote(std::string_view path, std::string_view ui_json) {
  BytesWriter body;
  body.text(path);
  body.text(ui_json);
  lane_.tell(LaneMessage::wrote, body);
}

void WorkerCall::warn(std::string_view message) {
  BytesWriter body;
  body.text(message);
  lane_.tell(LaneMessage::warn, body);
}

void WorkerCall::preview(const heddle_preview& picture) {
  if (about_.preview == HEDDLE_PREVIEW_NONE || picture.pixels == nullptr) return;
  BytesWriter body;
  for (const std::uint32_t number :
       {picture.width, picture.height, picture.step, picture.step_count})
    body.number(number);
  body.text({reinterpret_cast<const char*>(picture.pixels),
             std::size_t{3} * picture.width * picture.height});
  lane_.tell(LaneMessage::preview, body);
}

void WorkerCall::send_picture(std::string_view png) {
  BytesWriter body;
  body.text(png);
  lane_.tell(LaneMessage::picture, body);
}

void WorkerCall::do_not_cache() { lane_.tell(LaneMessage::do_not_cache, {}); }

Tensor WorkerCall::make_host(const heddle_tensor_info& given) {
  const heddle_tensor_info info = checked_info(given, "tensor");
  const std::uint64_t bytes = dense_bytes(info);
  if (bytes < kLeastShared) return make_host_tensor(info);
  BytesWriter body;
  body.number(bytes);
  body.text(describe(info));
  const std::string answer = lane_.ask(LaneMessage::make_host, body);
  return lane_.memory().tensor(BytesReader(answer).number<std::uint64_t>(), 0, info);
}

// In memory of the engine, which counts it.
Tensor WorkerCall::make(const heddle_tensor_info& given) {
  if (device_ == nullptr) return make_host(given);
  const heddle_tensor_info info = checked_info(given, "tensor");
  BytesWriter body;
  body.number(std::uint64_t(span_bytes(info)));
  body.text(describe(info));
  const std::string answer = lane_.ask(LaneMessage::make_device, body);
  return lane_.memory().device_tensor(BytesReader(answer).number<std::uint64_t>(), 0, info,
                                      *device_);
}

Tensor WorkerCall::upload(const heddle_tensor_info& given, const void* src) {
  Tensor tensor = make(make_info(given.dtype, std::span(given.shape, given.rank)));
  const std::uint64_t bytes = dense_bytes(tensor->info);
  if (bytes == 0) return tensor;
  if (device_ == nullptr) {
    std::memcpy(tensor->data(), src, bytes);
    return tensor;
  }
  try {
    device_->with_stream([&](Stream& stream) {
      device_->device().copy(stream, &device_->device(), tensor->data(), nullptr, src, bytes);
    });
    device_->synchronize();  // the node may change what is at `src`
  } catch (...) {
    device_->settle();  // or free it
    throw;
  }
  return tensor;
}

void WorkerCall::read(heddle_tensor* tensor, void* dst, std::size_t bytes) {
  if (bytes != dense_bytes(tensor->info))
    throw Error(Code::invalid_argument, cat("reading ", describe(tensor->info), " into ", bytes,
                                            " bytes; it has ", dense_bytes(tensor->info)));
  if (bytes == 0) return;
  if (device_ != nullptr) return device_->read(Tensor::share(tensor), dst, bytes);
  gather(tensor->info, tensor->data(), static_cast<std::byte*>(dst));
}

void WorkerCall::op(std::uint32_t op, std::span<heddle_tensor* const> in,
                    std::span<heddle_tensor* const> out, std::span<const std::byte> attrs) {
  if (device_ == nullptr)
    refuse(cat(desc_.type,
               " is not placed on a device that shares its memory with workers, and runs the op ",
               quote(op_name(op)), " there"));
  device_->op(op, in, out, attrs);
}

heddle_status* WorkerCall::finish_device_work() {
  if (device_ == nullptr) return nullptr;
  heddle_status* const failure = to_status([&] {
    device_->synchronize();
    // All calls of a worker share a stream, and a failure is told once: maybe to another call.
    const Device& its = device_->device();
    if (its.failed_waits() != about_.failed_waits)
      throw Error(
          Code::io,
          cat(its.name(), ": the device failed while the node used it: ", its.last_failure()));
  });
  if (failure != nullptr) device_->settle();
  device_->trim_quietly();
  return failure;
}

Value WorkerCall::build_model(std::string_view, const Checkpoint&, const heddle_value*) {
  refuse(cat(desc_.type, " builds a model"));
}

std::unique_ptr<SessionHandle> WorkerCall::open(const SessionRequest&) {
  refuse(cat(desc_.type, " calls a model"));
}

std::string WorkerCall::find_file(std::string_view folder, std::string_view name) {
  BytesWriter body;
  body.text(folder);
  body.text(name);
  const std::string answer = lane_.ask(LaneMessage::find_file, body);
  return std::string(BytesReader(answer).text());
}

std::vector<std::string> WorkerCall::folder_places(std::string_view folder) {
  BytesWriter body;
  body.text(folder);
  const std::string answer = lane_.ask(LaneMessage::folder_places, body);
  BytesReader from(answer);
  std::vector<std::string> places;
  for (std::uint32_t left = from.count(); left > 0; --left) places.emplace_back(from.text());
  return places;
}

std::string WorkerCall::output_folder(std::string_view kind) {
  BytesWriter body;
  body.text(kind);
  const std::string answer = lane_.ask(LaneMessage::output_folder, body);
  return std::string(BytesReader(answer).text());
}

std::uint64_t WorkerCall::identify_file(std::string_view path) {
  BytesWriter body;
  body.text(path);
  const std::string answer = lane_.ask(LaneMessage::identify_file, body);
  return BytesReader(answer).number<std::uint64_t>();
}

const heddle_value* WorkerCall::saved_state() {
  const std::string answer = lane_.ask(LaneMessage::saved_state, {});
  BytesReader from(answer);
  Value state = read_value(from, end_);
  return state ? hold(std::move(state)) : nullptr;
}

bool WorkerCall::at_boundary() {
  const std::string answer = lane_.ask(LaneMessage::at_boundary, {});
  return BytesReader(answer).flag();
}

void WorkerCall::save_state(Value state) {
  if (device_ != nullptr) device_->synchronize();  // the engine reads it at once
  BytesWriter body;
  write_value(body, state.get(), end_);
  (void)lane_.ask(LaneMessage::save_state, body);
}

Value WorkerCall::look_up(std::string_view id) {
  BytesWriter body;
  body.text(id);
  const std::string answer = lane_.ask(LaneMessage::look_up, body);
  BytesReader from(answer);
  return read_value(from, end_);
}

heddle_completion* WorkerCall::defer() {
  if (completion_ == nullptr) {
    completion_ = std::make_unique<heddle_completion>();
    completion_->call = nullptr;
    completion_->complete = [this](std::list<Completion>& ended) {
      const auto finished = finished_.lock();
      *finished = {true, ended.front().status};
      has_finished_.notify_all();  // with the lock: this may be gone right after it
    };
  }
  return completion_.get();
}

NewNodes& WorkerCall::new_nodes() {
  if ((desc_.flags & HEDDLE_NODE_EXPANDS) == 0)
    throw Error(Code::unsupported, cat(desc_.type,
                                       " asks for new nodes, which its description does not say "
                                       "(HEDDLE_NODE_EXPANDS)"));
  if (new_nodes_ == nullptr) new_nodes_ = std::make_unique<NewNodes>();
  return *new_nodes_;
}

}  // namespace heddle::engine
