#pragma once

// AutoLog reports: reads what an inference prints about itself, and writes the same from
// measurements.

#include <map>
#include <string>
#include <string_view>

#include "chain/stage/usage.h"

namespace assay::chain::stage {

// Fields by their names in the report ("runtime_device", "cpu_rss(MB)", "inference_time(ms)").
using AutoLog = std::map<std::string, std::string, std::less<>>;

// Takes the fields of a line, if it is one of AutoLog's. Every line occurs twice, with two prefixes
// (`[…] root INFO: …` and `[…] [    INFO] autolog.py:263 - …`); both give the same fields.
void read_autolog_line(std::string_view line, AutoLog& fields);

struct InferenceFacts {
  std::string model;
  std::string precision;
  std::string batch_size;
  std::string asked_device;  // "cpu" or "gpu"
  double total_seconds = 0;
  Usage peak;
  std::size_t looks = 0;  // number of samples behind the peak
  AutoLog printed;        // fields that the command printed
};

// Returns a report in AutoLog's format: sections Env, Paddle, Conf, Model, Data and Perf. An
// unknown field is None.
std::string write_autolog(const InferenceFacts& facts);

// Returns why the device of an inference is not the requested one, or "". `gpus` is the number of
// GPUs of the machine.
std::string device_complaint(const InferenceFacts& facts, std::size_t gpus);

// The same for a stage that prints no device, on a machine with GPUs: enough samples never found it
// on a GPU.
std::string unseen_complaint(const Usage& peak, std::size_t looks);

}  // namespace assay::chain::stage
