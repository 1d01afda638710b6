// Whose turn it is: by itself, and in simulated time over random histories.
#include "engine/queue/job_turns.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <list>
#include <random>

#include "engine/base/text.h"

using namespace heddle::engine;

namespace {

WaitingJob waiting_job(std::int64_t sequence, std::string user, std::string model = "") {
  WaitingJob job;
  job.sequence = sequence;
  job.user = std::move(user);
  job.model = std::move(model);
  job.number = double(sequence);
  job.charge_ms = 10;
  return job;
}

// All that wait, some that run, and devices that keep the model of their last job.
class Simulation {
 public:
  struct Begun {
    WaitingJob job;
    std::int64_t ms = 0;
  };
  Simulation(unsigned seed, std::size_t devices) : random(seed), devices_(devices) {}

  void submit(WaitingJob job) {
    job.created_ms = now;
    if (!has_jobs(job.user)) used[job.user] = std::max(used[job.user], common_);
    waiting.push_back(std::move(job));
  }

  // Every device that is free takes the job whose turn it is; then time goes on to the next end.
  void step(const std::function<std::int64_t(const WaitingJob&)>& duration) {
    for (Device& device : devices_)
      if (!device.runs && !waiting.empty()) begin(device, duration);
    Device* next = nullptr;
    for (Device& device : devices_)
      if (device.runs && (next == nullptr || device.end < next->end)) next = &device;
    if (next == nullptr) return;
    now = next->end;
    const Begun& done = *next->runs;
    used[done.job.user] += done.ms - done.job.charge_ms;
    served[done.job.user] += done.ms;
    next->runs.reset();
  }

  std::int64_t picked(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }

  std::mt19937 random;
  std::int64_t now = 0, patience = 1'000'000;
  std::list<WaitingJob> waiting;
  std::map<std::string, std::int64_t> used, served;  // as the queue counts; as it was
  std::vector<WaitingJob> begun;
  int most_overtaken = 0;
  std::size_t loads = 0;

 private:
  struct Device {
    std::optional<Begun> runs;
    std::int64_t end = 0;
    std::string model;
  };

  bool has_jobs(const std::string& user) const {
    return std::ranges::any_of(waiting, [&](const auto& job) { return job.user == user; }) ||
           std::ranges::any_of(devices_, [&](const Device& device) {
             return device.runs && device.runs->job.user == user;
           });
  }

  std::vector<WaitingJob> sorted() const {
    std::vector<WaitingJob> all(waiting.begin(), waiting.end());
    std::ranges::sort(all, {}, [](const WaitingJob& job) { return place_of(job); });
    return all;
  }

  void begin(Device& device, const std::function<std::int64_t(const WaitingJob&)>& duration) {
    const std::vector<WaitingJob> all = sorted();
    std::map<std::pair<std::string, bool>, WaitingJob> firsts;
    std::map<bool, WaitingJob> placed;
    for (const WaitingJob& job : all) {
      firsts.try_emplace({job.user, job.is_background}, job);
      if (job.is_placed) placed.try_emplace(job.is_background, job);
    }
    std::vector<WaitingJob> first_jobs, placed_jobs;
    for (const auto& [whose, job] : firsts) first_jobs.push_back(job);
    for (const auto& [whose, job] : placed) placed_jobs.push_back(job);
    const TurnRules rules{now, patience, false, used};
    const std::vector<WaitingJob> due = due_jobs(first_jobs, placed_jobs, rules);
    const Turn turn = choose_turn(due, {device.model}, rules, [&] {
      std::vector<WaitingJob> behind;
      for (const WaitingJob& job : all)
        if (job.user == due.front().user && job.is_background == due.front().is_background &&
            job.priority == due.front().priority && place_of(job) >= place_of(due.front()) &&
            behind.size() < kTurnWindow)
          behind.push_back(job);
      return behind;
    });
    for (WaitingJob& job : waiting)
      if (std::ranges::count(turn.passed, job.sequence) > 0)
        most_overtaken = std::max(most_overtaken, ++job.passed);
    note_overtaken(turn.job);
    std::erase_if(waiting, [&](const auto& job) { return job.sequence == turn.job.sequence; });
    common_ = std::max(common_, used[turn.job.user]);
    used[turn.job.user] += turn.job.charge_ms;
    begun.push_back(turn.job);
    loads += device.model == turn.job.model ? 0 : 1;
    device.model = turn.job.model;
    device.runs = Begun{turn.job, duration(turn.job)};
    device.end = now + device.runs->ms;
  }

