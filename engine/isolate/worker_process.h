// A worker, as the engine has it: the process, its lanes, and what either end holds of the other's.
// Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/isolate/device_buffers.h"
#include "engine/isolate/shared_buffers.h"
#include "engine/isolate/spawner.h"
#include "engine/isolate/values.h"
#include "engine/isolate/worker.h"

namespace heddle::engine {

// One call at a time goes over it.
class Lane {
 public:
  explicit Lane(int socket);
  Channel channel;
  LaneFlags& flags() const { return *reinterpret_cast<LaneFlags*>(memory_.data()); }
  const SharedMemory& memory() const { return memory_; }

 private:
  SharedMemory memory_;
};

class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
 public:
  // Starts it, and waits for what it says of its plugin: described(). Throws what the plugin is
  // refused for, io for a process that ends.
  WorkerProcess(std::shared_ptr<Spawner> spawner, const std::filesystem::path& program,
                const WorkerSettings& settings);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;

  const std::string& described() const { return described_; }
  bool is_alive() const { return is_alive_; }
  bool has_ended_unseen() const { return is_alive_ && has_ended(process_); }
  // The failure that the engine has ended it for. No Error: an exception shares its text with its
  // copies, by a count in the standard library, where ThreadSanitizer does not see who is the last.
  struct Failure {
    Code code;
    std::string message;
  };
  struct Ending {
    std::string how;
    std::optional<Failure> because;
  };
  // Ends it, unless that is done, with what it has started, and tells how it ended, the same to
  // all. It holds nothing of the engine's any more. `hangs`: it is not waited for. `because`: what
  // other calls that were under way there are told.
  Ending end(bool hangs, const std::optional<Failure>& because = std::nullopt);

  // Throws io.
  std::unique_ptr<Lane> take_lane();
  void give_back(std::unique_ptr<Lane> lane);

  // Memory that the worker is to write: told by its id. Throws out_of_memory, also where the worker
  // would have more of it than it may have memory.
  std::shared_ptr<SharedStorage> make_shared_memory(std::uint64_t bytes, const CountBytes& count);
  // Memory for what it is to read.
  std::shared_ptr<SharedStorage> make_read_memory(std::uint64_t bytes, const CountBytes& count);
  // Sends it, and keeps it as long as the worker has it.
  void lend(const std::shared_ptr<SharedStorage>& storage, bool is_writable);
  std::shared_ptr<SharedStorage> lent_memory(std::uint64_t id) const;  // throws internal
  // The same with memory of a device, which it may write.
  void lend(const std::shared_ptr<SharedDeviceMemory>& memory);
  std::shared_ptr<SharedDeviceMemory> lent_device_memory(std::uint64_t id) const;
  std::uint64_t lend(Value value);
  Value lent_value(std::uint64_t id) const;  // throws internal
  // A call is under way from one to the other, which takes what the first gave. What the worker
  // lets go stays known until all calls that are under way then have ended: one of them may have
  // given it just before, in a message that is read later.
  std::uint64_t begin_call();
  void end_call(std::uint64_t call) noexcept;
  // What a worker has let go, as it tells at the end of a call.
  void release(BytesReader& from);
  // The same of one thing, which it has not been told of.
  void take_back_memory(std::uint64_t id);
  void take_back_value(std::uint64_t id);

  void drop(DropKind kind, std::uint64_t id);
  std::uint64_t new_instance() { return ++last_instance_; }

  // What keeps it from being another run's: calls under way, objects that the engine has handles
  // of, instances. `run` is guarded by the plugin's list of processes.
  std::atomic<int> calls{0}, objects{0}, instances{0};
  std::uint64_t run = 0;
  bool is_idle() const { return calls == 0 && objects == 0 && instances == 0; }

 private:
  struct LentMemory {
    std::shared_ptr<SharedStorage> storage;      // or
    std::shared_ptr<SharedDeviceMemory> device;  // this
    std::uint64_t count = 0;
    std::uint64_t last_call = 0;  // the last one that had begun when the count came to 0
    bool is_written = false;
  };
  struct LentValue {
    Value value;
    std::uint64_t count = 0;
    std::uint64_t last_call = 0;
  };
  template <class T>
  struct LentThings {
    std::map<std::uint64_t, T> by_id;
    std::vector<std::uint64_t> unused;  // ids whose count has come to 0
  };
  struct Lent {
    LentThings<LentMemory> memory;
    LentThings<LentValue> values;
    std::set<std::uint64_t> calls;  // those under way
    std::uint64_t last_call = 0;
    std::uint64_t last_value = 0;
    std::uint64_t written_bytes = 0;  // of memory that it may write
  };
  // What it writes and what it reads.
  struct Memory {
    std::uint64_t most_written;  // bytes; 0: no limit
    std::shared_ptr<SharedBuffers> written =
        std::make_shared<SharedBuffers>(SharedMemory::Writers::others);
    std::shared_ptr<SharedBuffers> read =
        std::make_shared<SharedBuffers>(SharedMemory::Writers::owner);
  };
  template <class T>
  static void let_go(const Lent& lent, LentThings<T>& things, std::uint64_t id,
                     std::uint64_t count);
  // Moves what no call can name any more to `gone`.
  struct Gone {
    std::vector<LentMemory> memory;
    std::vector<LentValue> values;
  };
  static void take_unused(Lent& lent, Gone& gone);
  template <class T>
  static void take_unused(Lent& lent, LentThings<T>& things, std::vector<T>& gone);

  const std::shared_ptr<Spawner> spawner_;
  pid_t process_ = 0;
  std::shared_ptr<WorkerControl> control_;
  std::string described_;
  std::atomic<bool> is_alive_{true};
  Guarded<std::optional<Ending>> end_;  // nothing: it has not ended
  Guarded<std::vector<std::unique_ptr<Lane>>> lanes_;
  const Memory memory_;
  Guarded<Lent> lent_;
  std::atomic<std::uint64_t> last_instance_{0};
};

}  // namespace heddle::engine
