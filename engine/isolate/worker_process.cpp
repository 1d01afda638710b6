#include "engine/isolate/worker_process.h"

#include <chrono>
#include <new>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// To load the plugin, which may wait for a disk; so long a process that starts is waited for.
constexpr std::chrono::seconds kMostStart{120};

}  // namespace

Lane::Lane(int socket) : channel(socket), memory_(sizeof(LaneFlags), SharedMemory::Writers::owner) {
  new (memory_.data()) LaneFlags;
}

WorkerProcess::WorkerProcess(std::shared_ptr<Spawner> spawner, const std::filesystem::path& program,
                             const WorkerSettings& settings)
    : spawner_(std::move(spawner)), memory_{settings.memory_bytes} {
  const auto [ours, theirs] = socket_pair();
  control_ = std::make_shared<WorkerControl>(ours);
  {
    const FileDescriptor its_end(theirs);
    process_ = spawner_->start(program, settings.arguments(), its_end.number());
  }
  const auto begin = std::chrono::steady_clock::now();
  bool is_slow = false;
  control_->while_waiting([&] {
    is_slow = std::chrono::steady_clock::now() - begin > kMostStart;
    if (is_slow || has_ended(process_)) throw ChannelClosed();
  });
  try {
    described_ = control_->receive().body;
  } catch (const ChannelClosed&) {
    throw Error(Code::io, cat(settings.plugin, ": the worker that was to load the plugin ",
                              end(is_slow).how, " before it had"));
  } catch (...) {
    end(true);
    throw;
  }
  control_->have_patience();
}

WorkerProcess::~WorkerProcess() { end(false); }

WorkerProcess::Ending WorkerProcess::end(bool hangs, const std::optional<Failure>& because) {
  Lent lent;  // goes without the locks
  const auto ended = end_.lock();
  if (*ended) return **ended;
  is_alive_ = false;
  control_->shut_down();  // first: nothing of what follows waits until the worker listens
  memory_.written->close();
  memory_.read->close();
  lanes_.lock()->clear();
  std::swap(lent, *lent_.lock());
  if (hangs) {
    kill_process(process_);
    *ended = Ending{"was ended", because};
  } else {
    *ended = Ending{end_process(process_), because};
  }
  return **ended;
}

std::unique_ptr<Lane> WorkerProcess::take_lane() {
  {
    const auto lanes = lanes_.lock();
    if (!lanes->empty()) {
      std::unique_ptr<Lane> lane = std::move(lanes->back());
      lanes->pop_back();
      return lane;
    }
  }
  const auto [ours, theirs] = socket_pair();
  const FileDescriptor its_end(theirs);
  auto lane = std::make_unique<Lane>(ours);
  const FileDescriptor flags(lane->memory().read_only_descriptor());
  // Both as one: the worker takes the flags for those of the lane before them.
  const auto lanes = lanes_.lock();
  control_->send(ControlMessage::lane, {}, its_end.number());
  control_->send(ControlMessage::flags, {}, flags.number());
  return lane;
}

void WorkerProcess::give_back(std::unique_ptr<Lane> lane) {
  if (is_alive_) lanes_.lock()->push_back(std::move(lane));
}

std::shared_ptr<SharedStorage> WorkerProcess::make_shared_memory(std::uint64_t bytes,
                                                                 const CountBytes& count) {
  const auto check = [&](std::uint64_t more) {
    const std::uint64_t has = lent_.lock()->written_bytes;
    if (memory_.most_written > 0 &&
        (has > memory_.most_written || more > memory_.most_written - has))
      throw Error(Code::out_of_memory,
                  cat("a worker has ", has, " bytes of memory that it shares and asks for ", more,
                      " more; its limit is ", memory_.most_written, " (--isolate-memory)"));
  };
  check(bytes);
  auto storage =
      std::make_shared<SharedStorage>(memory_.written->take(bytes, count), memory_.written);
  lend(storage, true);
  return storage;
}

std::shared_ptr<SharedStorage> WorkerProcess::make_read_memory(std::uint64_t bytes,
                                                               const CountBytes& count) {
  return std::make_shared<SharedStorage>(memory_.read->take(bytes, count), memory_.read);
}

void WorkerProcess::lend(const std::shared_ptr<SharedStorage>& storage, bool is_writable) {
  storage->buffer().map_in(control_, is_writable);
  const auto lent = lent_.lock();
  if (!is_alive_) return;  // nobody would give it back
  LentMemory& memory = lent->memory.by_id[storage->buffer().id()];
  memory.storage = storage;
  ++memory.count;
  if (!is_writable || memory.is_written) return;
  memory.is_written = true;
  lent->written_bytes += storage->bytes();
}

