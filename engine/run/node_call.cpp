#include "engine/run/node_call.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/instance.h"
#include "engine/session/session_device_slots.h"

namespace heddle::engine {

namespace {

// A claim on less costs more than to be refused half way.
constexpr std::uint64_t kLeastClaim = 64 << 10;

void wait_while_paused(const NodeCall::Shared& shared) {
  if (shared.control.paused() && !shared.control.releases() && shared.about_to_wait)
    shared.about_to_wait();
  shared.control.wait_while_paused();
}

// A pause holds between two steps, and never inside of one. One that releases memory does not hold
// here: a call that keeps no state has to end first.
class PausableSession final : public SessionHandle {
 public:
  PausableSession(const NodeCall::Shared& shared, std::unique_ptr<SessionHandle> session)
      : shared_(shared), session_(std::move(session)) {}
  std::vector<Value> step(std::uint32_t index, std::span<const heddle_value* const> sets) override {
    wait_while_paused(shared_);
    // The steps that are left would be in vain.
    if (shared_.models != nullptr) shared_.models->check();
    return session_->step(index, sets);
  }

 private:
  const NodeCall::Shared& shared_;
  const std::unique_ptr<SessionHandle> session_;
};

}  // namespace

NodeCall::~NodeCall() = default;

void NodeCall::begin(const Node& node, RunDevice& device, const Assignment& assignment,
                     NodeIndex index) {
  node_ = &node;
  index_ = index;
  cancel_flag_.reset();
  device_ = &device;
  assignment_ = &assignment;
  on_host_ = assignment.on_host;
  calls_ = 0;
  used_device_ = false;
  input_count_ = output_count_ = 0;  // as long as there may be no memory for them
  const std::uint32_t inputs = node.type->input_count(), outputs = node.type->output_count();
  if (inputs_.size() < inputs) inputs_.resize(inputs);
  if (outputs_.size() < outputs) outputs_.resize(outputs);
  input_count_ = inputs;
  output_count_ = outputs;
  std::fill_n(inputs_.begin(), input_count_, nullptr);
  if (is_blocked_) blocked_message_.clear();
  is_blocked_ = false;
  is_suspended_ = false;
  was_told_cancelled_.store(false, std::memory_order_relaxed);
  is_not_to_be_cached_.store(false, std::memory_order_relaxed);
  element_ = 0;
  element_count_ = 1;
  may_begin_ = false;
  works_in_stages_ = false;
  waited_ = {};
}

void NodeCall::set_element(std::size_t index, std::size_t count) {
  element_ = index;
  element_count_ = count;
}

void NodeCall::end() {
  for (Value& output : outputs()) output = {};
  owned_.clear();
  extras_.clear();
  wanted_.clear();
  release_claim();
  new_nodes_.reset();
  arrivals_.clear();
  begun_.clear();
  if (made_for_user_.exchange(false)) *for_user_.lock() = {};  // nobody has asked for it
}

void NodeCall::reserve_host(std::uint64_t bytes) {
  Ledger* const host = shared_.environment.host_ledger.get();
  if (host != nullptr && bytes > kLeastClaim)
    claim_ = host->reserve(bytes, "what the node makes and works on");
}

void NodeCall::reserve_device(std::uint64_t bytes) {
  constexpr std::uint64_t kLeastDeviceClaim = 1 << 20;
  if (bytes < kLeastDeviceClaim) return;
  try {
    device_claim_ = device_->state->ledger().reserve(bytes, "what the node makes and works on");
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
  }
}

void NodeCall::check_prompt(const heddle_port& port, const heddle_value& value) const {
  if (const auto fault = prompt_fault(port, value, shared_.environment.prompt_limit))
    throw RefusedValue(cat("input ", quote(port.name), ": ", *fault));
}

std::unique_ptr<ForUser> NodeCall::take_made() {
  made_for_user_ = false;
  return std::make_unique<ForUser>(std::exchange(*for_user_.lock(), {}));
}

void NodeCall::absorb(NodeCall& element) {
  used_device_ = used_device_ || element.used_device_;
  calls_ += element.calls_;
  if (element.is_not_to_be_cached()) do_not_cache();
  if (element.was_told_cancelled()) was_told_cancelled_.store(true, std::memory_order_relaxed);
  const std::unique_ptr<ForUser> made = element.take_for_user();
  if (made == nullptr) return;
  made_for_user_ = true;
  const auto all = for_user_.lock();
  std::ranges::move(made->files, std::back_inserter(all->files));
  if (made->ui.is_object()) join_ui(all->ui, made->ui);
}

void NodeCall::block(const heddle_value& blocker) {
  if (is_blocked_) return;
  is_blocked_ = true;
  blocked_message_ = std::get<Blocker>(blocker.content).message;
  const Value silent = make_value(Blocker{});
  for (std::uint32_t o = 0; o < output_count_; ++o) set_output(o, silent);
}

void NodeCall::take_list(std::uint32_t index, Value list) {
  if (const heddle_value* blocker = find_blocker(*list)) return block(*blocker);
  const heddle_port& port = node_->type->input(index);
  const PortCheck& check = node_->type->check(index);
  for (const Value& item : std::get<List>(list->content).items) {
    if (check.is_needed()) check.check(*item, shared_.environment.catalog.get());
    if ((port.flags & HEDDLE_PORT_PROMPT) != 0) check_prompt(port, *item);
  }
  set_own_input(index, std::move(list));
}

const heddle_value* NodeCall::input(std::uint32_t index) {
  return index < input_count_ ? inputs_[index] : nullptr;
}

void NodeCall::set_output(std::uint32_t index, Value value) {
  if (index >= output_count_)
    throw Error(Code::invalid_argument, cat(node_->type->name(), " has ", output_count_,
                                            " outputs, it set number ", index));
  const bool is_list = (node_->type->output(index).flags & HEDDLE_PORT_LIST) != 0;
  outputs_[index] = is_list && value && is_blocker(*value) ? make_value(List{{std::move(value)}})
                                                           : std::move(value);
}

heddle_tensor* NodeCall::weight(std::uint32_t) {
  throw Error(Code::unsupported, "only blocks of a model have weights");
}

void NodeCall::want(std::string_view input) {
  const auto port = node_->type->find_input(input);
  if (!port) {
    std::vector<std::string_view> names;
    for (std::uint32_t i = 0; i < node_->type->input_count(); ++i)
      names.push_back(node_->type->input(i).name);
    throw Error(Code::invalid_argument,
                cat(node_->type->name(), " wants its input ", quote(input),
                    ", which it has not declared.", did_you_mean(input, names)));
  }
  wanted_.emplace_back(input);
}

void NodeCall::progress(double fraction, std::string_view note) {
  shared_.observer.node_progress(*node_, (double(element_) + fraction) / double(element_count_),
                                 note);
}

void NodeCall::wrote(std::string_view path, std::string_view ui_json) {
  made_for_user_ = true;
  if (!path.empty()) {
    for_user_.lock()->files.emplace_back(path);
    shared_.observer.file_written(*node_, path);
  }
  if (ui_json.empty()) return;
  try {
    const Json ui = parse_ui(ui_json);
    join_ui(for_user_.lock()->ui, ui);
  } catch (const Error& error) {
    warn(cat("what the node shows is left out: ", error.what()));
  }
}

void NodeCall::warn(std::string_view message) { shared_.observer.warning(node_, message); }

void NodeCall::preview(const heddle_preview& picture) {
  if (preview_method() == HEDDLE_PREVIEW_NONE) return;
  if (picture.width == 0 || picture.height == 0 || picture.pixels == nullptr)
    return warn("a preview without pixels is left out");
  shared_.observer.preview(*node_, device(), picture);
}

const char* NodeCall::device() const {
  return on_host_ ? "host" : device_->state->device().name().c_str();
}

Tensor NodeCall::make(const heddle_tensor_info& info) {
  if (on_host_) return make_host(info);
  if (shared_.use != nullptr) shared_.use->mark(assignment_->device, *node_);
  return device_->state->make(info, &device_claim_);
}

Tensor NodeCall::make_host(const heddle_tensor_info& info) {
  return make_host_tensor(checked_info(info, "tensor"), shared_.environment.host_ledger, &claim_);
}

Tensor NodeCall::upload(const heddle_tensor_info& info, const void* src) {
  return work_device().upload(info, src);
}

void NodeCall::read(heddle_tensor* tensor, void* dst, std::size_t bytes) {
  work_device().read(Tensor::share(tensor), dst, bytes);
  if (cancelled()) throw Error(Code::cancelled, "cancelled");  // perhaps nobody has written it
  // What was computed of lost pages is not to be written anywhere.
  if (shared_.models != nullptr) shared_.models->check();
}

CancelFlag* NodeCall::cancel_flag() {
  shared_.control.work()->renew(cancel_flag_, index_);
  return cancel_flag_.get();
}

void NodeCall::op(std::uint32_t op, std::span<heddle_tensor* const> in,
                  std::span<heddle_tensor* const> out, std::span<const std::byte> attrs) {
  work_device().op(op, in, out, attrs, cancel_flag(), &device_claim_);
}

Value NodeCall::build_model(std::string_view role, const Checkpoint& checkpoint,
                            const heddle_value* config) {
  if (!shared_.environment.build_model)
    throw Error(Code::unsupported, "this engine has no model families");
  return shared_.environment.build_model(role, checkpoint, config, node_->hints);
}

std::unique_ptr<SessionHandle> NodeCall::open(const SessionRequest& request) {
  used_device_ = true;
  const auto choose_devices = [this, number = calls_++, is_stage = works_in_stages_](
                                  const Model& model, const CallSpec& call) {
    if (shared_.environment.on_open) shared_.environment.on_open(*node_, call);
    if (shared_.models != nullptr) shared_.models->use(model);
    SessionDeviceSlots chosen = session_device_slots(
        shared_.environment, {*node_, *assignment_, number, is_stage}, model, call);
    if (shared_.use != nullptr)
      for (const SessionDeviceSlot& each : chosen.device_slots)
        shared_.use->mark(*each.state, *node_);
    return chosen;
  };
  const auto cancelled = [control = &shared_.control] { return control->cancelled(); };
  return std::make_unique<PausableSession>(
      shared_, std::make_unique<Session>(choose_devices, request, cancelled, shared_.timeline,
                                         [this] { return cancel_flag(); }));
}

std::string NodeCall::find_file(std::string_view folder, std::string_view name) {
  if (!shared_.environment.folders.find)
    throw Error(Code::unsupported, "this engine was given no folders to look in");
  return shared_.environment.folders.find(folder, name);
}

std::vector<std::string> NodeCall::folder_places(std::string_view folder) {
  if (!shared_.environment.folders.places) return {};
  return shared_.environment.folders.places(folder);
}

std::string NodeCall::output_folder(std::string_view kind) {
  if (!shared_.environment.folders.output)
    throw Error(Code::unsupported, "this engine was given no output folder");
  if (!shared_.control.may_write()) {
    // As long as its maker works, the run has not computed all, and others may wait for that.
    await_arrivals();
    shared_.control.set_has_computed();  // before anybody hears of it, and starts another run
    if (shared_.about_to_wait) shared_.about_to_wait();
    shared_.observer.node_waiting(*node_);
    shared_.control.wait_to_write();
    const bool is_told = shared_.control.releases() && !shared_.control.may_write();
    if (is_told && shared_.states != nullptr && !deferred()) suspend();
    if (cancelled()) throw Error(Code::cancelled, "cancelled");
  }
  return shared_.environment.folders.output(kind);
}

std::uint64_t NodeCall::identify_file(std::string_view path) {
  const auto note = [&](const FileIdentity& file) {
    if (noted_files_ != nullptr) noted_files_->push_back({path, file});
  };
  if (shared_.hashes != nullptr) {
    const FileHashes::Found found = shared_.hashes->find(path);
    note(found.identity);
    return found.hash.lo;
  }
  const FileIdentity file = identify_file_for_key(path);
  note(file);
  return Hasher()
      .add(path)
      .add(file.device)
      .add(file.inode)
      .add(file.size)
      .add(file.modified_ns)
      .add(file.changed_ns)
      .finish()
      .lo;
}

heddle_shard NodeCall::shard(std::uint32_t) {
  throw Error(Code::unsupported, "only blocks of a model are divided");
}

const heddle_value* NodeCall::saved_state() {
  if (shared_.states == nullptr || noted_files_ != nullptr) return nullptr;
  Value state = shared_.states->state_of(index_, element_);
  if (!state) return nullptr;
  owned_.push_back(std::move(state));
  return owned_.back().get();
}

bool NodeCall::at_boundary() {
  if (shared_.states == nullptr || noted_files_ != nullptr || deferred()) return false;
  wait_while_paused(shared_);
  return !shared_.control.cancelled() && shared_.states->wants_state(index_);
}

heddle_completion* NodeCall::defer() {
  if (completion_ == nullptr) {
    completion_ = std::make_unique<heddle_completion>();
    completion_->call = this;
    completion_->complete = shared_.complete;
  }
  return completion_.get();
}

NewNodes& NodeCall::new_nodes() {
  if (!node_->type->has(HEDDLE_NODE_EXPANDS))
    throw Error(Code::unsupported, cat(node_->type->name(),
                                       " asks for new nodes, which its description does not say "
                                       "(HEDDLE_NODE_EXPANDS)"));
  if (new_nodes_ == nullptr) new_nodes_ = std::make_unique<NewNodes>();
  return *new_nodes_;
}

Value NodeCall::look_up(std::string_view id) {
  if (!shared_.look_up || noted_files_ != nullptr)
    throw Error(Code::unsupported, "nodes can be looked up while they run, and not before");
  return shared_.look_up(id);
}

std::uint64_t fingerprint(const NodeCall::Shared& shared, const Node& node, RunDevice& device,
                          const Assignment& assignment, UsedFiles& files) {
  const Instance instance(*node.type, shared.environment.host);
  NodeCall call(shared);
  call.begin(node, device, assignment);
  call.note_files(files);
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
    if (const auto* literal = std::get_if<Value>(&node.inputs[i]))
      call.set_input(i, literal->get());
  for (const auto& [name, binding] : node.extra)
    if (const auto* literal = std::get_if<Value>(&binding)) call.add_extra(name, *literal);
  std::uint64_t hash = 0;
  throw_status(node.type->desc().fingerprint(instance.self(), &call, &hash), "");
  return hash;
}

}  // namespace heddle::engine
