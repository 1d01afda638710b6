// A bar for every running node, drawn over and over at the bottom of the terminal; what is done
// scrolls away above them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/text.h"
#include "engine/cli/reporter.h"

namespace heddle::cli {
namespace {

using core::cat;
using Clock = std::chrono::steady_clock;

constexpr int kBarWidth = 24;
constexpr auto kRedraw = std::chrono::milliseconds(50);

struct Bar {
  std::string node, label, device, note;
  double fraction = 0;
};

// "[############............]  50 %  3 Encode  cpu:0  step 4 of 8"
std::string draw(const Bar& bar, int columns) {
  const double fraction = std::clamp(bar.fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(fraction * kBarWidth);
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3d %%", static_cast<int>(fraction * 100));
  const std::string line =
      cat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "] ", percent, "  ",
          bar.label, "  ", bar.device, bar.note.empty() ? "" : "  ", bar.note);
  // A line that wraps could not be erased again.
  return core::clip(line, static_cast<std::size_t>(std::max(columns - 1, 8)));
}

class Bars final : public Reporter {
 public:
  Bars(Output& output, int columns) : output_(output), columns_(columns) {}

  void run_begins(const RunHeading& heading) override {
    core::MutexLock lock(mutex_);
    heading_ = heading;
    above(heading_text(heading));
  }

  void event(const Event& event) override {
    core::MutexLock lock(mutex_);
    switch (event.kind) {
      case Event::Kind::node_started:
        bars_.push_back(
            {std::string(event.node), node_label(event), std::string(event.device), "", 0});
        return redraw();
      case Event::Kind::node_progress:
        return progress(event);
      case Event::Kind::node_done:
        drop(event.node);
        return above(cat(node_label(event), ": ", format_seconds(event.seconds)));
      case Event::Kind::node_cached:
        drop(event.node);
        return above(cat(node_label(event), ": unchanged since an earlier run"));
      case Event::Kind::file_written:
        return;  // the summary names them all
      case Event::Kind::warning:
        return above(cat("heddle: warning: ", event.text));
    }
  }

  void run_done(const Results& results, double seconds) override {
    run_stopped();
    output_.write(summary(heading_, results, seconds));
  }

  void run_stopped() override {
    core::MutexLock lock(mutex_);
    bars_.clear();
    redraw();
  }

  void message(std::string_view text) override {
    core::MutexLock lock(mutex_);
    above(cat("heddle: ", text));
  }

 private:
  void progress(const Event& event) HEDDLE_REQUIRES(mutex_) {
    for (Bar& bar : bars_) {
      if (bar.node != event.node) continue;
      bar.fraction = event.fraction;
      bar.note = core::to_valid_utf8(event.text);
    }
    if (Clock::now() - drawn_at_ >= kRedraw) redraw();
  }

  void drop(std::string_view node) HEDDLE_REQUIRES(mutex_) {
    std::erase_if(bars_, [&](const Bar& bar) { return bar.node == node; });
  }

  void redraw() HEDDLE_REQUIRES(mutex_) { above(""); }

  // Erases the bars, prints `line` (nothing when empty) and the bars again, in one write.
  void above(std::string_view line) HEDDLE_REQUIRES(mutex_) {
    std::string text;
    if (drawn_ > 0) text = cat("\x1b[", drawn_, "A\r\x1b[J");
    if (!line.empty()) text += cat(line, "\n");
    for (const Bar& bar : bars_) text += cat(draw(bar, columns_), "\n");
    std::fwrite(text.data(), 1, text.size(), stderr);
    drawn_ = bars_.size();
    drawn_at_ = Clock::now();
  }

  Output& output_;
  const int columns_;
  RunHeading heading_;
  core::Mutex mutex_;
  std::vector<Bar> bars_ HEDDLE_GUARDED_BY(mutex_);
  std::size_t drawn_ HEDDLE_GUARDED_BY(mutex_) = 0;  // lines at the bottom that are bars
  Clock::time_point drawn_at_ HEDDLE_GUARDED_BY(mutex_){};
};

}  // namespace

std::unique_ptr<Reporter> make_bars(Output& output, int terminal_columns) {
  return std::make_unique<Bars>(output, terminal_columns);
}

}  // namespace heddle::cli
