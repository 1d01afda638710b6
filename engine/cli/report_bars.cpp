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

using engine::cat;
using Clock = std::chrono::steady_clock;

constexpr int kBarWidth = 24;
constexpr auto kRedraw = std::chrono::milliseconds(50);

struct Bar {
  std::size_t run;
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
  return engine::clip(line, static_cast<std::size_t>(std::max(columns - 1, 8)));
}

class Bars final : public Reporter {
 public:
  Bars(Output& output, int columns) : output_(output), columns_(columns) {}

  void run_begins(const RunHeading& heading) override {
    engine::MutexLock lock(mutex_);
    has_several_ = heading.count > 1;
    above(heading_text(heading));
  }

  void event(std::size_t run, const Event& event) override {
    engine::MutexLock lock(mutex_);
    const std::string prefix = has_several_ ? cat("run ", run, ": ") : "";
    switch (event.kind) {
      case Event::Kind::node_started:
        bars_.push_back({run, std::string(event.node), cat(prefix, node_label(event)),
                         engine::printable(event.device), "", 0});
        return redraw();
      case Event::Kind::node_progress:
        return progress(run, event);
      case Event::Kind::node_done:
        drop(run, event.node);
        return above(cat(prefix, node_label(event), ": ", format_seconds(event.seconds)));
      case Event::Kind::node_cached:
        drop(run, event.node);
        return above(cat(prefix, node_label(event), ": unchanged, not run again"));
      case Event::Kind::file_written:
        return;  // the summary names them all
      case Event::Kind::node_blocked:
        return above(cat(prefix, node_label(event), ": blocked: ", engine::printable(event.text)));
      case Event::Kind::warning:
        return above(cat("heddle: warning: ", prefix, engine::printable(event.text)));
      case Event::Kind::node_waiting:
        for (Bar* bar : of(run, event.node)) bar->note = "waits for the runs before it";
        return redraw();
      case Event::Kind::run_waiting:
        return above(cat("heddle: ", prefix, "waits for ", engine::printable(event.text)));
      case Event::Kind::picture_sent:
        return above(cat(prefix, node_label(event), ": sent a picture of ",
                         engine::format_bytes(event.text.size()), ", which is not kept here"));
      case Event::Kind::preview:
      case Event::Kind::checkpoint_written:  // every few steps
      case Event::Kind::node_shows:          // the summary has it
        return;
    }
  }

  void run_done(const RunHeading& heading, const RunReport& report, double seconds) override {
    engine::MutexLock lock(mutex_);
    std::erase_if(bars_, [&](const Bar& bar) { return bar.run == heading.number; });
    erase();  // bars of other runs must not stand where stdout goes on
    output_.write(summary(heading, report, seconds));
    redraw();
  }

  void run_stopped(std::size_t run) override {
    engine::MutexLock lock(mutex_);
    std::erase_if(bars_, [run](const Bar& bar) { return bar.run == run; });
    redraw();
  }

  void message(std::string_view text) override {
    engine::MutexLock lock(mutex_);
    above(cat("heddle: ", text));
  }

 private:
  std::vector<Bar*> of(std::size_t run, std::string_view node) HEDDLE_REQUIRES(mutex_) {
    std::vector<Bar*> found;
    for (Bar& bar : bars_)
      if (bar.run == run && bar.node == node) found.push_back(&bar);
    return found;
  }

  void progress(std::size_t run, const Event& event) HEDDLE_REQUIRES(mutex_) {
    for (Bar* bar : of(run, event.node)) {
      bar->fraction = event.fraction;
      bar->note = engine::printable(event.text);
    }
    if (Clock::now() - drawn_at_ >= kRedraw) redraw();
  }

  void drop(std::size_t run, std::string_view node) HEDDLE_REQUIRES(mutex_) {
    std::erase_if(bars_, [&](const Bar& bar) { return bar.run == run && bar.node == node; });
  }

  void erase() HEDDLE_REQUIRES(mutex_) {
    const std::string text = drawn_ > 0 ? cat("\x1b[", drawn_, "A\r\x1b[J") : "";
    std::fwrite(text.data(), 1, text.size(), stderr);
    drawn_ = 0;
  }

  void redraw() HEDDLE_REQUIRES(mutex_) { above(""); }

  // Erases the bars, prints `line` (nothing when empty) and the bars again, in one write.
  void above(std::string_view line) HEDDLE_REQUIRES(mutex_) {
    std::string text;
    if (drawn_ > 0) text = cat("\x1b[", drawn_, "A\r\x1b[J");
    if (!line.empty()) text += cat(engine::printable_lines(line), "\n");
    for (const Bar& bar : bars_) text += cat(draw(bar, columns_), "\n");
    std::fwrite(text.data(), 1, text.size(), stderr);
    drawn_ = bars_.size();
    drawn_at_ = Clock::now();
  }

  Output& output_;
  const int columns_;
  engine::Mutex mutex_;
  bool has_several_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::vector<Bar> bars_ HEDDLE_GUARDED_BY(mutex_);
  std::size_t drawn_ HEDDLE_GUARDED_BY(mutex_) = 0;  // lines at the bottom that are bars
  Clock::time_point drawn_at_ HEDDLE_GUARDED_BY(mutex_){};
};

}  // namespace

std::unique_ptr<Reporter> make_bars(Output& output, int terminal_columns) {
  return std::make_unique<Bars>(output, terminal_columns);
}

}  // namespace heddle::cli