void WorkerProcess::lend(const std::shared_ptr<SharedDeviceMemory>& memory) {
  memory->buffer().map_in(control_);
  const auto lent = lent_.lock();
  if (!is_alive_) return;
  LentMemory& its = lent->memory.by_id[memory->buffer().id()];
  its.device = memory;
  ++its.count;
}

std::shared_ptr<SharedDeviceMemory> WorkerProcess::lent_device_memory(std::uint64_t id) const {
  const auto lent = lent_.lock();
  const auto found = lent->memory.by_id.find(id);
  if (found == lent->memory.by_id.end() || found->second.device == nullptr)
    throw Error(Code::internal,
                cat("a worker gives memory ", id, " of a device, which it does not have"));
  return found->second.device;
}

std::shared_ptr<SharedStorage> WorkerProcess::lent_memory(std::uint64_t id) const {
  const auto lent = lent_.lock();
  const auto found = lent->memory.by_id.find(id);
  if (found == lent->memory.by_id.end() || found->second.storage == nullptr)
    throw Error(Code::internal, cat("a worker gives memory ", id, ", which it does not have"));
  return found->second.storage;
}

std::uint64_t WorkerProcess::lend(Value value) {
  const auto lent = lent_.lock();
  const std::uint64_t id = ++lent->last_value;
  if (is_alive_) lent->values.by_id[id] = {std::move(value), 1};
  return id;
}

Value WorkerProcess::lent_value(std::uint64_t id) const {
  const auto lent = lent_.lock();
  const auto found = lent->values.by_id.find(id);
  if (found == lent->values.by_id.end())
    throw Error(Code::internal, cat("a worker gives the value ", id, ", which it does not have"));
  return found->second.value;
}

template <class T>
void WorkerProcess::let_go(const Lent& lent, LentThings<T>& things, std::uint64_t id,
                           std::uint64_t count) {
  const auto found = things.by_id.find(id);
  if (found == things.by_id.end() || found->second.count == 0) return;
  if (count >= found->second.count) things.unused.push_back(id);
  found->second.count -= std::min(count, found->second.count);
  found->second.last_call = lent.last_call;
}

template <class T>
void WorkerProcess::take_unused(Lent& lent, LentThings<T>& things, std::vector<T>& gone) {
  gone.reserve(things.unused.size());
  std::erase_if(things.unused, [&](std::uint64_t id) {
    const auto found = things.by_id.find(id);
    if (found == things.by_id.end() || found->second.count > 0) return true;  // it came again
    if (!lent.calls.empty() && *lent.calls.begin() <= found->second.last_call) return false;
    if constexpr (requires { found->second.is_written; })
      if (found->second.is_written) lent.written_bytes -= found->second.storage->bytes();
    gone.push_back(std::move(found->second));
    things.by_id.erase(found);
    return true;
  });
}

std::uint64_t WorkerProcess::begin_call() {
  const auto lent = lent_.lock();
  const std::uint64_t call = ++lent->last_call;
  lent->calls.insert(call);
  return call;
}

void WorkerProcess::end_call(std::uint64_t call) noexcept {
  Gone gone;  // goes without the lock
  const auto lent = lent_.lock();
  lent->calls.erase(call);
  try {
    take_unused(*lent, gone);
  } catch (const std::bad_alloc&) {
    // The end of the next call takes them.
  }
}

void WorkerProcess::take_unused(Lent& lent, Gone& gone) {
  take_unused(lent, lent.memory, gone.memory);
  take_unused(lent, lent.values, gone.values);
}

void WorkerProcess::release(BytesReader& from) {
  Gone gone;
  const auto lent = lent_.lock();
  const auto read = [&](auto& things) {
    for (std::uint32_t left = from.count(); left > 0; --left) {
      const auto id = from.number<std::uint64_t>();
      let_go(*lent, things, id, from.number<std::uint64_t>());
    }
  };
  read(lent->memory);
  read(lent->values);
  take_unused(*lent, gone);
}

void WorkerProcess::take_back_memory(std::uint64_t id) {
  Gone gone;
  const auto lent = lent_.lock();
  let_go(*lent, lent->memory, id, 1);
  take_unused(*lent, gone);
}

void WorkerProcess::take_back_value(std::uint64_t id) {
  Gone gone;
  const auto lent = lent_.lock();
  let_go(*lent, lent->values, id, 1);
  take_unused(*lent, gone);
}

void WorkerProcess::drop(DropKind kind, std::uint64_t id) {
  BytesWriter body;
  body.number(std::uint8_t(kind));
  body.number(id);
  body.number(std::uint64_t{1});
  if (is_alive_) control_->send(ControlMessage::drop, body);
}

}  // namespace heddle::engine