  // Without what the policy counts itself: those of its own user and class that stood before it.
  void note_overtaken(const WaitingJob& job) {
    for (const WaitingJob& other : waiting)
      if (other.user == job.user && other.is_background == job.is_background &&
          place_of(other) < place_of(job))
        most_overtaken = std::max(most_overtaken, ++overtaken_[other.sequence]);
  }

  std::vector<Device> devices_;
  std::int64_t common_ = 0;
  std::map<std::int64_t, int> overtaken_;
};

std::string order_of(const std::vector<WaitingJob>& jobs, const TurnRules& rules = {}) {
  std::string text;
  for (const std::size_t i : turn_order(jobs, rules, jobs.size()))
    text += cat(jobs[i].sequence, " ");
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_turns)

BOOST_AUTO_TEST_CASE(one_user_has_the_plain_order) {
  std::vector<WaitingJob> jobs;
  for (int i = 1; i <= 5; ++i) jobs.push_back(waiting_job(i, "a"));
  jobs[2].priority = 1;
  jobs[3].number = -1;
  BOOST_TEST(order_of(jobs) == "3 4 1 2 5 ");
  jobs[0].is_background = true;
  jobs[0].priority = 9;
  const TurnRules patient{0, 1, false, {}}, late{1, 1, false, {}};
  BOOST_TEST(order_of(jobs, patient) == "3 4 2 5 1 ");
  BOOST_TEST(order_of(jobs, late) == "1 3 4 2 5 ");
}

BOOST_AUTO_TEST_CASE(users_take_turns) {
  std::vector<WaitingJob> jobs;
  for (int i = 1; i <= 4; ++i) jobs.push_back(waiting_job(i, "a"));
  for (int i = 5; i <= 6; ++i) jobs.push_back(waiting_job(i, "b"));
  BOOST_TEST(order_of(jobs) == "1 5 2 6 3 4 ");
  BOOST_TEST(order_of(jobs, {0, 0, false, {{"a", 25}, {"b", 0}}}) == "5 6 1 2 3 4 ");
  jobs[4].charge_ms = 100;  // counts as much as it takes
  BOOST_TEST(order_of(jobs) == "1 5 2 3 4 6 ");
}

BOOST_AUTO_TEST_CASE(what_was_placed_is_overtaken_by_none_behind_it) {
  std::vector<WaitingJob> jobs;
  for (int i = 1; i <= 4; ++i) jobs.push_back(waiting_job(i, "a"));
  jobs.push_back(waiting_job(5, "b"));
  jobs[2].is_placed = true;
  BOOST_TEST(order_of(jobs) == "1 2 3 5 4 ");
  jobs[4].number = 0;
  jobs[4].is_placed = true;
  BOOST_TEST(order_of(jobs, {0, 0, false, {{"b", 1000}}}) == "5 1 2 3 4 ");
}

// The list tells what claims would do.
BOOST_AUTO_TEST_CASE(the_order_is_that_of_one_claim_after_another) {
  std::mt19937 random(3);
  const auto picked = [&](unsigned below) { return std::int64_t(random() % below); };
  for (int round = 0; round < 100; ++round) {
    std::vector<WaitingJob> jobs;
    TurnRules rules{100, 50, false, {}};
    for (int i = 1; i <= 20; ++i) {
      WaitingJob job = waiting_job(picked(1000) * 100 + i, cat("u", picked(3)));
      job.is_background = picked(3) == 0;
      job.priority = picked(4) == 0 ? 1 : 0;
      job.is_placed = picked(6) == 0;
      job.created_ms = picked(100);
      job.charge_ms = 1 + picked(30);
      rules.used.emplace(job.user, picked(50));
      jobs.push_back(job);
    }
    std::string expected;
    TurnRules now = rules;
    for (std::vector<WaitingJob> left = jobs; !left.empty();) {
      std::ranges::sort(left, {}, [](const WaitingJob& job) { return place_of(job); });
      std::vector<WaitingJob> firsts, placed;
      const auto has = [](const std::vector<WaitingJob>& all, const auto& is_same) {
        return std::ranges::any_of(all, is_same);
      };
      for (const WaitingJob& job : left) {
        if (!has(firsts, [&](const WaitingJob& one) {
              return one.user == job.user && one.is_background == job.is_background;
            }))
          firsts.push_back(job);
        if (job.is_placed && !has(placed, [&](const WaitingJob& one) {
              return one.is_background == job.is_background;
            }))
          placed.push_back(job);
      }
      const WaitingJob next = due_jobs(firsts, placed, now).front();
      expected += cat(next.sequence, " ");
      now.used[next.user] += next.charge_ms;
      std::erase_if(left, [&](const WaitingJob& job) { return job.sequence == next.sequence; });
    }
    BOOST_TEST_REQUIRE(order_of(jobs, rules) == expected, round);
  }
}

BOOST_AUTO_TEST_CASE(a_warm_model_overtakes_as_far_as_it_may) {
  std::vector<WaitingJob> jobs;
  for (int i = 1; i <= 4; ++i) jobs.push_back(waiting_job(i, "a", i % 2 == 0 ? "x" : "y"));
  const auto turn = [&](std::set<std::string> warm) {
    const Turn chosen = choose_turn({jobs[0]}, warm, {}, [&] { return jobs; });
    return cat(chosen.job.sequence, "/", chosen.passed.size());
  };
  BOOST_TEST(turn({}) == "1/0");
  BOOST_TEST(turn({"y"}) == "1/0");
  BOOST_TEST(turn({"x"}) == "2/1");
  BOOST_TEST(turn({"z"}) == "1/0");
  jobs[1].model = "z";
  BOOST_TEST(turn({"x"}) == "4/3");
  jobs[1].model = "sub/x.gguf\nvae.safetensors";  // a file of it is there
  BOOST_TEST(turn({"x.gguf"}) == "2/1");
  BOOST_TEST(turn({"vae.safetensors"}) == "2/1");
  BOOST_TEST(turn({"x"}) == "4/3");
  jobs[1].model = "z";
  jobs[2].passed = kMostPassed;
  BOOST_TEST(turn({"x"}) == "1/0");
  jobs[2].passed = 0;
  jobs[2].is_placed = true;
  BOOST_TEST(turn({"x"}) == "1/0");
}

BOOST_AUTO_TEST_CASE(nobody_is_overtaken_more_often_than_is_allowed) {
  int most = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Simulation simulation(seed, std::size_t(1 + seed % 3));
    std::int64_t sequence = 0;
    for (int step = 0; step < 300; ++step) {
      for (std::int64_t come = simulation.picked(0, 3); come > 0 && sequence < 400; --come) {
        WaitingJob job = waiting_job(++sequence, cat("u", simulation.picked(0, seed % 4)),
                                     cat("m", simulation.picked(0, 3)));
        job.is_background = simulation.picked(0, 4) == 0;
        job.is_placed = simulation.picked(0, 20) == 0;
        simulation.submit(job);
      }
      simulation.step([&](const WaitingJob&) { return simulation.picked(5, 30); });
    }
    BOOST_TEST_REQUIRE(simulation.most_overtaken <= kMostPassed, seed);
    most = std::max(most, simulation.most_overtaken);
  }
  BOOST_TEST(most == kMostPassed);  // so often it happens
}

