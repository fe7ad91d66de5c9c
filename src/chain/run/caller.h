#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "chain/run/job.h"
#include "chain/script/call_server.h"
#include "chain/shim/call.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

// A command of the script, and the shim that waits for it.
class Caller : public stage::OutputCopy {
 public:
  explicit Caller(std::unique_ptr<script::CallLine> line) : line_(std::move(line)) {}
  bool ready() const override { return line_->ready() || line_->gone(); }
  void take(bool of_errors, std::string_view bytes) override {
    line_->send(of_errors ? shim::Answer::errors : shim::Answer::output, bytes);
  }
  // Tells the shim the command's end.
  void end(int code) {
    line_->send(shim::Answer::exit, std::to_string(code));
    ended_ = true;
  }
  bool ended() const { return ended_; }
  script::CallLine& line() { return *line_; }

  Job* job = nullptr;  // null until the call is complete

 private:
  std::unique_ptr<script::CallLine> line_;
  bool ended_ = false;
};

}  // namespace assay::chain::run
