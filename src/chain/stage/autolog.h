#pragma once

// AutoLog reports: what an inference prints about itself, and the same written from outside.

#include <map>
#include <string>
#include <string_view>

#include "chain/stage/usage.h"

namespace assay::chain::stage {

// Fields by their names in the report ("runtime_device", "cpu_rss(MB)", "inference_time(ms)").
using AutoLog = std::map<std::string, std::string, std::less<>>;

// Takes the fields of one line, where it is one of AutoLog's. The same line comes twice, with two
// prefixes (`[…] root INFO: …` and `[…] [    INFO] autolog.py:263 - …`): the fields are the same.
void read_autolog_line(std::string_view line, AutoLog& fields);

struct InferenceFacts {
  std::string model;
  std::string precision;
  std::string batch_size;
  std::string asked_device;  // "cpu" or "gpu"
  double total_seconds = 0;
  Usage peak;
  std::size_t looks = 0;  // how often it was looked at for the peak
  AutoLog printed;        // what the command itself said; empty where it said nothing
};

// A report in AutoLog's format: sections Env, Paddle, Conf, Model, Data and Perf. A field that
// nobody measured is None.
std::string write_autolog(const InferenceFacts& facts);

// What is wrong with the device that an inference ran on; empty when it is what was asked for.
// `gpus` is how many GPUs the machine has.
std::string device_complaint(const InferenceFacts& facts, std::size_t gpus);

// The same of a stage that prints no device, where this machine has GPUs: it was looked at often
// enough, and was never seen on one.
std::string unseen_complaint(const Usage& peak, std::size_t looks);

}  // namespace assay::chain::stage
