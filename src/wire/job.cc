#include "wire/job.h"

namespace assay::wire {

CaseT planned_case(std::uint64_t id, std::string_view text, std::uint64_t elements,
                   std::uint64_t bytes, std::uint64_t work_us) {
  CaseT planned;
  planned.id = id;
  planned.text = text;
  planned.elements = elements;
  planned.bytes = bytes;
  planned.work_us = work_us;
  return planned;
}

flatbuffers::Offset<Job> pack(flatbuffers::FlatBufferBuilder& builder, const JobT& job) {
  const auto test_case = Case::Pack(builder, &job.test_case);
  const auto trial = TrialRequest::Pack(builder, &job.trial);
  const auto attempt = Attempt::Pack(builder, &job.attempt);
  return CreateJob(builder, test_case, trial, attempt);
}

JobT unpack(const Job& job) {
  JobT unpacked;
  job.test_case()->UnPackTo(&unpacked.test_case);
  job.trial()->UnPackTo(&unpacked.trial);
  job.attempt()->UnPackTo(&unpacked.attempt);
  return unpacked;
}

}  // namespace assay::wire
