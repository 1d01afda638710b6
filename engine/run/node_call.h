// One live call of one workflow node: what heddle_ctx is while the executor runs it. Ops are
// enqueued on the node's device at once. Belongs to one run and to one thread at a time; used for
// one node after another, by each until it is complete.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/graph/graph.h"
#include "engine/memory/host_tensor.h"
#include "engine/place/plan.h"
#include "engine/resources/device_use.h"
#include "engine/resources/environment.h"
#include "engine/resources/timeline.h"
#include "engine/run/arrival.h"
#include "engine/run/control.h"
#include "engine/run/for_user.h"
#include "engine/run/observer.h"
#include "engine/run/run_files.h"
#include "engine/tensor/call.h"

struct heddle_completion;

namespace heddle::engine {

class NodeCall;

// A deferred call whose node has called complete().
struct Completion {
  NodeCall* call = nullptr;
  heddle_status* status = nullptr;
};

// What one node sees of its run, while it is called. A worker has one, for one node after another.
// Over 15 members: each is the answer to something that a node may ask, and they are reused from
// node to node, without an allocation.
class NodeCall final : public heddle_ctx {
 public:
  // Keeps the states of calls that go on later (heddle_resume_service). Any thread.
  class States {
   public:
    virtual ~States() = default;
    virtual Value state_of(NodeIndex node, std::size_t element) = 0;  // empty: it begins
    virtual bool wants_state(NodeIndex node) = 0;  // of a call that is between two steps
    // `state`: in host memory. False: the call does not go on.
    virtual bool save(NodeIndex node, std::size_t element, Value state) = 0;
  };
  // Outputs that are read while they are being made (heddle_parts_service). The call's thread.
  class Parts {
   public:
    virtual ~Parts() = default;
    // False: nobody reads it before it is whole.
    virtual bool begin_output(const Source& output, std::shared_ptr<Arrival> arrival) = 0;
    virtual void take_back_output(const Source& output) = 0;
  };
  struct Shared {  // the same for all calls of a run
    Environment& environment;
    Observer& observer;
    RunControl& control;
    // Called once when a deferred call completes, on any thread.
    std::function<void(std::list<Completion>&)> complete;  // one, made when it was deferred
    Timeline* timeline = nullptr;
    DeviceUse* use = nullptr;      // notified of every device that is given work
    FileHashes* hashes = nullptr;  // files count by their content; nullptr: by place, size and date
    MappedModels* models = nullptr;  // notified of every model that is opened
    // The nodes of the run by their ids; empty: nobody can say.
    std::function<Value(std::string_view)> look_up = {};
    // A node is about to wait for the end of a pause or for its turn to write; empty: nobody has to
    // know.
    std::function<void()> about_to_wait = {};
    States* states = nullptr;  // nullptr: nobody keeps any
    Parts* parts = nullptr;    // nullptr: everybody waits for the whole
  };

  // `shared` has to outlive it.
  explicit NodeCall(const Shared& shared) : shared_(shared) {}
  ~NodeCall() override;

  // From now on it is the call of this node, which has no inputs yet and has set no outputs.
  void begin(const Node& node, RunDevice& device, const Assignment& assignment,
             NodeIndex index = 0);
  void end();  // releases inputs and outputs
  // Claims host memory, of which make_host() takes first. Throws out_of_memory with the ledger.
  void reserve_host(std::uint64_t bytes);
  // The same of its device, of which make() and op() take first; room is made before the node
  // begins. Where there is none it goes without: it may need less than it told.
  void reserve_device(std::uint64_t bytes);
  Reservation* device_claim() { return &device_claim_; }
  void release_claim() {  // what is left of both
    claim_.release();
    device_claim_.release();
  }
  // From now on files that the node asks about are noted there.
  void note_files(UsedFiles& files) { noted_files_ = &files; }

