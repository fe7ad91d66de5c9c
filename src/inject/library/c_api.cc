// The C functions of the recording library. Python's helper calls them through ctypes, other
// programs through dlsym. They do nothing if recording was not requested.

#include <cstdint>

#include "inject/recorder.h"

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

using assay::inject::Recorder;

ASSAY_EXPORT void assay_job_begin(const char* name, std::int32_t micro_batch);
ASSAY_EXPORT void assay_job_end();
ASSAY_EXPORT void assay_step(std::int64_t number);
ASSAY_EXPORT void assay_record_start();
ASSAY_EXPORT void assay_record_stop();
ASSAY_EXPORT void assay_record_flush();

ASSAY_EXPORT void assay_job_begin(const char* name, std::int32_t micro_batch) {
  if (Recorder* recorder = Recorder::instance()) recorder->begin_range(name, micro_batch);
}
ASSAY_EXPORT void assay_job_end() {
  if (Recorder* recorder = Recorder::instance()) recorder->end_range();
}
ASSAY_EXPORT void assay_step(std::int64_t number) {
  if (Recorder* recorder = Recorder::instance()) recorder->begin_step(number);
}
ASSAY_EXPORT void assay_record_start() {
  if (Recorder* recorder = Recorder::instance()) recorder->start();
}
ASSAY_EXPORT void assay_record_stop() {
  if (Recorder* recorder = Recorder::instance()) recorder->stop();
}
ASSAY_EXPORT void assay_record_flush() {
  if (Recorder* recorder = Recorder::instance()) recorder->flush();
}
