#pragma once

// A case on its way from the queue to a lane: the tables of job.fbs in memory. All code between the
// store and a lane's Python uses this type.

#include <string_view>

#include "wire/messages_generated.h"

namespace assay::wire {

// The value regime that every case runs under.
inline constexpr std::string_view kUsualValues = "usual";

struct JobT {
  CaseT test_case;
  TrialRequestT trial;
  AttemptT attempt;

  JobT() { trial.values = kUsualValues; }
};

// A planned case. Elements, bytes and µs are estimates (schedule/cost.h); 0: not known.
CaseT planned_case(std::uint64_t id, std::string_view text, std::uint64_t elements = 0,
                   std::uint64_t bytes = 0, std::uint64_t work_us = 0);

// Converts a job to a table of a message, and back.
flatbuffers::Offset<Job> pack(flatbuffers::FlatBufferBuilder& builder, const JobT& job);
JobT unpack(const Job& job);

}  // namespace assay::wire
