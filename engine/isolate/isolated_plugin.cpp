#include "engine/isolate/isolated_plugin.h"

#include <unistd.h>

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/isolate/isolating.h"
#include "engine/isolate/node_slots.h"
#include "engine/isolate/remote_call.h"

namespace heddle::engine {

// One of its node types, as the engine calls it.
class IsolatedNode final : public NodeProxy {
 public:
  IsolatedNode(IsolatedPlugin& plugin, std::uint32_t type, BytesReader& from)
      : plugin_(plugin), type_(type), node_(from), slot_(*this) {
    heddle_node_desc& desc = node_.desc;
    const NodeFunctions& has = node_.functions;
    slot_.set_functions(desc, node_.validator);
    if (!has.has_instances) desc.create = nullptr;
    if (!has.has_instances) desc.destroy = nullptr;
    if (!has.needs) desc.need = nullptr;
    if (!has.fingerprints) desc.fingerprint = nullptr;
    if (!has.infers) desc.infer = nullptr;
    desc.validator = has.validates ? &node_.validator : nullptr;
    desc.flags &= ~kNodeMayUseDevices;  // the engine's own
    // Which devices there are, and whether they share memory, is known later.
    if (plugin_.may_use_devices() && (desc.flags & HEDDLE_NODE_HOST) == 0)
      desc.flags |= kNodeMayUseDevices;
    desc.flags |= HEDDLE_NODE_HOST;
  }
  const heddle_node_desc* desc() const { return &node_.desc; }

  heddle_status* execute(void* self, heddle_ctx* ctx) override {
    std::unique_ptr<RemoteCall> call;
    if (heddle_status* failure = to_status([&] { call = begin(self, ctx); })) return failure;
    return RemoteCall::execute(std::move(call));
  }
  heddle_status* create(void** self) override {
    return to_status([&] { *self = new Instance; });
  }
  void destroy(void* self) override {
    const std::unique_ptr<Instance> instance(static_cast<Instance*>(self));
    instance->leave();
  }
  heddle_status* need(void* self, heddle_ctx* ctx) override {
    return called([&] { return begin(self, ctx)->need(); });
  }
  heddle_status* fingerprint(void* self, heddle_ctx* ctx, std::uint64_t* hash) override {
    return called([&] { return begin(self, ctx)->fingerprint(hash); });
  }
  heddle_status* infer(heddle_infer* question) override {
    return called([&] { return begin(nullptr, nullptr)->infer(question); });
  }
  heddle_status* validate(heddle_validation* question) override {
    return called([&] { return begin(nullptr, nullptr)->validate(question); });
  }

 private:
  // Made in a worker when it is called first, and again where that worker has ended.
  struct Instance {
    std::shared_ptr<WorkerProcess> worker;
    std::uint64_t id = 0;
    void leave() {
      if (worker == nullptr) return;
      worker->drop(DropKind::instance, id);
      --worker->instances;
      worker = nullptr;
    }
  };

  template <class F>
  static heddle_status* called(F&& call) {
    heddle_status* status = nullptr;
    heddle_status* const failure = to_status([&] { status = call(); });
    return failure != nullptr ? failure : status;
  }

  std::unique_ptr<RemoteCall> begin(void* self, heddle_ctx* ctx) {
    auto* const instance = static_cast<Instance*>(self);
    std::shared_ptr<WorkerProcess> wanted = ctx == nullptr ? nullptr : worker_of_inputs(*ctx);
    if (wanted == nullptr && instance != nullptr && instance->worker != nullptr &&
        instance->worker->is_alive())
      wanted = instance->worker;
    const std::shared_ptr<WorkerProcess> worker =
        plugin_.worker_for(ctx == nullptr ? 0 : ctx->run(), std::move(wanted));
    if (instance != nullptr && instance->worker != worker) {
      instance->leave();
      instance->worker = worker;
      instance->id = worker->new_instance();
      ++worker->instances;
    }
    return std::make_unique<RemoteCall>(
        worker,
        RemoteCall::Of{plugin_.id(), &node_, type_, instance == nullptr ? 0 : instance->id,
                       plugin_.most_seconds(), plugin_.may_use_devices()},
        ctx);
  }