// Of users who always have jobs waiting, none gets more device time than another but for a few
// jobs, however long each one's jobs are and however wrong they are estimated.
BOOST_AUTO_TEST_CASE(device_time_is_shared_evenly) {
  constexpr std::int64_t kLongest = 100;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::size_t devices = 1 + seed % 3;
    Simulation simulation(seed, devices);
    std::int64_t sequence = 0;
    const std::int64_t bound = std::int64_t(kMostPassed + 1 + 2 * devices) * kLongest;
    const auto fill = [&](int users) {
      for (int user = 0; user < users; ++user)
        while (std::ranges::count(simulation.waiting, cat("u", user), &WaitingJob::user) < 5) {
          WaitingJob job =
              waiting_job(++sequence, cat("u", user), cat("m", simulation.picked(0, 2)));
          job.charge_ms = simulation.picked(1, kLongest);
          simulation.submit(job);
        }
    };
    const auto run = [&](int users, int steps) {
      const std::map<std::string, std::int64_t> before = simulation.served;
      for (int step = 0; step < steps; ++step) {
        fill(users);
        simulation.step([&](const WaitingJob& job) {
          // Those of one user are ten times as long.
          return job.user == "u0" ? simulation.picked(50, kLongest) : simulation.picked(5, 10);
        });
        std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
        for (int user = 0; user < users; ++user) {
          const std::string name = cat("u", user);
          const std::int64_t got =
              simulation.served[name] - (before.contains(name) ? before.at(name) : 0);
          least = std::min(least, got);
          most = std::max(most, got);
        }
        BOOST_TEST_REQUIRE(most - least <= bound, seed << " after " << step);
      }
    };
    run(2, 400);
    run(3, 400);  // who comes later gets as much from then on, and nothing for before
  }
}

