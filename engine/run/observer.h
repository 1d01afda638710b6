// What a run tells while it runs. Called on the run's threads, one call at a time for each run and
// without a lock of the executor; keep it short.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "engine/graph/graph.h"
#include "engine/run/called_back.h"

namespace heddle::engine {

class Observer {
 public:
  virtual ~Observer() = default;
  // False: nobody would hear it, so nothing is reported. The same answer during a whole run.
  virtual bool listens() const { return true; }
  // Whether preview() is of use, too, and how they are made. The same answer during a whole run.
  virtual std::int32_t preview_method() const { return HEDDLE_PREVIEW_NONE; }
  virtual void node_started(const Node&, std::string_view device) { (void)device; }
  virtual void node_progress(const Node&, double fraction, std::string_view note) {
    (void)fraction, (void)note;
  }
  virtual void node_done(const Node&, double seconds) { (void)seconds; }
  virtual void node_cached(const Node&) {}
  virtual void file_written(const Node&, std::string_view path) { (void)path; }
  // All that a node shows, as JSON; before it is done, or reported as cached.
  virtual void node_shows(const Node&, std::string_view ui) { (void)ui; }
  // A call of the node has met a blocker with this message, and was not made.
  virtual void node_blocked(const Node&, std::string_view message) { (void)message; }
  virtual void warning(const Node*, std::string_view message) { (void)message; }
  virtual void node_waiting(const Node&) {}  // for its turn to write
  // The run has not begun: it waits for so many bytes of a memory. `text` says who holds them.
  virtual void run_waiting(std::string_view memory, std::uint64_t bytes, std::string_view text) {
    (void)memory, (void)bytes, (void)text;
  }
  virtual void checkpoint_written(std::string_view path) { (void)path; }
  // A picture that the node has made and nobody keeps, as a PNG file.
  virtual void picture_sent(const Node&, std::string_view png) { (void)png; }
  virtual void preview(const Node&, std::string_view device, const heddle_preview&) {
    (void)device;
  }
};

class NullObserver final : public Observer {
 public:
  bool listens() const override { return false; }
};

// Passes on what several threads tell, one call at a time.
class SerialObserver final : public Observer {
 public:
  // `about_to_wait`: called when a call of the observer is about to wait for another run.
  explicit SerialObserver(Observer& observer, std::function<void()> about_to_wait = {})
      : observer_(observer),
        about_to_wait_(std::move(about_to_wait)),
        listens_(observer.listens()),
        preview_method_(listens_ ? observer.preview_method() : HEDDLE_PREVIEW_NONE) {}
  bool listens() const override { return listens_; }
  std::int32_t preview_method() const override { return preview_method_; }
  void node_started(const Node& node, std::string_view device) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_started(node, device);
  }
  void node_progress(const Node& node, double fraction, std::string_view note) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_progress(node, fraction, note);
  }
  void node_done(const Node& node, double seconds) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_done(node, seconds);
  }
  void node_cached(const Node& node) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_cached(node);
  }
  void file_written(const Node& node, std::string_view path) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.file_written(node, path);
  }
  void node_shows(const Node& node, std::string_view ui) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_shows(node, ui);
  }
  void node_blocked(const Node& node, std::string_view message) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_blocked(node, message);
  }
  void warning(const Node* node, std::string_view message) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.warning(node, message);
  }
  void node_waiting(const Node& node) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.node_waiting(node);
  }
  void checkpoint_written(std::string_view path) override {
    if (!listens_) return;
    const std::lock_guard lock(mutex_);
    observer_.checkpoint_written(path);
  }
  void picture_sent(const Node& node, std::string_view png) override {
    if (!listens_) return;
    const Call call(*this);
    observer_.picture_sent(node, png);
  }
  void preview(const Node& node, std::string_view device, const heddle_preview& picture) override {
    if (preview_method_ == HEDDLE_PREVIEW_NONE) return;
    const Call call(*this);
    observer_.preview(node, device, picture);
  }

 private:
  struct Call {
    explicit Call(SerialObserver& of) : lock(of.mutex_), called_back(of.about_to_wait_) {}
    const std::lock_guard<std::mutex> lock;
    const CalledBack called_back;
  };
  Observer& observer_;
  const std::function<void()> about_to_wait_;
  const bool listens_;
  const std::int32_t preview_method_;
  std::mutex mutex_;
};

}  // namespace heddle::engine