  // Of an object that one of its own workers has; those of others are refused when they are sent.
  std::shared_ptr<WorkerProcess> worker_of_inputs(heddle_ctx& ctx) const {
    std::shared_ptr<WorkerProcess> worker;
    const auto add = [&](const heddle_value* value) {
      if (value == nullptr) return;
      const std::shared_ptr<WorkerProcess> its = worker_of(*value);
      if (its != nullptr && worker == nullptr) worker = its;
    };
    for (std::uint32_t i = 0; i < node_.desc.input_count; ++i) add(ctx.input(i));
    for (const auto& [name, value] : ctx.extras()) add(value.get());
    return worker;
  }

  IsolatedPlugin& plugin_;
  const std::uint32_t type_;
  DescribedNode node_;
  const NodeSlot slot_;
};

WorkerKind native_worker(const std::filesystem::path& plugin, const Isolation& isolation) {
  WorkerKind kind;
  kind.settings.plugin = plugin.string();
  kind.settings.program = worker_program().string();
  kind.settings.memory_bytes = isolation.memory_bytes;
  kind.settings.sandbox = isolation.sandbox;
  kind.call_seconds = isolation.call_seconds;
  kind.may_use_devices = isolation.memory_bytes == 0;
  return kind;
}

IsolatedPlugin::IsolatedPlugin(std::filesystem::path path, WorkerKind kind,
                               std::shared_ptr<Spawner> spawner)
    : path_(std::move(path)), kind_(std::move(kind)), spawner_(std::move(spawner)) {
  const std::shared_ptr<WorkerProcess> first = start_worker();
  BytesReader from(first->described());
  read_failure(from);
  id_ = from.text();
  version_ = from.text();
  const std::uint32_t count = from.count();
  for (std::uint32_t i = 0; i < count; ++i)
    nodes_.push_back(std::make_unique<IsolatedNode>(*this, i, from));
  workers_.lock()->push_back(first);
}

IsolatedPlugin::~IsolatedPlugin() = default;

std::vector<const void*> IsolatedPlugin::nodes() const {
  std::vector<const void*> descs;
  for (const auto& node : nodes_) descs.push_back(node->desc());
  return descs;
}

std::shared_ptr<WorkerProcess> IsolatedPlugin::start_worker() const {
  WorkerSettings settings = kind_.settings;
  settings.log_level = int(log_level());
  settings.engine = ::getpid();
  return std::make_shared<WorkerProcess>(spawner_, settings.program, settings);
}

std::shared_ptr<WorkerProcess> IsolatedPlugin::worker_for(std::uint64_t run,
                                                          std::shared_ptr<WorkerProcess> wanted) {
  Workers gone;  // end without the lock
  {
    const auto workers = workers_.lock();
    std::size_t idle = 0;
    std::erase_if(*workers, [&](std::shared_ptr<WorkerProcess>& worker) {
      const bool goes = !worker->is_alive() ||
                        (worker->is_idle() && (worker->has_ended_unseen() || ++idle > kMostIdle));
      if (goes) gone.push_back(worker);
      return goes;
    });
    const auto take = [&](const auto& is_it) {
      const auto found = std::ranges::find_if(*workers, is_it);
      return found == workers->end() ? nullptr : *found;
    };
    std::shared_ptr<WorkerProcess> chosen = take([&](const auto& w) { return w == wanted; });
    if (chosen == nullptr && run != 0)
      chosen = take([&](const auto& w) { return w->run == run && !w->is_idle() && w->is_alive(); });
    if (chosen == nullptr) {
      // In this order: a call that is lost marks the worker as ended before it is over.
      chosen = take([](const auto& w) { return w->is_idle() && w->is_alive(); });
      if (chosen != nullptr) chosen->run = run;
    }
    if (chosen != nullptr) {
      ++chosen->calls;
      return chosen;
    }
  }
  const std::shared_ptr<WorkerProcess> started = start_worker();
  BytesReader from(started->described());
  read_failure(from);
  if (from.text() != id_ || from.text() != version_)
    throw Error(Code::unsupported,
                cat(path_.string(), ": the plugin ", quote(id_), " is another than ", version_,
                    ", which the engine knows, as its files have changed. Start heddle again"));
  started->run = run;
  ++started->calls;
  workers_.lock()->push_back(started);
  return started;
}

}  // namespace heddle::engine