BOOST_AUTO_TEST_CASE(background_jobs_have_their_turn_at_last) {
  constexpr std::int64_t kLongest = 100;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Simulation simulation(seed, 1);
    simulation.patience = 2000;
    std::int64_t sequence = 0;
    std::map<std::int64_t, std::int64_t> began;  // of background jobs
    std::size_t seen = 0;
    for (int step = 0; step < 600; ++step) {
      while (simulation.waiting.size() < 8)  // there is always an interactive one
        simulation.submit(waiting_job(++sequence, cat("u", simulation.picked(0, 1)), "m"));
      if (step % 150 == 10) {
        WaitingJob job = waiting_job(++sequence, cat("night", step), "n");
        job.is_background = true;
        simulation.submit(job);
      }
      const std::int64_t now = simulation.now;
      simulation.step([&](const WaitingJob&) { return simulation.picked(10, kLongest); });
      for (; seen < simulation.begun.size(); ++seen) {
        const WaitingJob& job = simulation.begun[seen];
        if (!job.is_background) continue;
        began[job.sequence] = now;
        const std::int64_t waited = now - job.created_ms;
        BOOST_TEST_REQUIRE(waited >= simulation.patience, seed);
        BOOST_TEST_REQUIRE(waited <= simulation.patience + (kMostPassed + 2) * kLongest, seed);
      }
    }
    BOOST_TEST(began.size() >= 3u, seed);
  }
}

// Two models by turns: in the order of their coming each job would load its model anew.
BOOST_AUTO_TEST_CASE(models_are_loaded_less_often) {
  Simulation simulation(1, 1);
  for (int i = 1; i <= 40; ++i) simulation.submit(waiting_job(i, "a", i % 2 == 0 ? "x" : "y"));
  while (!simulation.waiting.empty()) simulation.step([](const WaitingJob&) { return 10; });
  BOOST_TEST(simulation.begun.size() == 40u);
  BOOST_TEST(simulation.loads <= 14u);
}

BOOST_AUTO_TEST_SUITE_END()
