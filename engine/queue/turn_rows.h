// What is read of the queue's file to say whose turn it is, and what is written when somebody has
// had theirs: job_turns.h decides. Within one transaction, or one read, of the caller's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/queue/database.h"
#include "engine/queue/job.h"
#include "engine/queue/job_turns.h"

namespace heddle::engine {

// Of each user and class the first job that waits; of each class the first one that was placed.
std::vector<WaitingJob> read_first_jobs(Database& database);
std::vector<WaitingJob> read_placed_jobs(Database& database);
// As choose_turn() wants them.
std::vector<WaitingJob> read_jobs_behind(Database& database, const WaitingJob& first);
// All that wait, in no order; with those that are paused, if they are wanted.
std::vector<WaitingJob> read_all_waiting(Database& database, bool with_paused);
// Of those that are pending, the first `most`.
std::vector<WaitingJob> read_in_plain_order(Database& database, std::int64_t most);
// Of the users of these jobs.
TurnRules read_turn_rules(Database& database, const std::vector<WaitingJob>& jobs,
                          std::int64_t now_ms, std::int64_t patience_ms);
// Whether the plain order is the one in which jobs run: one user alone has some, of one class.
bool is_plain_order(Database& database);

void note_passed(Database& database, const std::vector<std::int64_t>& sequences);

// Before a job of the user waits: who had none starts where the others are.
void note_user_comes(Database& database, const std::string& user);
// A job begins: its user has had so much device time. `refund_charge`: it has not, after all.
void charge_user(Database& database, const WaitingJob& job);
void refund_charge(Database& database, const std::string& user, std::int64_t charge_ms);
// Those without jobs are forgotten, as far as that makes no difference.
void forget_idle_users(Database& database);

}  // namespace heddle::engine