  // Borrowed until the call ends. A literal, which was checked when the workflow was bound.
  void set_input(std::uint32_t index, const heddle_value* value) { inputs_[index] = value; }
  // What came through a link, whoever made it: nothing, as a switch gives where nothing is linked
  // to it, counts as not linked where the port is optional. Throws RefusedValue for what the port
  // does not take.
  void take_input(std::uint32_t index, const heddle_value* value) {
    if (value != nullptr && is_blocker(*value)) return block(*value);
    if (value != nullptr && std::holds_alternative<None>(value->content) && takes_no_none(index))
      value = nullptr;
    const PortCheck& check = node_->type->check(index);
    if (value != nullptr && check.is_needed())
      check.check(*value, shared_.environment.catalog.get());
    if (value != nullptr && (node_->type->input(index).flags & HEDDLE_PORT_PROMPT) != 0)
      check_prompt(node_->type->input(index), *value);
    inputs_[index] = value;
  }
  // It reads a blocker: the call is not made, and its outputs are blocked. The first one counts.
  void block(const heddle_value& blocker);
  bool is_blocked() const { return is_blocked_; }
  // What it has asked for instead of giving it; nullptr: nothing.
  const NewNodes* asked() const { return new_nodes_.get(); }
  std::unique_ptr<NewNodes> take_asked() { return std::move(new_nodes_); }
  // What is to be reported of that; empty: nothing.
  const std::string& blocked_message() const { return blocked_message_; }
  // A whole list, whose elements are held to what the port takes.
  void take_list(std::uint32_t index, Value list);
  void set_own_input(std::uint32_t index, Value value) {
    inputs_[index] = value.get();
    owned_.push_back(std::move(value));
  }
  // Keeps what an input was set to until the call ends.
  void keep(Value value) { owned_.push_back(std::move(value)); }
  // What it reads is still being made.
  void add_arrival(std::shared_ptr<Arrival> arrival) { arrivals_.push_back(std::move(arrival)); }
  // From now on it may begin its outputs: it is executed, as a whole.
  void may_begin_outputs() { may_begin_ = true; }
  bool reads_parts() const { return !arrivals_.empty(); }
  bool is_taken_back() const;  // some of that is not made after all
  std::chrono::steady_clock::duration waited() const { return waited_; }  // for rows of that
  std::span<const std::shared_ptr<Arrival>> arrivals() const { return arrivals_; }
  void add_extra(std::string name, Value value) {
    extras_.emplace_back(std::move(name), std::move(value));
  }
  std::span<Value> outputs() { return {outputs_.data(), output_count_}; }
  const std::vector<std::string>& wanted() const { return wanted_; }
  void clear_wanted() { wanted_.clear(); }
  // What the node has made for the user so far.
  bool has_made_for_user() const { return made_for_user_; }
  // nullptr: nothing
  std::unique_ptr<ForUser> take_for_user() { return made_for_user_ ? take_made() : nullptr; }
  // Of a node that is called for each element of a list: this call is number `index` of `count`.
  void set_element(std::size_t index, std::size_t count);
  // Takes over what the call of an element has made for the user, and what it has used.
  void absorb(NodeCall& element);
  bool deferred() const { return completion_ != nullptr; }
  // Where it is placed, for whoever works in its name; nullptr: in host memory.
  DeviceState* placed_on() { return on_host_ ? nullptr : &work_device(); }
  bool used_device() const { return used_device_; }  // it may have enqueued something there
  bool has_called_model() const { return calls_ > 0; }
  // It has been stopped, and goes on in another call: what it says in the end is no failure.
  bool is_suspended() const { return is_suspended_; }
  bool is_not_to_be_cached() const { return is_not_to_be_cached_.load(std::memory_order_relaxed); }
  // The node has heard that the run is cancelled: what it gives may be half done.
  bool was_told_cancelled() const { return was_told_cancelled_.load(std::memory_order_relaxed); }

