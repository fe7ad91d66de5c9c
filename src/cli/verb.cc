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
  if (code) return *code;
  std::fprintf(stderr, "assay: %s\n", code.error().message.c_str());
  return code.error().kind == ErrorKind::usage ? kUsage : kTrouble;
}

int run_guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return trouble("out of memory", ": run it with fewer workers or on a larger machine");
  } catch (const std::exception& error) {
    return trouble(error.what(), " (not expected; please report it with the command line)");
  } catch (...) {
    return trouble("an unknown exception", " (please report it with the command line)");
  }
}

}  // namespace assay
