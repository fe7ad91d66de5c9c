#include "cli/verb.h"

#include <cstdio>
#include <exception>
#include <new>

#include "cli/exit_code.h"

namespace assay {
namespace {

int trouble(const char* what, const char* advice) {
  std::fprintf(stderr, "assay: %s%s\n", what, advice);
  return kTrouble;
}

}  // namespace

int run_verb(const Verb& verb) {
  const Result<int> code = verb.run();
  return code ? *code : report_error(code.error());
}

int report_error(const Error& error) {
  std::fprintf(stderr, "assay: %s\n", error.message.c_str());
  return error.kind == ErrorKind::usage ? kUsage : kTrouble;
}

int run_guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return trouble("out of memory", ": use fewer workers or a larger machine");
  } catch (const std::exception& error) {
    return trouble(error.what(), " (a bug in assay: please report it with the command line)");
  } catch (...) {
    return trouble("an unknown exception",
                   " (a bug in assay: please report it with the command line)");
  }
}

}  // namespace assay
