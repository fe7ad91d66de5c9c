#pragma once

// Output that comes in pieces, handed on line by line.

#include <functional>
#include <string>
#include <string_view>

namespace assay::chain::stage {

using LineHandler = std::function<void(std::string_view)>;  // without its line end

class LineSplitter {
 public:
  // Hands on each line that ends in these bytes, and of one longer than 64 KiB the pieces.
  void take(std::string_view bytes, const LineHandler& on_line);
  // What has not ended is handed on as it is.
  void end(const LineHandler& on_line);
  void clear() { line_.clear(); }

 private:
  std::string line_;
};

}  // namespace assay::chain::stage
