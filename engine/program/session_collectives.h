// What the ranks of a group exchange inside of a block, made of copies and sums. What crosses is
// added up and put together in the order of ranks, so that every repeat gives the same bytes.
// Copies begin when their sources are there, beside what comes next: a rank waits for them where
// it needs the result. For plan_session() alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/program/placed_block.h"
#include "engine/program/session_builder.h"
#include "engine/program/session_values.h"

namespace heddle::engine {

// One is under way at a time.
class SessionCollectives {
 public:
  // The arguments are borrowed.
  SessionCollectives(const SessionSpec& spec, const std::vector<SessionBranch>& branches,
                     SessionBuilder& builder, SessionValues& values)
      : spec_(spec), branches_(branches), builder_(builder), values_(values) {}

  // `ops`: the collective as each of the ranks issues it, by rank. REQUIRES: none is under way.
  void begin(const std::vector<PlacedBlock>& rank_blocks, NodeIndex n, std::uint32_t branch,
             const std::vector<const ProgramOp*>& ops);
  // Whether the rank's op needs the result, so that the rank has to finish first.
  bool holds_back(const PlacedBlock& rank_block, const ProgramOp& op) const;
  void finish(std::uint32_t rank);
  void finish();
  // At the end of the session: what was given last stays until then.
  void close();

 private:
  // What is left to do of a collective whose copies have begun, by rank; and its results.
  struct UnderWay {
    struct Rows {
      std::uint32_t axis = 0;
      std::int64_t begin = 0, count = 0;
    };
    struct Out {
      Operand whole;
      std::optional<Rows> kept;  // that the block writes itself
    };
    std::uint32_t begun;  // as in SessionBuilder::now()
    bool all_hear_of_all;
    std::vector<Out> out;
    std::vector<std::vector<std::function<void()>>> rest;
  };
  struct Issued {
    NodeIndex node = 0;
    std::uint32_t branch = 0;
    std::uint32_t first = 0;            // device slot of rank 0; the others stand behind it
    std::vector<const ProgramOp*> ops;  // by rank, like those below
    std::vector<Operand> in, out;

    std::uint32_t count() const { return std::uint32_t(ops.size()); }
    std::uint32_t slot_of(std::uint32_t rank) const { return first + rank; }
  };
  using IssuedRef = std::shared_ptr<const Issued>;  // what is left to do refers to it

  bool are_peers(std::uint32_t a, std::uint32_t b) const;
  void gather_or_reduce(const IssuedRef& issued, const std::vector<PlacedBlock>& rank_blocks);
  std::vector<Operand> collect(const Issued& issued, const std::vector<PlacedBlock>& rank_blocks,
                               std::uint32_t to, std::size_t position,
                               std::vector<std::uint32_t>& sent);
  void put_together(const Issued& issued, std::uint32_t to, const std::vector<Operand>& parts);
  void add_up(const Issued& issued, std::uint32_t to, const std::vector<Operand>& parts);
  void exchange(const IssuedRef& issued);
  bool is_read(const Issued& issued, std::uint32_t from, std::uint32_t to) const;
  std::vector<std::vector<Operand>> pack(const Issued& issued);
  void receive(const IssuedRef& issued, std::uint32_t to, const std::vector<Operand>& given,
               std::size_t position);
  // `to`: a device slot.
  std::uint32_t give(const Source& source, std::uint32_t branch, const Operand& part,
                     std::uint32_t to, std::size_t position);
  std::uint32_t give_into(const Source& source, std::uint32_t branch, const Operand& part,
                          const Operand& dest, std::size_t position);
  std::uint32_t add_given(const Operand& given, PlannedTransfer transfer, std::size_t position);

  // Of one group's collectives in which everybody heard of everybody: where the last one began (as
  // in SessionBuilder::now(); 0: none yet), what was given in it, and what is given since. Groups
  // hear nothing of each other.
  struct Heard {
    std::uint32_t last_begun = 0;
    std::vector<std::int32_t> given_before, given;
  };

  const SessionSpec& spec_;
  const std::vector<SessionBranch>& branches_;
  SessionBuilder& builder_;
  SessionValues& values_;
  std::optional<UnderWay> under_way_;
  std::map<std::uint32_t, Heard> heard_;  // by the first device slot of the group
  Heard* group_ = nullptr;                // of the collective that was begun last
};

}  // namespace heddle::engine