  const heddle_value* input(std::uint32_t index) override;
  void set_output(std::uint32_t index, Value value) override;
  heddle_tensor* weight(std::uint32_t slot) override;
  void want(std::string_view input) override;
  std::span<const std::pair<std::string, Value>> extras() override { return extras_; }
  bool cancelled() const override {
    if (!shared_.control.cancelled()) return false;
    was_told_cancelled_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Without telling the node.
  bool is_run_cancelled() const { return shared_.control.cancelled(); }
  void progress(double fraction, std::string_view note) override;
  void wrote(std::string_view path, std::string_view ui_json) override;
  void warn(std::string_view message) override;
  void do_not_cache() override { is_not_to_be_cached_.store(true, std::memory_order_relaxed); }
  std::int32_t preview_method() const override { return shared_.observer.preview_method(); }
  void preview(const heddle_preview& picture) override;
  void send_picture(std::string_view png) override { shared_.observer.picture_sent(*node_, png); }
  const char* node() const override { return node_->id.c_str(); }
  const char* device() const override;
  heddle_dtype compute() const override { return device_->state->device().compute(); }
  void* stream() override { return on_host_ ? nullptr : work_device().native_stream(); }
  Tensor make(const heddle_tensor_info& info) override;
  Tensor make_host(const heddle_tensor_info& info) override;
  Tensor upload(const heddle_tensor_info& info, const void* src) override;
  void read(heddle_tensor* tensor, void* dst, std::size_t bytes) override;
  void op(std::uint32_t op, std::span<heddle_tensor* const> in, std::span<heddle_tensor* const> out,
          std::span<const std::byte> attrs) override;
  Value build_model(std::string_view role, const Checkpoint& checkpoint,
                    const heddle_value* config) override;
  std::unique_ptr<SessionHandle> open(const SessionRequest& request) override;
  std::string find_file(std::string_view folder, std::string_view name) override;
  std::vector<std::string> folder_places(std::string_view folder) override;
  // Waits until the run may write.
  std::string output_folder(std::string_view kind) override;
  std::uint64_t identify_file(std::string_view path) override;
  const heddle_value* saved_state() override;
  bool at_boundary() override;
  void save_state(Value state) override;
  bool begin_output(std::uint32_t output, Tensor tensor) override;
  void made_rows(std::uint32_t output, std::int64_t rows) override;
  void take_back_output(std::uint32_t output) override;
  void await_rows(const heddle_tensor& part, std::int64_t rows) override;
  std::uint32_t begin_stages() override;
  void set_written(heddle_tensor& tensor) override;
  void join_stages() override;
  void end_stages() override { works_in_stages_ = false; }
  heddle_completion* defer() override;
  NewNodes& new_nodes() override;
  Value look_up(std::string_view id) override;
  std::size_t element() const override { return element_; }
  std::uint64_t run() const override { return reinterpret_cast<std::uintptr_t>(&shared_.control); }
  std::shared_ptr<void> count_host(std::uint64_t bytes, std::string_view what) override {
    return count_host_bytes(bytes, what, shared_.environment.host_ledger, &claim_);
  }
  heddle_shard shard(std::uint32_t input) override;

 private:
  std::unique_ptr<ForUser> take_made();
  void await_arrivals();  // all that it reads is whole then; throws as await_rows()
  [[noreturn]] void suspend();
  void check_prompt(const heddle_port& port, const heddle_value& value) const;
  bool takes_no_none(std::uint32_t index) const {
    const heddle_port& port = node_->type->input(index);
    return (port.flags & HEDDLE_PORT_OPTIONAL) != 0 && port.type != std::string_view("*");
  }
  DeviceState& work_device() {
    used_device_ = true;
    if (shared_.use != nullptr) shared_.use->mark(assignment_->device, *node_);
    return *device_->state;
  }

  // Whether what it enqueues from now on is still wanted.
  CancelFlag* cancel_flag();

  const Shared& shared_;
  CancelFlagRef cancel_flag_;
  NodeIndex index_ = 0;
  const Node* node_ = nullptr;
  RunDevice* device_ = nullptr;
  const Assignment* assignment_ = nullptr;
  UsedFiles* noted_files_ = nullptr;
  std::uint32_t calls_ = 0;  // of models, so far
  bool on_host_ = false;
  bool used_device_ = false;
  bool is_blocked_ = false;
  bool is_suspended_ = false;
  mutable std::atomic<bool> was_told_cancelled_{false};
  std::atomic<bool> is_not_to_be_cached_{false};
  std::string blocked_message_;
  // As many as the node with most of them has had; they are not made anew for each.
  std::uint32_t input_count_ = 0, output_count_ = 0;
  std::vector<const heddle_value*> inputs_;
  std::vector<Value> owned_, outputs_;
  std::vector<std::pair<std::string, Value>> extras_;
  std::vector<std::string> wanted_;
  Reservation claim_, device_claim_;  // of host memory; of the device
  std::size_t element_ = 0, element_count_ = 1;
  bool may_begin_ = false;
  bool works_in_stages_ = false;
  std::chrono::steady_clock::duration waited_{};
  std::vector<std::shared_ptr<Arrival>> arrivals_;                         // that it reads
  std::vector<std::pair<std::uint32_t, std::shared_ptr<Arrival>>> begun_;  // outputs
  std::atomic<bool> made_for_user_{false};
  Guarded<ForUser> for_user_;
  std::unique_ptr<heddle_completion> completion_;
  std::unique_ptr<NewNodes> new_nodes_;
};

// What a node says of its outside state, by a call of its own, and the files that it has looked at
// for that. Throws, with the node's name.
std::uint64_t fingerprint(const NodeCall::Shared& shared, const Node& node, RunDevice& device,
                          const Assignment& assignment, UsedFiles& files);

}  // namespace heddle::engine

// The handle a deferred call is finished by; the call owns it.
struct heddle_completion {
  heddle::engine::NodeCall* call;
  std::atomic<bool> done{false};
  std::function<void(std::list<heddle::engine::Completion>&)> complete;
  // Made before: the thread that completes has nobody to tell a lack of memory.
  std::list<heddle::engine::Completion> entry = std::list<heddle::engine::Completion>(1);

  // Once. It may be gone when this returns.
  void finish(heddle_status* status) {
    entry.front() = {call, status};
    complete(entry);
  }
};
