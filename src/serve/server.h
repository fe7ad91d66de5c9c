#pragma once

// `assay serve`: the page of a run, for browsers.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "serve/case_list.h"

namespace assay {

struct ServeOptions {
  std::string where;               // of the run: a folder or postgresql://…
  std::string host = "127.0.0.1";  // an address of this machine
  std::uint16_t port = 0;          // 0: any free one
  std::string token;               // who asks must name it; empty: nobody has to
};

// Whether an address, or a name in a request, means this machine itself.
bool is_loopback(std::string_view host);

// Serves until `stop` is true (looked at four times a second) or SIGINT or SIGTERM comes. GET and
// HEAD only. `listening` is told the port. On loopback only requests are answered that were meant
// for it: another site's page cannot ask in its visitor's name.
Status serve_run(const ServeOptions& options, const std::function<void(std::uint16_t)>& listening,
                 const std::atomic<bool>& stop);

// What a browser is told for `target`, a path with its question.
struct Reply {
  int status = 200;
  std::string type;
  std::string body;
};
// What there is to tell: the page's data in JSON, and the parts of its list of cases.
struct Shown {
  std::string data;
  std::vector<CaseList::Part> parts;
};
Reply reply_to(const std::string& target, const std::string& host_header,
               const ServeOptions& options, const Shown& shown);

}  // namespace assay
